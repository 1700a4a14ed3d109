/**
 * The analytic model of a pipeline (section 3.3.2 of the tf.data paper): how long its last operator
 * takes to give an element, as a function of parallelism and buffer sizes.
 *
 * Going down from the last operator it computes the request rate of each stage; going up it
 * computes output latencies. Latencies are in milliseconds an element, rates in elements a second.
 */

/** A number that may be tuned. During the search, `value` is a trial. */
export interface Setting {
  value: number;
}

export interface StageInput {
  readonly stage: Stage;
  /** Elements of the input for each element of the stage: the size of a batch. */
  readonly ratio: number;
}

/** One iterator of a running pipeline. */
export interface Stage {
  /**
   * - `sync`: works and reads its inputs one after the other.
   * - `prefetch`: its input runs while its consumer works.
   * - `calls`: several calls of its function run while its consumer works.
   * - `interleave`: several of its inputs are read at the same time.
   */
  readonly kind: "sync" | "prefetch" | "calls" | "interleave";
  /** Time that nothing else overlaps: on the thread, or waiting for files, in ms an element. */
  readonly serialMs: number;
  /** Time in calls that may overlap each other, in ms an element. */
  readonly callMs: number;
  /** How many calls, or inputs, run at once. 1 for other kinds. */
  readonly parallelism: Setting;
  /** How many elements it holds ready for its consumer. 0 for `sync`. */
  readonly buffer: Setting;
  /** The mean size of its elements in bytes, for the RAM budget. */
  readonly elementBytes: number;
  /** How many of its inputs are open at the same time: the cycle length of an interleave. */
  readonly inputsOpen: number;
  readonly inputs: readonly StageInput[];
}

/**
 * Equation 1: the probability that a buffer of `size` elements is empty at a request, as
 * an M/M/1/k queue. `produced` and `consumed` are rates in the same unit.
 */
export function emptyProbability(produced: number, consumed: number, size: number): number {
  if (!(produced < Infinity)) return consumed < Infinity ? 0 : 1 / (size + 1);
  if (!(consumed < Infinity)) return 1;
  const ratio = produced / consumed;
  if (Math.abs(ratio - 1) < 1e-9) return 1 / (size + 1);
  const power = ratio ** (size + 1);
  return power === Infinity ? 0 : (1 - ratio) / (1 - power);
}

/**
 * The expected output latency of `stage` in ms, if its consumer makes `consumed` requests a second.
 * `onStage` receives the latency of this stage and of each stage below.
 */
export function outputLatencyMs(
  stage: Stage,
  consumed: number,
  onStage?: (stage: Stage, latencyMs: number) => void,
): number {
  const requested = stage.kind === "interleave" ? consumed / stage.inputsOpen : consumed;
  const inputsMs = stage.inputs.reduce(
    (sum, { stage: input, ratio }) =>
      ratio === 0 ? sum : sum + ratio * outputLatencyMs(input, requested * ratio, onStage),
    0,
  );
  const parallelism = Math.max(1, stage.parallelism.value);
  const overlapping = stage.kind === "interleave" ? stage.callMs + inputsMs : stage.callMs;
  const alone = stage.kind === "interleave" ? 0 : inputsMs;
  const producedMs = alone + stage.serialMs + overlapping / parallelism;
  const size = stage.buffer.value;
  const latencyMs = stage.kind === "sync" || size <= 0
    ? producedMs
    : producedMs * emptyProbability(1_000 / producedMs, consumed, size);
  onStage?.(stage, latencyMs);
  return latencyMs;
}

/** A stage should be busy for at most this share of the time between two requests. */
const BUSY_MAX = 0.8;

/** The exponent of a norm over the stages. The higher it is, the less the faster stages count. */
const SLOWEST_NORM = 16;

/**
 * By how much the slowest stage is slower than the consumer, in ms for each element of `stage`.
 *
 * Equation 1 assumes that each consumer pauses between two requests. But an operator that reads
 * ahead does not pause while its buffer is not full. Without this time a slow stage below a buffer
 * would seem fast enough. Stages work side by side, so the slowest one sets the pace. A norm
 * replaces the maximum, because it falls as soon as one of several equally slow stages becomes
 * faster.
 */
export function overloadMs(stage: Stage, consumerMs: number): number {
  return overloadPower(stage, BUSY_MAX * consumerMs, 1) ** (1 / SLOWEST_NORM);
}

function overloadPower(stage: Stage, allowedMs: number, ratio: number): number {
  const ownMs = stage.serialMs + stage.callMs / Math.max(1, stage.parallelism.value);
  const own = stage.kind === "sync" ? 0 : Math.max(0, ratio * ownMs - allowedMs);
  return stage.inputs.reduce(
    (sum, input) => sum + overloadPower(input.stage, allowedMs, ratio * input.ratio),
    own ** SLOWEST_NORM,
  );
}

/** The bytes in full buffers, without the first element of each, which is always allowed. */
export function bufferedBytes(stage: Stage): number {
  const own = Math.max(0, stage.buffer.value - 1) * stage.elementBytes;
  return stage.inputs.reduce((sum, { stage: input }) => sum + bufferedBytes(input), own);
}
