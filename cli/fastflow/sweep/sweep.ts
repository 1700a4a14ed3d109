/** Runs the environments of the measured sweep, each with processes and CPUs of its own. */
import { loaderVariables } from "../../../platform/process/loader_variables.ts";
import type { ExampleData } from "../data.ts";
import { RemoteHost } from "../remote_host.ts";
import { RemoteService } from "../remote_service.ts";
import { dividedMachine, type Lane } from "./cpus.ts";
import { CABLE, FAR_MS, isWaiting, nameOf, SWEPT, type SweptEnvironment } from "./environments.ts";
import type { TrainerResult, TrainerTask } from "./trainer.ts";

/** About how long it takes to start and stop the processes of an environment. */
const STARTING_MS = 4_000;
/** How many environments share two CPUs, if their processes wait most of the time. */
const WAITING_AT_ONCE = 3;
const MS_PER_MINUTE = 60_000;

/** An environment, and what was measured in it. */
export interface Swept extends TrainerResult {
  readonly environment: SweptEnvironment;
  /** Whether each process had CPUs that no other process of this program used. */
  readonly hasOwnCpus: boolean;
}

export interface SweepResults {
  readonly swept: readonly Swept[];
  /** How many environments ran at the same time. */
  readonly lanes: number;
  /** Why processes had no CPUs of their own, if they had none. */
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
  /** Receives what was found so far, each time that an environment is done. */
  readonly onDone: (found: SweepResults) => void;
}

/** The environments with these workloads, and how many there are. */
export function environmentsOf(letters: readonly string[]): readonly SweptEnvironment[] {
  return SWEPT.filter(({ letter }) => letters.includes(letter));
}

/** Measures all environments. */
export async function sweep(
  { letters, data, folder, minutes, onDone }: SweepOptions,
): Promise<SweepResults> {
  const { lanes, whyShared } = await dividedMachine();
  const whyNoCable = await RemoteHost.whyNot();
  const turns = turnsOf(environmentsOf(letters));
  const isCabled = ([{ link }]: Turn) => link !== "loopback";
  // There is one cable at a time: the environments that need it begin first, on one lane.
  const onCable = whyNoCable === undefined ? turns.filter(isCabled) : [];
  const queue = turns.filter((turn) => !isCabled(turn));
  const total = queue.length + onCable.length;
  const limitMs = Math.max(0, MS_PER_MINUTE * minutes * lanes.length / total - STARTING_MS);
  const swept: Swept[] = [];
  const failed: string[] = [];
  const found = (): SweepResults => ({
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
    onDone(found());
  };
  await Promise.all(lanes.map(async (lane, number) => {
    for (;;) {
      const turn = (number === 0 ? onCable.shift() : undefined) ?? queue.shift();
      if (turn === undefined) return;
      await Promise.all(turn.map((environment) => measure(environment, lane)));
    }
  }));
  return found();
}

/** Environments that run at the same time on two CPUs. */
type Turn = readonly [SweptEnvironment, ...SweptEnvironment[]];

/** The turns: one for each environment, but environments that wait share turns. */
function turnsOf(environments: readonly SweptEnvironment[]): Turn[] {
  const waiting = environments.filter(isWaiting);
  const alone = environments.filter((at) => !isWaiting(at)).map((at): Turn => [at]);
  for (let i = 0; i < waiting.length; i += WAITING_AT_ONCE) {
    alone.push([waiting[i]!, ...waiting.slice(i + 1, i + WAITING_AT_ONCE)]);
  }
  return alone;
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
  const { success, stdout, stderr } = await new Deno.Command(command!, {
    args: [...before, ...args],
    env: { NO_COLOR: "1", ...loaderVariables() },
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
  if (!success) {
    const lines = text(stderr).split("\n");
    throw new Error(lines.find((line) => line.startsWith("error:")) ?? lines.at(-1));
  }
  return JSON.parse(text(stdout).split("\n").at(-1)!);
}
