/**
 * Runners whose pipelines use the cores of a modelled host instead of real cores. A batch takes virtual
 * time, and a few bytes stand for it.
 */
import { LeatError } from "../../core/error.ts";
import type { SplitBounds } from "../../data/sharding/split_table.ts";
import type {
  Runner,
  RunnerFactory,
  RunnerOutcome,
  RunnerSettings,
  RunnerSplits,
} from "../../actors/worker/runner/runner.ts";
import { encodeMessage } from "../../transport/codec.ts";
import type { ModelledCores } from "./modelled_cores.ts";
import type { SimRandom } from "../engine/random.ts";

/** Makes the bytes that stand for a batch. */
function batchFrame(): Uint8Array {
  return encodeMessage(null, { roomForEnvelope: true });
}

/** Size of the bytes that stand for a batch. */
export const BATCH_FRAME_BYTES = batchFrame().byteLength;

/** The cost of batches. */
interface ModelledPipeline {
  /** Average core time of a batch, in ms. */
  readonly batchMs: number;
  /** Maximum deviation from `batchMs`, as a share from 0 to 1. The deviation is uniform. */
  readonly batchSpread: number;
  /** Maximum number of cores that make a batch in parallel: the pipeline's parallel calls. */
  readonly parallelCalls: number;
  /** Batches per split, under DYNAMIC. */
  readonly batchesPerSplit: number;
}

/** What runners need from their host. */
interface ModelledHost {
  readonly cores: ModelledCores;
  readonly random: SimRandom;
}

/** Runners of an endless stream. After the last split of a repetition, they read the next repetition. */
export class ModelledRunners implements RunnerFactory {
  readonly #host: ModelledHost;
  readonly #pipeline: ModelledPipeline;
  readonly #bounds: SplitBounds;

  /** @param bounds The splits of the dataset. */
  constructor(host: ModelledHost, pipeline: ModelledPipeline, bounds: SplitBounds) {
    this.#host = host;
    this.#pipeline = pipeline;
    this.#bounds = bounds;
  }

  start(settings: RunnerSettings, splits: RunnerSplits): Runner {
    return new ModelledRunner(this.#host, this.#pipeline, settings.splits ? splits : undefined);
  }

  listSplits(): Promise<SplitBounds> {
    return Promise.resolve(this.#bounds);
  }

  /** Does nothing, because there are no real resources to release. */
  close(): Promise<void> {
    return Promise.resolve();
  }
}

class ModelledRunner implements Runner {
  readonly bytesRead = 0;
  readonly #host: ModelledHost;
  readonly #pipeline: ModelledPipeline;
  readonly #splits: RunnerSplits | undefined;
  #split: Promise<void> = Promise.resolve();
  #last: Promise<unknown> = Promise.resolve();
  #repetition = 0;
  #batches = 0;
  #disposed = false;

  constructor(host: ModelledHost, pipeline: ModelledPipeline, splits: RunnerSplits | undefined) {
    this.#host = host;
    this.#pipeline = pipeline;
    this.#splits = splits;
  }

  /** Makes batches in parallel, as far as there are requests and cores. */
  next(): Promise<RunnerOutcome> {
    if (this.#splits !== undefined && this.#batches % this.#pipeline.batchesPerSplit === 0) {
      this.#split = this.#split.then(() => this.#nextSplit());
    }
    this.#batches++;
    const outcome = this.#inTurn(this.#make(this.#split), this.#last);
    this.#last = outcome;
    return outcome;
  }

  dispose(): void {
    this.#disposed = true;
  }

  async #inTurn(outcome: Promise<RunnerOutcome>, before: Promise<unknown>): Promise<RunnerOutcome> {
    await before;
    return await outcome;
  }

  async #make(split: Promise<void>): Promise<RunnerOutcome> {
    try {
      await split;
      if (this.#disposed) return { kind: "end" };
      const { cores, random } = this.#host;
      const { batchMs, batchSpread, parallelCalls } = this.#pipeline;
      const coreMs = batchMs * random.between(1 - batchSpread, 1 + batchSpread);
      await cores.work(coreMs, parallelCalls);
      return { kind: "element", frame: batchFrame() };
    } catch (error) {
      return { kind: "error", error: LeatError.from(error).toWire() };
    }
  }

  async #nextSplit(): Promise<void> {
    while (!this.#disposed && await this.#splits!.next(0, this.#repetition) === null) {
      this.#repetition++;
    }
  }
}
