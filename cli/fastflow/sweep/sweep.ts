/** Runs the environments of the measured sweep in separate processes, pinned to CPUs if possible. */
import { outputOf } from "../../../platform/process/output_of.ts";
import type { ExampleData } from "../data.ts";
import { RemoteHost } from "../remote_host.ts";
import { RemoteService } from "../remote_service.ts";
import { dividedMachine, type Lane } from "./cpus.ts";
import { CABLE, FAR_MS, isWaiting, nameOf, SWEPT, type SweptEnvironment } from "./environments.ts";
import type { TrainerResult, TrainerTask } from "./trainer.ts";

/** The approximate time to start and stop the processes of an environment, in ms. */
const STARTING_MS = 4_000;
/** How many environments share a lane if their processes mostly wait. */
const WAITING_AT_ONCE = 3;
const MS_PER_MINUTE = 60_000;

/** An environment and its results. */
export interface Swept extends TrainerResult {
  readonly environment: SweptEnvironment;
  /** Whether trainer and service were pinned to CPUs of different cores. */
  readonly hasOwnCpus: boolean;
}

export interface SweepResults {
  readonly swept: readonly Swept[];
  /** How many lanes ran at the same time. */
  readonly lanes: number;
  /** Why processes were not pinned to CPUs, if they were not. */
  readonly whyShared?: string;
  /** Why environments with a cable were left out, if they were. */
  readonly whyNoCable?: string;
  /** Environments that failed, and why. */
  readonly failed: readonly string[];
}

export interface SweepOptions {
  readonly letters: readonly string[];
  readonly data: ExampleData;
  /** The folder with the data. */
  readonly folder: string;
  /** The time limit of the sweep. */
  readonly minutes: number;
  /** Called after each environment, with the results so far. */
  readonly onDone: (found: SweepResults) => void;
}

/** Returns the environments with these workloads. */
export function environmentsOf(letters: readonly string[]): readonly SweptEnvironment[] {
  return SWEPT.filter(({ letter }) => letters.includes(letter));
}

/** Measures all environments. */
export async function sweep(
  { letters, data, folder, minutes, onDone }: SweepOptions,
): Promise<SweepResults> {
  const { lanes, whyShared } = await dividedMachine();
  const whyNoCable = await RemoteHost.whyNot();
  const groups = groupsOf(environmentsOf(letters));
  const isCabled = ([{ link }]: Group) => link !== "loopback";
  // Only one cable can exist at a time, so the first lane runs all environments that need it, before
  // others.
  const onCable = whyNoCable === undefined ? groups.filter(isCabled) : [];
  const queue = groups.filter((group) => !isCabled(group));
  const total = queue.length + onCable.length;
  const limitMs = Math.max(0, MS_PER_MINUTE * minutes * lanes.length / total - STARTING_MS);
  const swept: Swept[] = [];
  const failed: string[] = [];
  const resultsSoFar = (): SweepResults => ({
    swept: swept.toSorted((a, b) => SWEPT.indexOf(a.environment) - SWEPT.indexOf(b.environment)),
    ...{ failed: [...failed], lanes: lanes.length },
    ...(whyShared === undefined ? {} : { whyShared }),
    ...(whyNoCable === undefined ? {} : { whyNoCable }),
  });
  const measure = async (environment: SweptEnvironment, lane: Lane) => {
    try {
      const result = await runOne(environment, lane, { data, folder, limitMs });
      swept.push({ ...result, environment, hasOwnCpus: lane.trainer !== undefined });
    } catch (error) {
      failed.push(`${environment.letter} ${nameOf(environment)}: ${(error as Error).message}`);
    }
    onDone(resultsSoFar());
  };
  await Promise.all(lanes.map(async (lane, number) => {
    for (;;) {
      const group = (number === 0 ? onCable.shift() : undefined) ?? queue.shift();
      if (group === undefined) return;
      await Promise.all(group.map((environment) => measure(environment, lane)));
    }
  }));
  return resultsSoFar();
}

/** Environments that run at the same time on one lane. */
type Group = readonly [SweptEnvironment, ...SweptEnvironment[]];

/** Groups environments that mostly wait. Each of the others is a group by itself. */
function groupsOf(environments: readonly SweptEnvironment[]): Group[] {
  const waiting = environments.filter(isWaiting);
  const groups = environments.filter((at) => !isWaiting(at)).map((at): Group => [at]);
  for (let i = 0; i < waiting.length; i += WAITING_AT_ONCE) {
    groups.push([waiting[i]!, ...waiting.slice(i + 1, i + WAITING_AT_ONCE)]);
  }
  return groups;
}

async function runOne(
  environment: SweptEnvironment,
  { trainer, service: serviceCpus }: Lane,
  { data, folder, limitMs }: {
    readonly data: ExampleData;
    readonly folder: string;
    readonly limitMs: number;
  },
): Promise<TrainerResult> {
  const { workers, link, storage } = environment;
  const options = {
    dataRoot: folder,
    dispatcherCpus: serviceCpus,
    workerCpus: Array.from({ length: workers }, () => serviceCpus),
    ...(storage === "near" ? {} : { storageLatencyMs: FAR_MS }),
  };
  await using service = link === "loopback"
    ? await RemoteService.start({ ...options, host: "127.0.0.1" })
    : await RemoteHost.start({ ...options, ...CABLE });
  return await train({ environment, data, limitMs, service: service.address }, trainer);
}

async function train(task: TrainerTask, cpu: string | undefined): Promise<TrainerResult> {
  const [command, ...before] = cpu === undefined ? ["deno"] : ["taskset", "-c", cpu, "deno"];
  const program = new URL("./trainer.ts", import.meta.url).href;
  const args = ["run", "--quiet", "--no-prompt", "-P=fastflow", program, JSON.stringify(task)];
  const { success, stdout, stderr } = await outputOf(command!, {
    args: [...before, ...args],
    env: { NO_COLOR: "1" },
  });
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
  if (!success) {
    const lines = text(stderr).split("\n");
    throw new Error(lines.find((line) => line.startsWith("error:")) ?? lines.at(-1));
  }
  return JSON.parse(text(stdout).split("\n").at(-1)!);
}
