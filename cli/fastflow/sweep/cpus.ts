/** Which CPUs the processes of the sweep get. */
import { loaderVariables } from "../../../platform/process/loader_variables.ts";

/** A part of the machine in which one environment runs at a time. */
export interface Lane {
  /** For the trainer. Undefined: any. */
  readonly trainer?: string;
  /** For its workers and their dispatcher, which does little. */
  readonly service?: string;
}

/** The CPUs of this machine, divided. */
export interface Division {
  readonly lanes: readonly Lane[];
  /** Why processes have no CPUs of their own, if they have none. */
  readonly whyShared?: string;
}

/** One line of `lscpu -p=CPU,CORE,SOCKET`. */
export interface Cpu {
  readonly cpu: string;
  /** Names the physical core; hyperthreads share one. */
  readonly core: string;
}

/** Divides CPUs: a trainer and its workers never share a physical core. */
export function divideCpus(cpus: readonly Cpu[]): Division {
  const firsts = [...new Map(cpus.toReversed().map((at) => [at.core, at.cpu])).values()]
    .toReversed();
  const lanes = Array.from({ length: Math.floor(firsts.length / 2) }, (_, lane): Lane => ({
    trainer: firsts[2 * lane]!,
    service: firsts[2 * lane + 1]!,
  }));
  if (lanes.length > 0) return { lanes };
  return { lanes: [{}], whyShared: `${cpus.length} CPUs on ${firsts.length} cores; 2 are needed` };
}

/** The CPUs that this process may use. */
export async function dividedMachine(): Promise<Division> {
  try {
    const allowed = parseCpuList(
      (await output("taskset", "-cp", `${Deno.pid}`)).split(": ").at(-1)!,
    );
    const listed = (await output("lscpu", "-p=CPU,CORE,SOCKET")).split("\n")
      .filter((line) => /^\d/.test(line))
      .map((line) => {
        const [cpu = "", ...core] = line.split(",");
        return { cpu, core: core.join() };
      });
    return divideCpus(listed.filter(({ cpu }) => allowed.has(cpu)));
  } catch (error) {
    const whyShared = `CPUs cannot be assigned here: ${(error as Error).message}`;
    return { lanes: [{}], whyShared };
  }
}

/** The CPUs in a list such as `0-3,8`. */
export function parseCpuList(list: string): Set<string> {
  return new Set(
    list.trim().split(",").flatMap((range) => {
      const [from = 0, to = from] = range.split("-").map(Number);
      return Array.from({ length: to - from + 1 }, (_, i) => `${from + i}`);
    }),
  );
}

async function output(program: "taskset" | "lscpu", ...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args,
    env: loaderVariables(),
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr).trim());
  return new TextDecoder().decode(stdout);
}
