/** Assigns CPUs to the processes of the sweep. */
import { outputOf } from "../../../platform/process/output_of.ts";

/** The CPUs on which one environment runs at a time, or several that mostly wait. */
export interface Lane {
  /** The CPU of the trainer. Undefined: any. */
  readonly trainer?: string;
  /** The CPU of the workers and of their dispatcher, which does little. Undefined: any. */
  readonly service?: string;
}

/** The CPUs of this machine, divided into lanes. */
export interface Division {
  readonly lanes: readonly Lane[];
  /** Why processes are not pinned to CPUs, if they are not. */
  readonly whyShared?: string;
}

/** One line of `lscpu -p=CPU,CORE,SOCKET`. */
export interface Cpu {
  readonly cpu: string;
  /** Core and socket, which identify the physical core. Hyperthreads share a core. */
  readonly core: string;
}

/** Divides CPUs into lanes. If there are 2 cores, a trainer and its workers never share one. */
export function divideCpus(cpus: readonly Cpu[]): Division {
  const onePerCore = [...new Map(cpus.toReversed().map((at) => [at.core, at.cpu])).values()]
    .toReversed();
  const lanes = Array.from({ length: Math.floor(onePerCore.length / 2) }, (_, lane): Lane => ({
    trainer: onePerCore[2 * lane]!,
    service: onePerCore[2 * lane + 1]!,
  }));
  if (lanes.length > 0) return { lanes };
  return {
    lanes: [{}],
    whyShared: `${cpus.length} CPUs on ${onePerCore.length} cores; 2 are needed`,
  };
}

/** Divides the CPUs that this process may use. */
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

/** Returns the CPUs in a list such as `0-3,8`. */
export function parseCpuList(list: string): Set<string> {
  return new Set(
    list.trim().split(",").flatMap((range) => {
      const [from = 0, to = from] = range.split("-").map(Number);
      return Array.from({ length: to - from + 1 }, (_, i) => `${from + i}`);
    }),
  );
}

async function output(program: "taskset" | "lscpu", ...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await outputOf(program, { args });
  if (!success) throw new Error(new TextDecoder().decode(stderr).trim());
  return new TextDecoder().decode(stdout);
}
