/** Plans the offloading of a dataset before it is trained on. */
import { checkInteger, invalidArgument, optionsOf, TIMER_MS_MAX } from "../data/check.ts";
import { Dataset } from "../data/dataset.ts";
import { type Host, installedHost } from "../data/host.ts";
import { OffloadNode, offloadOf, type OffloadOptions } from "../data/operators/offload.ts";
import { figuresOf, type OffloadProgress } from "./figures.ts";
import type { OffloadPlan } from "./plan.ts";
import type { PlanningProgress } from "./planner.ts";

/** Reports of progress are at least this many ms apart, except at the start of a measurement. */
export const PROGRESS_EVERY_MS = 1_000;

/** Options of measuring, for `planOffload()` and `fit()`. */
export interface PlanningOptions extends Omit<OffloadOptions, "plan" | "stepMs" | "adapt"> {
  /**
   * The file of the metric store, made if it is missing. A later run with the same pipeline, model and
   * resources reads the metrics from it instead of measuring. Default: none.
   */
  readonly metricsStore?: string;
  /**
   * Names the model and the accelerator in the metric store. Default: the text of `trainStep`. Set it
   * if the same text trains several models, such as `(batch, model) => model.train(batch)`.
   */
  readonly model?: string;
  /**
   * Describes the workers in the metric store: how many, of what kind. Default: the service's
   * address and `targetTags`.
   */
  readonly remoteResources?: string;
  /** The least Gthp / Lthp at which anything is offloaded. Default 1.1, the paper's. */
  readonly speedUpThreshold?: number;
}

/** The names of {@linkcode PlanningOptions}. */
export const PLANNING: { readonly [name in keyof Required<PlanningOptions>]: true } = {
  service: true,
  token: true,
  ca: true,
  compression: true,
  targetTags: true,
  bufferBytesMax: true,
  profileSteps: true,
  planningTimeoutMs: true,
  timeoutMs: true,
  deterministic: true,
  metricsStore: true,
  model: true,
  remoteResources: true,
  speedUpThreshold: true,
};

/** Options of {@linkcode planOffload}. */
export interface PlanOffloadOptions<T> extends PlanningOptions {
  /**
   * One training step, for measuring. It is called several times with the same batches. It must not
   * change anything that training uses, so give it a copy of the model. Default: a step takes no time,
   * so elements are wanted as fast as possible.
   */
  readonly trainStep?: (batch: T) => unknown;
  /** Called when a measurement begins, and about every second. */
  readonly onProgress?: (progress: PlanningProgress) => void;
}

/** @throws {LeatError} `invalid_argument` for wrong options. It does not check those of `offload()`. */
export function checkPlanning(
  where: string,
  options: Omit<PlanningOptions, "service">,
): void {
  const { metricsStore, model, remoteResources, speedUpThreshold } = options;
  const { profileSteps, planningTimeoutMs } = options;
  for (const [name, value] of Object.entries({ metricsStore, model, remoteResources })) {
    if (value !== undefined && typeof value !== "string") {
      throw invalidArgument(where, name, "a string", value);
    }
  }
  for (const [name, value] of Object.entries({ profileSteps, planningTimeoutMs })) {
    if (value !== undefined) checkInteger(where, name, value, 1, TIMER_MS_MAX);
  }
  const isNumber = typeof speedUpThreshold === "number" && speedUpThreshold > 0;
  if (speedUpThreshold !== undefined && !isNumber) {
    throw invalidArgument(where, "speedUpThreshold", "a number above 0", speedUpThreshold);
  }
}

/** @throws {LeatError} `invalid_argument` for anything but a function or `undefined`. */
export function checkFunctions(where: string, functions: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(functions)) {
    if (value !== undefined && typeof value !== "function") {
      throw invalidArgument(where, name, "a function", value);
    }
  }
}

const planOptions = optionsOf<PlanOffloadOptions<unknown>>("planOffload", {
  ...PLANNING,
  trainStep: true,
  onProgress: true,
});

/**
 * Measures a pipeline here and remotely, and decides what to offload, by algorithm 1 of the
 * FastFlow paper (sections 4 and 5). It takes some hundred training steps.
 * @throws {LeatError} `failed_precondition` for a dataset without elements; the error of
 * `trainStep`, or of an element of the local pipeline if no other follows or 17 in a row fail. A
 * service that fails is no error: then nothing is offloaded.
 *
 * @example
 * ```ts
 * import { Dataset, LocalCluster, planOffload } from "../mod.ts";
 *
 * await using service = await LocalCluster.start({ workers: 1 });
 * const dataset = Dataset.range(1000).map((x) => Math.sqrt(x)).batch(10);
 * const plan = await planOffload(dataset, { service, profileSteps: 10 });
 * console.log(plan.explain());
 * const batches = dataset.offload({ service, plan });
 * ```
 */
export async function planOffload<T>(
  dataset: Dataset<T>,
  given: PlanOffloadOptions<T>,
): Promise<OffloadPlan> {
  const checked = planOptions(given);
  const { trainStep, onProgress, profileSteps, planningTimeoutMs, ...options } = checked;
  const { metricsStore, model, remoteResources, speedUpThreshold, ...service } = options;
  if (!(dataset instanceof Dataset)) {
    throw invalidArgument("planOffload", "dataset", "a Dataset", dataset);
  }
  checkPlanning("planOffload", checked);
  checkFunctions("planOffload", { trainStep, onProgress });
  const pipeline = dataset.node;
  // Most programs do not plan.
  const { plan } = await import("./planner.ts");
  const host = installedHost();
  return await plan({
    pipeline,
    // The constructor checks the options.
    service: new OffloadNode(pipeline, service).options,
    host,
    train: trainStep as ((batch: unknown) => unknown) | undefined,
    model: model ?? String(trainStep),
    ...{ profileSteps, planningTimeoutMs, metricsStore, remoteResources, speedUpThreshold },
    onProgress: onProgress && reported(onProgress, host),
  });
}

/** Reports the first step of each measurement, and then about one a second. */
function reported(
  onProgress: (progress: PlanningProgress) => void,
  host: Pick<Host, "nowMs">,
): (progress: PlanningProgress) => void {
  let reportedAtMs = -Infinity;
  return (progress) => {
    if (progress.step > 1 && host.nowMs() - reportedAtMs < PROGRESS_EVERY_MS) return;
    reportedAtMs = host.nowMs();
    onProgress(progress);
  };
}

/**
 * What the iterators of an offloaded dataset have done so far.
 * @throws {LeatError} `invalid_argument` for a dataset that is not the result of `offload()`. Only
 * options may follow it.
 *
 * @example
 * ```ts
 * import { Dataset, LocalCluster, offloadProgress } from "../mod.ts";
 *
 * await using service = await LocalCluster.start({ workers: 1 });
 * const plan = { candidate: "p'3", ratio: 0.5 };
 * const batches = Dataset.range(100).batch(10).offload({ service, plan });
 * for await (const _ of batches);
 * console.log(offloadProgress(batches).remote.elements); // 5
 * ```
 */
export function offloadProgress(dataset: Dataset<unknown>): OffloadProgress {
  const node = offloadOf(dataset.node);
  if (node !== undefined) return figuresOf(node).read();
  throw invalidArgument("offloadProgress", "dataset", "the result of offload()", dataset);
}
