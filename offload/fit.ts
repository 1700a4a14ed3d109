/** `fit`: trains on a dataset, and lets workers prepare a part of it if that is faster. */
import { LeatError } from "../core/error.ts";
import { checkInteger, invalidArgument, optionsOf } from "../data/check.ts";
import { Dataset } from "../data/dataset.ts";
import { installedHost } from "../data/host.ts";
import { OffloadNode } from "../data/operators/offload.ts";
import { figuresOf, type OffloadProgress } from "./figures.ts";
import { OffloadPlan, PROFILE_STEPS } from "./plan.ts";
import type { PlanningProgress } from "./planner.ts";
import {
  checkFunctions,
  checkPlanning,
  PLANNING,
  type PlanningOptions,
  planOffload,
  PROGRESS_EVERY_MS,
} from "./plan_offload.ts";

/** A training with at most this many times `profileSteps` steps is not measured. */
const SHORT = 4;

/** Options of {@linkcode fit}. */
export interface FitOptions<T, S> extends Omit<PlanningOptions, "service"> {
  /** The batches of one epoch. */
  readonly dataset: Dataset<T>;
  /** Makes one training step: changes `state`. */
  readonly trainStep: (batch: T, state: S) => unknown;
  /** The training state: the model and its optimiser. */
  readonly state: S;
  /**
   * Copies the training state, so that measuring does not train the model. Default:
   * `structuredClone`, which copies plain data and typed arrays. State that holds objects of your own
   * or a library's classes needs this function.
   */
  readonly cloneState?: (state: S) => S | Promise<S>;
  /** How often the dataset is read. Default 1. */
  readonly epochs?: number;
  /** The service that may prepare elements. Default: none, and nothing is offloaded. */
  readonly service?: PlanningOptions["service"];
  /**
   * `"auto"` (the default): measures and decides before the first step, unless the training has at
   * most four times `profileSteps` steps. `"never"`: prepares all elements here. A plan of
   * `planOffload()`: follows that plan.
   */
  readonly offload?: "auto" | "never" | OffloadPlan;
  /**
   * Whether the plan is changed while training runs: the ratio continuously, by the side that training
   * waits for, and sometimes the part that workers run. Has no effect with `deterministic`. Default:
   * true with `offload: "auto"`, else false.
   */
  readonly adapt?: boolean;
  /** Called with the plan, before the first step, and with each that replaces it. */
  readonly onPlan?: (plan: OffloadPlan) => void;
  /** Called about every second, also while planning, and after the last step. */
  readonly onProgress?: (progress: FitProgress) => void;
}

const fitOptions = optionsOf<FitOptions<unknown, unknown>>("fit", {
  ...{ dataset: true, trainStep: true, state: true, cloneState: true, epochs: true },
  ...PLANNING,
  ...{ offload: true, adapt: true, onPlan: true, onProgress: true },
});

/** How far the training is. */
export interface FitProgress {
  /** The epoch, from 0. */
  readonly epoch: number;
  /** Training steps made. */
  readonly steps: number;
  /** Time since the start of the first step, in ms. */
  readonly elapsedMs: number;
  /** What is being measured before the first step. Left out from then on. */
  readonly planning?: PlanningProgress;
  /** Where batches are prepared, and how many were. Left out if nothing is offloaded. */
  readonly offload?: OffloadProgress;
}

/** The result of a training. */
export interface FitReport extends FitProgress {
  /**
   * The last plan. Left out if `offload` was `"never"`, or if neither a service nor a plan was given.
   */
  readonly plan?: OffloadPlan;
  /** How long planning before the first step took, in ms. */
  readonly planningMs: number;
}

/**
 * Trains: calls `trainStep` with every batch of every epoch. With a service it first measures a few
 * steps on a copy of the state. Then it decides which part of the pipeline workers run, and for
 * what share of the data (FastFlow paper, algorithm 1). If training does not wait for data, nothing
 * is offloaded.
 * @throws {LeatError} `invalid_argument` for wrong options; the error of a batch; whatever
 * `trainStep` throws, also while it is measured. A service that fails is no error: its share is
 * prepared here until it is back.
 *
 * @example
 * ```ts
 * import { Dataset, fit, LocalCluster } from "../mod.ts";
 *
 * await using service = await LocalCluster.start({ workers: 1 });
 * const dataset = Dataset.range(1000).map((x) => Math.sqrt(x)).batch(10);
 * const report = await fit({
 *   dataset,
 *   state: { sum: 0 },
 *   trainStep: (batch, state) => {
 *     for (const x of batch.data) state.sum += Number(x);
 *   },
 *   service,
 *   profileSteps: 10,
 * });
 * console.log(report.steps, report.plan!.explain());
 * ```
 */
export async function fit<T, S>(options: FitOptions<T, S>): Promise<FitReport> {
  checkOptions(options);
  const { dataset, trainStep, state, epochs = 1, onPlan, onProgress } = options;
  const host = installedHost();
  const plannedFromMs = host.nowMs();
  let plan = await planFor(options);
  if (plan !== undefined) onPlan?.(plan);
  const batches = plan === undefined ? dataset : offloaded(options, plan);
  const planningMs = host.nowMs() - plannedFromMs;

  const figures = batches.node instanceof OffloadNode ? figuresOf(batches.node) : undefined;
  const startedAtMs = host.nowMs();
  let reportedAtMs = startedAtMs;
  let steps = 0;
  let epoch = 0;
  const progress = (): FitProgress => ({
    ...{ epoch, steps },
    elapsedMs: host.nowMs() - startedAtMs,
    ...(figures === undefined ? {} : { offload: figures.read() }),
  });
  for (; epoch < epochs; epoch++) {
    for await (const batch of batches) {
      const { plan: latest } = figures ?? {};
      if (latest !== undefined && latest !== plan) onPlan?.(plan = latest);
      await trainStep(batch, state);
      steps++;
      if (onProgress === undefined || host.nowMs() - reportedAtMs < PROGRESS_EVERY_MS) continue;
      reportedAtMs = host.nowMs();
      onProgress(progress());
    }
  }
  epoch = Math.max(0, epochs - 1);
  const last = progress();
  onProgress?.(last);
  return { ...last, ...(plan === undefined ? {} : { plan }), planningMs };
}

async function planFor<T, S>(options: FitOptions<T, S>): Promise<OffloadPlan | undefined> {
  const { offload = "auto", service, dataset, trainStep, state, onProgress } = options;
  if (offload instanceof OffloadPlan) return offload;
  if (offload === "never" || service === undefined) return undefined;
  const { profileSteps = PROFILE_STEPS, epochs = 1, speedUpThreshold } = options;
  const steps = dataset.cardinality() * epochs;
  if (epochs === 0 || steps >= 0 && steps <= SHORT * profileSteps) {
    return OffloadPlan.without("short training", { speedUpThreshold });
  }
  const { cloneState = copyOfData } = options;
  let copy: S;
  try {
    copy = await cloneState(state);
  } catch (cause) {
    throw new LeatError(
      "invalid_argument",
      `fit: the training state could not be copied (${LeatError.from(cause).message}), and ` +
        'measuring on it would train the model; give cloneState, or offload: "never"',
      { cause },
    );
  }
  return await planOffload(dataset, {
    ...planningOf(options),
    service,
    model: options.model ?? String(trainStep),
    trainStep: (batch) => trainStep(batch, copy),
    ...(onProgress === undefined ? {} : {
      onProgress: (planning) => onProgress({ epoch: 0, steps: 0, elapsedMs: 0, planning }),
    }),
  });
}

/** `structuredClone` keeps only the data of an object of a class: its methods would be missing. */
function copyOfData<S>(state: S): S {
  const copy = structuredClone(state);
  const lost = lostClass(state, copy, new Set());
  if (lost === undefined) return copy;
  throw new LeatError("invalid_argument", `structuredClone drops the methods of class ${lost}`);
}

/** The class of the first object of `state` whose copy is not of that class. */
function lostClass(state: unknown, copy: unknown, seen: Set<unknown>): string | undefined {
  if (typeof state !== "object" || state === null || seen.has(state)) return undefined;
  seen.add(state);
  const prototype = Object.getPrototypeOf(state);
  const isKept = prototype === null || prototype === Object.getPrototypeOf(Object(copy));
  if (!isKept) return `"${prototype.constructor?.name}"`;
  const copies = partsOf(Object(copy));
  for (const [i, part] of partsOf(state).entries()) {
    const lost = lostClass(part, copies[i], seen);
    if (lost !== undefined) return lost;
  }
  return undefined;
}

function partsOf(value: object): unknown[] {
  if (ArrayBuffer.isView(value)) return [];
  if (value instanceof Map) return [...value.keys(), ...value.values()];
  return value instanceof Set ? [...value] : Object.values(value);
}

function offloaded<T, S>(options: FitOptions<T, S>, plan: OffloadPlan): Dataset<T> {
  const { dataset, service, deterministic, offload = "auto", adapt = offload === "auto" } = options;
  const isFinal = service === undefined || !adapt || deterministic === true ||
    plan.decision.rule === "short training";
  if (plan.candidate === null && isFinal) return dataset;
  if (service === undefined) throw needsService();
  const { token, ca, compression, targetTags, bufferBytesMax, timeoutMs } = options;
  const { profileSteps, planningTimeoutMs } = options;
  const given = {
    ...{ token, ca, compression, targetTags, bufferBytesMax, timeoutMs },
    ...{ profileSteps, planningTimeoutMs, deterministic, adapt },
  };
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return dataset.offload({ service, plan, ...Object.fromEntries(set) });
}

function planningOf<T, S>(options: FitOptions<T, S>): Omit<PlanningOptions, "service"> {
  return Object.fromEntries(Object.entries(options).filter(([name]) => name in PLANNING));
}

function checkOptions<T, S>(options: FitOptions<T, S>): void {
  const { dataset, trainStep, epochs = 1, offload = "auto" } = fitOptions(options);
  if (!(dataset instanceof Dataset)) throw invalidArgument("fit", "dataset", "a Dataset", dataset);
  if (typeof trainStep !== "function") {
    throw invalidArgument("fit", "trainStep", "a function", trainStep);
  }
  checkInteger("fit", "epochs", epochs, 0);
  const { cloneState, onPlan, onProgress } = options;
  checkFunctions("fit", { cloneState, onPlan, onProgress });
  checkPlanning("fit", options);
  if (offload !== "auto" && offload !== "never" && !(offload instanceof OffloadPlan)) {
    throw invalidArgument("fit", "offload", '"auto", "never", or a plan of planOffload()', offload);
  }
}

function needsService(): LeatError {
  return new LeatError("invalid_argument", "fit: the plan offloads, so service must be given");
}
