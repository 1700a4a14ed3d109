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
}

/** The saved state of a lane. The position of its file is after the prefetched element. */
interface SavedLane {
  readonly reading: SavedReading | undefined;
  readonly pulled: { element: unknown } | { error: WireError } | "end" | undefined;
}

interface ParallelState {
  readonly lanes: readonly SavedLane[];
  /** The index of the lane that gives the next element. */
  readonly turn: number;
  readonly started: boolean;
  readonly inputEnded: boolean;
}

/**
 * Gives elements of several files in round-robin order. Lanes get their files in that order, too, so
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
      () => ({ reading: undefined, pulled: undefined }),
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

  /** Waits for every element in flight: during a read, a file has no position. */
  protected override async ownState(): Promise<ParallelState> {
    const lanes: SavedLane[] = [];
    for (const lane of this.#lanes) {
      const pulled = await savePulled(lane.pulled);
      lanes.push({ pulled, reading: lane.reading && saveReading(lane.reading) });
    }
    return { lanes, turn: this.#turn, started: this.#started, inputEnded: this.#inputEnded };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { lanes, turn, started, inputEnded } = state as ParallelState;
    for (const [i, { reading, pulled }] of lanes.map(wholeState).entries()) {
      const lane = this.#lanes[i]!;
      lane.pulled = restorePulled(pulled);
      if (reading !== undefined) lane.reading = await this.reopen(reading);
    }
    this.#turn = turn;
    this.#started = started;
    this.#inputEnded = inputEnded;
  }

  async #nextLater(): Promise<unknown> {
    if (!this.#started) await this.#start();
    for (let idle = 0; idle < this.#lanes.length && !this.disposed;) {
      const lane = this.#lanes[this.#turn]!;
      if (lane.pulled === undefined && !await this.#enter(lane)) {
        this.#advance();
        idle++;
        continue;
      }
      idle = 0;
      const element = await this.#arrived(lane);
      if (element !== END) return this.disposed ? END : this.#give(lane, element);
      // At the end of a file, its lane loses a turn, as in `interleave`, and opens its next file.
      this.#leave(lane);
      await this.#enter(lane).catch((error) => {
        // So that the next call finds the end of this file again.
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
        // Lanes that have a file got it in an earlier call, in which the input then failed.
        if (lane.pulled === undefined && !await this.#enter(lane)) break;
      }
      this.#started = true;
    } catch (error) {
      this.#started = !(error instanceof ReadingFailure);
      throw error;
    }
  }

  /** Gives a lane its next file; false if there are no more. */
  async #enter(lane: Lane): Promise<boolean> {
    if (this.#inputEnded) return false;
    const pulled = this.input.next();
    const given = pulled instanceof Promise ? await this.arrival(pulled) : pulled;
    if (given === END || this.disposed) {
      this.#inputEnded = true;
      return false;
    }
    lane.pulled = observed(this.#openAndPull(lane, given));
    return true;
  }

  async #openAndPull(lane: Lane, given: unknown): Promise<unknown> {
    lane.reading = await this.openReading(given);
    return lane.reading === undefined ? END : await this.#pull(lane.reading);
  }

  /** A lane's element. After an error, the next lane has its turn. */
  async #arrived(lane: Lane): Promise<unknown> {
    try {
      return await lane.pulled;
    } catch (error) {
      this.#fetch(lane);
      this.#advance();
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

  #leave(lane: Lane): void {
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

async function savePulled(pulled: Pulled<unknown> | undefined): Promise<SavedLane["pulled"]> {
  try {
    const element = await pulled;
    if (element === END) return "end";
    return element === undefined ? undefined : { element };
  } catch (error) {
    return { error: LeatError.from(error).toWire() };
  }
}

function restorePulled(saved: SavedLane["pulled"]): Pulled<unknown> | undefined {
  if (saved === undefined) return undefined;
  if (saved === "end") return END;
  if ("error" in saved) return observed(Promise.reject(restoreError(saved.error)));
  return wholeState(saved).element;
}

/** Prevents an unhandled rejection: the promise may be awaited later, or never. */
function observed<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
