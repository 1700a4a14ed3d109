/** Which CPUs the processes of the sweep get. */
import { loaderVariables } from "../../../platform/process/loader_variables.ts";
import { CPUS_MAX } from "./environments.ts";

/** A part of the machine in which one environment runs at a time. */
export interface Lane {
  /** None if the machine has too few to keep processes apart. */
  readonly cpus: readonly string[];
}

/** The CPUs of this machine, divided. */
export interface Division {
  readonly lanes: readonly Lane[];
  /** For what measures nothing: this process and the dispatchers. Undefined: any. */
  readonly rest: string | undefined;
  /** Why processes have no CPUs of their own, if they have none. */
  readonly whyShared?: string;
}

/** One line of `lscpu -p=CPU,CORE,SOCKET`. */
export interface Cpu {
  readonly cpu: string;
  /** Names the physical core; hyperthreads share one. */
  readonly core: string;
}

/** Divides CPUs: no two processes on one physical core, and at least one CPU for the rest. */
export function divideCpus(cpus: readonly Cpu[]): Division {
  const firsts = [...new Map(cpus.toReversed().map((at) => [at.core, at.cpu])).values()]
    .toReversed();
  const spare = cpus.length > firsts.length ? 0 : 1;
  const count = Math.floor((firsts.length - spare) / CPUS_MAX);
  if (count === 0) {
    const whyShared = `${cpus.length} CPUs on ${firsts.length} cores; ${CPUS_MAX + 1} are needed`;
    return { lanes: [{ cpus: [] }], rest: undefined, whyShared };
  }
  const lanes = Array.from({ length: count }, (_, lane) => ({
    cpus: firsts.slice(lane * CPUS_MAX, (lane + 1) * CPUS_MAX),
  }));
  const taken = new Set(lanes.flatMap(({ cpus }) => cpus));
  const rest = cpus.map(({ cpu }) => cpu).filter((cpu) => !taken.has(cpu));
  return { lanes, rest: rest.join(",") };
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
    return { lanes: [{ cpus: [] }], rest: undefined, whyShared };
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
