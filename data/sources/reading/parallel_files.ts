/** Reads several files in round-robin order. */
import { LeatError, type WireError } from "../../../core/error.ts";
import { restoreError } from "../../elements/answer.ts";
import type { IteratorContext } from "../../context.ts";
import { END, type Pulled } from "../../iterator.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";
import { stepOn } from "../../iterators/stepping.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";
import {
  FileSourceIterator,
  type OpenReading,
  type SavedReading,
  saveReading,
} from "./file_iterator.ts";
import type { FileSourceNode } from "../file_source.ts";

/** One of the files that are read concurrently, and its next element, which is prefetched. */
interface Lane {
  reading: OpenReading | undefined;
  /** The next element; `undefined` if the lane has no file. */
  pulled: Pulled<unknown> | undefined;
  /** The file to open, if opening it failed because of the storage. */
  unopened: unknown;
}

/** The saved state of a lane. Its file's position is after the prefetched element. */
interface SavedLane {
  readonly reading: SavedReading | undefined;
  readonly pulled:
    | { element: unknown }
    | { error: WireError }
    | { unopened: unknown }
    | "end"
    | undefined;
}

interface ParallelState {
  readonly lanes: readonly SavedLane[];
  /** The index of the lane that gives the next element. */
  readonly turn: number;
  readonly started: boolean;
  readonly inputEnded: boolean;
}

/**
 * Returns elements of several files in round-robin order. Lanes also get their files in that order, so
 * the order of elements does not depend on which file responds first.
 */
export class ParallelFiles extends FileSourceIterator {
  readonly #lanes: Lane[];
  #turn = 0;
  #started = false;
  #inputEnded = false;

  constructor(context: IteratorContext, node: FileSourceNode) {
    super(context, node);
    this.#lanes = Array.from(
      { length: node.numParallelReads },
      () => ({ reading: undefined, pulled: undefined, unopened: undefined }),
    );
  }

  override next(): Pulled<unknown> {
    if (this.disposed) return END;
    if (!this.#started) return this.#nextLater();
    const lane = this.#lanes[this.#turn];
    const pulled = lane?.pulled;
    if (lane === undefined || pulled === undefined || pulled === END || pulled instanceof Promise) {
      return this.#nextLater();
    }
    return this.#give(lane, pulled);
  }

  /** Waits for every element in flight, because a file has no position during a read. */
  protected override async ownState(): Promise<ParallelState> {
    const lanes: SavedLane[] = [];
    for (const lane of this.#lanes) {
      const pulled = await savePulled(lane);
      lanes.push({ pulled, reading: lane.reading && saveReading(lane.reading) });
    }
    return { lanes, turn: this.#turn, started: this.#started, inputEnded: this.#inputEnded };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { lanes, turn, started, inputEnded } = state as ParallelState;
    for (const [i, { reading, pulled }] of lanes.map(wholeState).entries()) {
      const lane = this.#lanes[i]!;
      if (reading !== undefined) lane.reading = await this.reopen(reading);
      this.#restorePulled(lane, pulled);
    }
    this.#turn = turn;
    this.#started = started;
    this.#inputEnded = inputEnded;
  }

  /** Reads what the saved iterator could not read because of the storage. */
  #restorePulled(lane: Lane, saved: SavedLane["pulled"]): void {
    if (saved === undefined) this.#fetch(lane);
    else if (saved === "end") lane.pulled = END;
    else if ("unopened" in saved) lane.pulled = observed(this.#openAndPull(lane, saved.unopened));
    else if ("error" in saved) lane.pulled = observed(Promise.reject(restoreError(saved.error)));
    else lane.pulled = wholeState(saved).element;
  }

  async #nextLater(): Promise<unknown> {
    if (!this.#started) await this.#start();
    for (let idle = 0; idle < this.#lanes.length && !this.disposed;) {
      const lane = this.#lanes[this.#turn]!;
      if (lane.pulled === undefined && !await this.#assignFile(lane)) {
        this.#advance();
        idle++;
        continue;
      }
      idle = 0;
      const element = await this.#elementOf(lane);
      if (element !== END) return this.disposed ? END : this.#give(lane, element);
      // At the end of its file, a lane opens its next file and skips its turn, as in `interleave`.
      this.#closeFile(lane);
      await this.#assignFile(lane).catch((error) => {
        // Makes the next call find the end of this file again.
        if (error instanceof ReadingFailure) lane.pulled = END;
        throw error;
      });
      this.#advance();
    }
    return END;
  }

  /** Opens the first file of every lane concurrently. */
  async #start(): Promise<void> {
    try {
      for (const lane of this.#lanes) {
        // Lanes that have a file got it in an earlier call, before the input failed.
        if (lane.pulled === undefined && !await this.#assignFile(lane)) break;
      }
      this.#started = true;
    } catch (error) {
      this.#started = !(error instanceof ReadingFailure);
      throw error;
    }
  }

  /** Assigns a lane its next file, and starts to open it; false if there are no more files. */
  async #assignFile(lane: Lane): Promise<boolean> {
    if (this.#inputEnded) return false;
    const pulled = this.input.next();
    const item = pulled instanceof Promise ? await this.arrival(pulled) : pulled;
    if (item === END || this.disposed) {
      this.#inputEnded = true;
      return false;
    }
    lane.pulled = observed(this.#openAndPull(lane, item));
    return true;
  }

  async #openAndPull(lane: Lane, item: unknown): Promise<unknown> {
    try {
      lane.reading = await this.openReading(item);
    } catch (error) {
      if (error instanceof ReadingFailure) lane.unopened = item;
      throw error;
    }
    return lane.reading === undefined ? END : await this.#pull(lane.reading);
  }

  /**
   * Waits for a lane's element. After the error of an element, the next lane has its turn. After a
   * `ReadingFailure` nothing is read: the lane keeps it, and every later call fails with it.
   */
  async #elementOf(lane: Lane): Promise<unknown> {
    try {
      return await lane.pulled;
    } catch (error) {
      if (!(error instanceof ReadingFailure)) {
        this.#fetch(lane);
        this.#advance();
      }
      throw error;
    }
  }

  #give(lane: Lane, element: unknown): unknown {
    const { reading } = lane;
    this.#fetch(lane);
    this.#advance();
    return this.give(element, reading!);
  }

  /** Starts to fetch a lane's next element. A lane whose file could not be opened gets another file. */
  #fetch(lane: Lane): void {
    lane.pulled = lane.reading === undefined ? undefined : this.#pull(lane.reading);
  }

  #pull({ reader }: OpenReading): Pulled<unknown> {
    try {
      const pulled = stepOn(reader, this.context.pacer);
      return pulled instanceof Promise ? observed(pulled) : pulled;
    } catch (error) {
      return observed(Promise.reject(error));
    }
  }

  #closeFile(lane: Lane): void {
    if (lane.reading !== undefined) this.closeReading(lane.reading);
    lane.reading = undefined;
    lane.pulled = undefined;
  }

  #advance(): void {
    this.#turn = (this.#turn + 1) % this.#lanes.length;
  }

  protected override release(): void {
    for (const lane of this.#lanes) lane.pulled = lane.reading = undefined;
    super.release();
  }
}

/** A `ReadingFailure` is not saved, because the restored iterator reads the element again. */
async function savePulled(lane: Lane): Promise<SavedLane["pulled"]> {
  try {
    const element = await lane.pulled;
    if (element === END) return "end";
    return element === undefined ? undefined : { element };
  } catch (error) {
    if (error instanceof ReadingFailure) {
      return lane.unopened === undefined ? undefined : { unopened: lane.unopened };
    }
    return { error: LeatError.from(error).toWire() };
  }
}

/** Prevents an unhandled rejection: the promise may be awaited later, or never. */
function observed<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
