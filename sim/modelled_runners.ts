/**
 * Runners whose pipelines take the cores of a modelled host instead of this machine's: a batch comes
 * after so much virtual time, and a few bytes stand in its place.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";
import type { SplitTable } from "../data/splits.ts";
import type {
  Runner,
  RunnerFactory,
  RunnerOutcome,
  RunnerSettings,
  RunnerSplits,
} from "../actors/worker/runner.ts";
import { encodeMessage } from "../transport/codec.ts";
import type { ModelledCores } from "./modelled_cores.ts";
import type { SimRandom } from "./random.ts";

/** What travels in the place of a batch. */
function batchFrame(): Uint8Array {
  return encodeMessage(null, { roomForEnvelope: true });
}

/** Its size, in bytes. */
export const BATCH_FRAME_BYTES = batchFrame().byteLength;

/** What making batches costs. */
export interface ModelledPipeline {
  /** Core time of a batch, in ms, on average. */
  readonly batchMs: number;
  /** How much of that a batch takes less or more at most, 0 to 1; drawn evenly. */
  readonly batchSpread: number;
  /** On how many cores a batch is made at once, at most: the pipeline's parallel calls. */
  readonly parallelCalls: number;
  /** DYNAMIC: how many batches come of a split. */
  readonly batchesPerSplit: number;
}

/** What runners of a host need. */
export interface ModelledHost {
  readonly cores: ModelledCores;
  readonly random: SimRandom;
}

/** See the module. The stream has no end: after the last split of a repetition comes the next. */
export class ModelledRunners implements RunnerFactory {
  readonly #host: ModelledHost;
  readonly #pipeline: ModelledPipeline;
  readonly #table: SplitTable;

  /** @param table What listing the splits gives. */
  constructor(host: ModelledHost, pipeline: ModelledPipeline, table: SplitTable) {
    this.#host = host;
    this.#pipeline = pipeline;
    this.#table = table;
  }

  start(settings: RunnerSettings, splits: RunnerSplits): Runner {
    return new ModelledRunner(this.#host, this.#pipeline, settings.splits ? splits : undefined);
  }

  listSplits(): Promise<SplitTable> {
    return Promise.resolve(this.#table);
  }

  /** It holds nothing of this machine. */
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

  /** Batches are made side by side, as far as they are asked for and there are cores for them. */
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
