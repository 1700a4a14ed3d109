/** Parallel `interleave`: the open datasets fetch their elements in parallel. */
import { checkInteger } from "../../check.ts";
import type { Outcome } from "../../elements/answer.ts";
import type { IteratorContext } from "../../context.ts";
import { END } from "../../iterator.ts";
import { parallelCalls } from "../../parallelism.ts";
import { isOfStream } from "../../iterators/reading_failure.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { DatasetFetcher, type FetcherState } from "./dataset_fetcher.ts";
import type { SpecCheck } from "../../elements/spec_check.ts";
import type { InterleaveNode } from "./interleave.ts";
import type { ReadAhead, ReadAheadState } from "./read_ahead.ts";
import { SteppingIterator } from "../unary.ts";

/** The beginning of messages about elements that do not fit the spec. */
export const OF_ITS_DATASETS = "interleave: an element of its datasets";

/** Blocks fetched ahead of each open dataset: one to give while the next is fetched. */
const BLOCKS_AHEAD = 2;

interface ParallelInterleaveState {
  readonly places: (ReadAheadState | null)[];
  readonly turn: number;
  readonly givenInBlock: number;
  readonly fetcher: FetcherState;
}

/**
 * Keeps `cycleLength` datasets open in their slots, and up to `numParallelCalls` more for the slots
 * that become empty next. If the order is kept, datasets enter the same slots in the same rounds as
 * without parallelism. Otherwise elements are given as they are ready, and a `ReadingFailure` after
 * all elements that were read before it.
 */
export class ParallelInterleave extends SteppingIterator {
  readonly #cycleLength: number;
  readonly #blockLength: number;
  readonly #inOrder: boolean;
  readonly #check: SpecCheck | undefined;
  readonly #fetcher: DatasetFetcher;
  readonly #places: (ReadAhead | undefined)[] = [];
  #turn = 0;
  #givenInBlock = 0;
  /** Only if the order is not kept: the `ReadingFailure` of a dataset, which is given last. */
  #failure: Outcome | undefined;

  constructor(context: IteratorContext, node: InterleaveNode, setting: number, inOrder: boolean) {
    super(context);
    const { cycleLength, blockLength } = node;
    const inFlightMax = parallelCalls(setting, context);
    this.#cycleLength = cycleLength;
    this.#blockLength = blockLength;
    this.#inOrder = inOrder;
    this.#check = node.check;
    this.#fetcher = new DatasetFetcher(
      context,
      this.input,
      node.fn,
      {
        cycleLength,
        answersMax: BLOCKS_AHEAD * blockLength,
        inFlightMax,
      },
      this.#places,
      () => this.#turn,
    );
  }

  override step(): unknown {
    if (this.disposed) return END;
    if (!this.#inOrder) this.#turnToReady();
    if (this.#failure !== undefined) return this.#giveRestBefore(this.#failure);
    const current = this.#places[this.#turn];
    if (current === undefined) return this.#enter();
    if (current.answers.length > 0) return this.#give(current);
    if (current.isOver) return this.#leave();
    this.#fetcher.fetchAhead();
    return current.answers.length > 0 || current.isOver ? AGAIN : this.#progress();
  }

  /** If the order is not kept: moves to the next slot with an answer. */
  #turnToReady(): void {
    if (this.#failure !== undefined) return;
    for (let i = 0; i < this.#cycleLength; i++) {
      const at = (this.#turn + i) % this.#cycleLength;
      if (this.#places[at]?.isOver) this.#places[at] = undefined;
      const place = this.#places[at] ??= this.#fetcher.takeNext();
      const answer = place?.answers.first;
      if (answer === undefined) continue;
      if (!isOfStream(answer)) return this.#fail(answer);
      if (i > 0) this.#givenInBlock = 0;
      this.#turn = at;
      return;
    }
  }

  /** Stops fetching, or endless datasets would delay the failure forever. */
  #fail(failure: Outcome): void {
    this.#failure = failure;
    this.#fetcher.stop();
  }

  /** Gives all answers fetched or in flight, and then `failure`. */
  #giveRestBefore(failure: Outcome): unknown {
    for (const ahead of [...this.#places, ...this.#fetcher.upcoming]) {
      const answer = ahead?.answers.first;
      if (answer !== undefined && isOfStream(answer)) return this.#take(ahead!);
    }
    if (this.#fetcher.isBusy) return this.#progress();
    throw failure.value;
  }

  /** Fills the empty slot with the next dataset. */
  #enter(): unknown {
    this.#fetcher.fetchAhead();
    const next = this.#fetcher.takeNext();
    if (next !== undefined) this.#places[this.#turn] = next;
    else if (!this.#fetcher.isExhausted) return this.#progress();
    else if (this.#places.every((place) => place === undefined)) return END;
    else this.#advance();
    return AGAIN;
  }

  /** The end of a dataset also ends its block. */
  #leave(): typeof AGAIN {
    this.#places[this.#turn] = undefined;
    this.#advance();
    return AGAIN;
  }

  #give(current: ReadAhead): unknown {
    // If making a dataset failed, the slot is free for the next dataset.
    if (current.failedToOpen) this.#places[this.#turn] = undefined;
    else if (isOfStream(current.answers.first!) && ++this.#givenInBlock === this.#blockLength) {
      this.#advance();
    }
    return this.#take(current);
  }

  #take({ answers }: ReadAhead): unknown {
    const { failed, value } = answers.shift()!;
    this.#fetcher.taken();
    this.#fetcher.fetchAhead();
    if (failed) throw value;
    if (this.#check === undefined || this.#check.fits(value)) return this.stats.gave(value);
    throw this.stats.failed(this.#check.failure(value, OF_ITS_DATASETS));
  }

  #advance(): void {
    this.#givenInBlock = 0;
    // Slots that never held a dataset are skipped once no more datasets come.
    const places = this.#fetcher.isExhausted ? this.#places.length : this.#cycleLength;
    this.#turn = this.#turn + 1 < places ? this.#turn + 1 : 0;
  }

  #progress(): Promise<unknown> {
    return this.arrival(this.#fetcher.progress());
  }

  protected override async ownState(): Promise<ParallelInterleaveState> {
    await this.#fetcher.rest();
    const places: (ReadAheadState | null)[] = [];
    for (let at = 0; at < this.#places.length; at++) {
      const place = this.#places[at]; // some may never have been used
      places.push(place === undefined || place.isUnread ? null : await place.save());
    }
    return {
      places,
      turn: this.#turn,
      givenInBlock: this.#givenInBlock,
      fetcher: await this.#fetcher.save(),
    };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { places, turn, givenInBlock, fetcher } = state as ParallelInterleaveState;
    await this.#fetcher.restore(fetcher);
    for (const place of places) {
      this.#places.push(place === null ? undefined : await this.#fetcher.restoreOne(place));
    }
    this.#turn = checkInteger(
      "restore",
      "turn",
      turn,
      0,
      Math.max(this.#cycleLength, places.length) - 1,
    );
    this.#givenInBlock = givenInBlock;
  }

  protected override release(): void {
    super.release();
    this.#fetcher.dispose();
    for (const place of this.#places.splice(0)) place?.dispose();
  }
}
