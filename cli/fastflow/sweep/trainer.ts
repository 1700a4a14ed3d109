/**
 * The program of the trainer of one environment, which runs as a separate process. It plans, and then
 * measures the decision and the other choices. Its argument is a {@linkcode TrainerTask} as JSON, its
 * output a {@linkcode TrainerResult} as JSON.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Dataset,
  type OffloadChoice,
  type OffloadDecision,
  type OffloadMetrics,
  offloadProgress,
  planOffload,
} from "../../../mod.ts";
import { installHost } from "../../../data/host.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { workerFiles } from "../../../platform/storage/storage.ts";
import { Accelerator } from "../accelerator.ts";
import type { ExampleData } from "../data.ts";
import { type Length, TimedTraining, timeOfStep } from "../time_of_step.ts";
import { type Letter, WORKLOADS } from "../workloads.ts";
import {
  coarseChoices,
  finalistsOf,
  fineChoices,
  judge,
  type Timed,
  type Verdict,
} from "./choices.ts";
import { FAR_MS, speedOf, type SweptEnvironment } from "./environments.ts";

export interface TrainerTask {
  readonly environment: SweptEnvironment;
  readonly service: string;
  readonly data: ExampleData;
  /** The time limit of the trainer, in ms. */
  readonly limitMs: number;
}

export interface TrainerResult {
  readonly letter: Letter;
  readonly stepMs: number;
  readonly decision: OffloadDecision;
  readonly metrics: OffloadMetrics;
  readonly verdict: Verdict;
  /** How long planning took, in ms. */
  readonly planningMs: number;
  readonly rounds: number;
  /** Every choice of the search, measured once. */
  readonly first: readonly Timed[];
  /** The choices of `finalistsOf`, measured in each round. */
  readonly finals: readonly Timed[];
  /** The decision after its correction in training. Its candidate is `null` if nothing is offloaded. */
  readonly corrected: OffloadChoice;
  /** How often a service failed, so that this host took over. */
  readonly fallbacks: number;
}

/**
 * How many times the list of files is repeated. It is long, so that no run reaches the end of an
 * epoch, where new tasks would start.
 */
const EPOCH_ROUNDS = 64;
const STEPS_MAX = 600;
/** In the search, each choice is measured once, in a new task. The warm-up compiles its code. */
const SEARCH: Length = { steps: STEPS_MAX, warmUpSteps: 4, warmUpMs: 700, limitMs: 500 };
/** Compiles the code of a training. */
const WARM_UP: Length = { ...SEARCH, limitMs: 0 };
/** How many batches workers buffer: few, because they also buffer for trainings that wait. */
const BATCHES_BUFFERED = 12;
/** Time for workers to refill the buffers of the last training, which would slow the next one. */
const REFILL_MS = 400;
/** A warm-up that is long enough to use up a training's buffer. */
const BUFFERED = { warmUpSteps: 60, warmUpMs: 500 };
/** How long a training corrects the ratio before it is measured. */
const CORRECTION: Length = { steps: 500, limitMs: 4_000 };
/** The shortest measurement of a round, in ms. */
const ROUND_MS_MIN = 400;
const [ROUNDS_MIN, ROUNDS_MAX] = [3, 9];
const COST_STEPS = 48;

if (import.meta.main) {
  const task = JSON.parse(Deno.args[0]!) as TrainerTask;
  console.log(JSON.stringify(await run(task)));
}

async function run({ environment, service, data, limitMs }: TrainerTask): Promise<TrainerResult> {
  const untilMs = performance.now() + limitMs;
  const { letter, storage, step } = environment;
  if (storage === "far from all") {
    installHost(new DenoHost({ files: workerFiles({ storageLatencyMs: FAR_MS }) }));
  }
  const workload = WORKLOADS.find((at) => at.letter === letter)!;
  const files = workload.files(data);
  const paths = Array.from({ length: EPOCH_ROUNDS }, () => files.paths).flat();
  const dataset = workload.dataset({ ...files, paths });
  const stepMs = await timeOfBatch(dataset) / speedOf(environment, workload.coresWanted);
  const accelerator = new Accelerator(stepMs);
  const trainStep = () => step === "on the CPU" ? compute(stepMs) : accelerator.step();
  const plan = await planOffload(dataset, { service, trainStep });
  const { decision, metrics, planningMs } = plan;
  const batchBytes = Math.ceil(metrics.Gthp * stepMs / 1_000);
  const offloaded = (plan: OffloadChoice, adapt: boolean) =>
    dataset.offload({ service, plan, adapt, bufferBytesMax: BATCHES_BUFFERED * batchBytes });
  const batchesOf = (choice: OffloadChoice) =>
    choice.candidate === null ? dataset : offloaded(choice, false);

  const first: Timed[] = [];
  const search = async (choices: readonly OffloadChoice[]) => {
    for (const choice of choices) {
      first.push({ choice, times: [await timeOfStep(batchesOf(choice), trainStep, SEARCH)] });
    }
  };
  await search(coarseChoices(["p'1", "p'2", "p'3"]));
  await search(fineChoices(first));

  const finalists = finalistsOf(first, decision);
  // Trainings stay open, so that their code is compiled when they are measured.
  await using open = new AsyncDisposableStack();
  const opened = (batches: Dataset<unknown>) => open.use(new TimedTraining(batches, trainStep));
  const trainings = finalists.map((choice) => opened(batchesOf(choice)));
  for (const training of trainings) await training.time(WARM_UP);
  // The training that a user gets: it starts with the decision, and corrects the ratio.
  const correcting = opened(offloaded(plan, true));
  await correcting.time(CORRECTION);
  trainings.push(correcting);
  const times = trainings.map((): number[] => []);
  let rounds = 0;
  for (let roundMs = 0; rounds < ROUNDS_MAX; rounds++) {
    const fromMs = performance.now();
    if (rounds >= ROUNDS_MIN && fromMs + roundMs > untilMs) break;
    const measurementsLeft = Math.max(1, ROUNDS_MIN - rounds) * trainings.length;
    const limitMs = Math.max(ROUND_MS_MIN, (untilMs - fromMs) / measurementsLeft / 2);
    // Every round measures each choice once, so that other load on the machine affects all alike.
    const order = [...trainings.entries()];
    for (const [number, training] of rounds % 2 === 0 ? order : order.toReversed()) {
      await sleep(REFILL_MS);
      times[number]!.push(await training.time({ ...BUFFERED, steps: STEPS_MAX, limitMs }));
    }
    roundMs = performance.now() - fromMs;
  }
  const fallbacks = trainings.reduce((sum, { batches }) => sum + fallbacksOf(batches), 0);
  const finals = finalists.map((choice, number) => ({ choice, times: times[number]! }));
  const chosen = { candidate: decision.candidate, ratio: decision.ratio };
  const corrected = choiceNow(correcting.batches);
  return {
    ...{ letter, stepMs, decision, metrics, planningMs, rounds, first, finals, fallbacks },
    ...{ corrected, verdict: judge(chosen, finals, times.at(-1)!) },
  };
}

/** The choice that an offloaded training follows now. */
function choiceNow(batches: Dataset<unknown>): OffloadChoice {
  const { candidate = null, ratio } = offloadProgress(batches);
  return { candidate, ratio };
}

/** How often the service failed; 0 if the training uses none. */
function fallbacksOf(batches: Dataset<unknown>): number {
  return batches.node.kind === "offload" ? offloadProgress(batches).fallbacks : 0;
}

/** How long preparing a batch here takes, in ms. */
async function timeOfBatch(dataset: Dataset<unknown>): Promise<number> {
  return await timeOfStep(dataset, () => {}, { steps: COST_STEPS, warmUpSteps: COST_STEPS });
}

/** Uses the CPU for this many ms. */
function compute(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}
