/** The remote side of the conditional operator: reads chosen splits from the workers of a service. */
import { Feed, type FeedItem } from "../../actors/client/feed.ts";
import { LeatError } from "../../core/error.ts";
import type { Host } from "../../data/host.ts";
import { END } from "../../data/iterator.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import type { Item, Side } from "./items.ts";
import type { SourceReader } from "./source_reader.ts";
import { type OpenUpper, UpperPart } from "./upper_part.ts";
import type { Supply } from "./wait_meter.ts";

/** Starts to read splits into a feed. Returns a function that stops it. */
export type OpenRemote = (sequences: readonly number[], feed: Feed) => () => void;

export interface RemoteSideOptions {
  readonly host: Pick<Host, "sleep" | "nowMs">;
  readonly open: OpenRemote;
  /** Limit of the wait for one item, in ms. */
  readonly timeoutMs: number;
  /** What clients report of the plan to the service. */
  readonly report: Feed["offload"];
  /** p'1: reads the source for workers. */
  readonly source?: SourceReader | undefined;
  /** Runs the operators above the part that workers run. Left out: there are none. */
  readonly openUpper?: OpenUpper | undefined;
}

/** Reads splits that workers produce, in order. */
export class RemoteSide implements Side {
  readonly #options: RemoteSideOptions;
  readonly #feed = new Feed();
  readonly #stop: () => void;
  /** The splits whose items are given. Those of others are dropped. */
  #owned: Set<number>;
  /** The first item, if `probe()` has taken it. */
  #first: Promise<FeedItem> | undefined;
  /** Whether an item has arrived: the service works. */
  #hasReceived = false;
  #failure: ReadingFailure | undefined;
  #aheadSinceMs: number | undefined;
  readonly #upper: UpperPart | undefined;
  /** Whether items are taken for `#upper` before training asks for one. */
  #isAhead = false;
  /** Resolves when something has arrived, or training asks. */
  #wakened: PromiseWithResolvers<void> | undefined;

  /** @throws LeatError when the service's address or the pipeline is invalid. */
  constructor(sequences: readonly number[], options: RemoteSideOptions) {
    this.#options = options;
    this.#owned = new Set(sequences);
    this.#feed.offload = options.report;
    this.#feed.onKept = () => {
      this.#aheadSinceMs ??= options.host.nowMs();
      this.#wake();
    };
    const { openUpper, host } = options;
    this.#upper = openUpper &&
      new UpperPart(openUpper, () => this.#nextOfWorkers(), () => host.nowMs());
    if (options.source !== undefined) this.#feed.readSource = options.source.read;
    this.#stop = options.open(sequences, this.#feed);
  }

  get aheadSinceMs(): number | undefined {
    if (this.#upper !== undefined) return this.#upper.readySinceMs;
    return this.#feed.length > 0 ? this.#aheadSinceMs : undefined;
  }

  /** Where this host makes batches, a whole one must be there. */
  get isReady(): boolean {
    return this.#upper === undefined
      ? this.#feed.length > 0
      : this.#upper.readySinceMs !== undefined;
  }

  get supply(): Supply {
    const { bytes = 0, bufferedBytes = 0 } = this.#feed.stats() ?? {};
    return { takenBytes: bytes, bufferedBytes };
  }

  get owned(): ReadonlySet<number> {
    return this.#owned;
  }

  /** How many tasks it reads from. */
  get tasks(): number {
    return this.#feed.stats()?.reads.length ?? 0;
  }

  get hasReceived(): boolean {
    return this.#hasReceived;
  }

  /** Why the service cannot continue; undefined while it can. */
  get failure(): ReadingFailure | undefined {
    return this.#failure;
  }

  /** From now on, drops items of other splits. The split in progress must be among `sequences`. */
  keep(sequences: readonly number[]): void {
    this.#owned = new Set(sequences);
  }

  /** Notes that all items of a split were given. */
  finished(sequence: number): void {
    this.#owned.delete(sequence);
  }

  /** Waits for the first item in the background, then sets `hasReceived` or `failure`. */
  probe(): void {
    this.#first = this.#take();
    this.#first.catch(() => {});
  }

  /** Lets this host assemble one item ahead, if it has to. All splits that are left must be owned. */
  prepare(): void {
    if (this.#upper === undefined) return;
    this.#isAhead = true;
    this.#upper.prepare();
  }

  next(): Promise<Item | typeof END> {
    return this.#upper === undefined ? this.#nextOfWorkers() : this.#nextAssembled(this.#upper);
  }

  async #nextAssembled(upper: UpperPart): Promise<Item | typeof END> {
    this.#isAhead = false;
    this.#wake();
    const item = await upper.next();
    this.prepare();
    return item;
  }

  /** The next item of the part that workers run. */
  async #nextOfWorkers(): Promise<Item | typeof END> {
    for (;;) {
      const first = this.#first;
      this.#first = undefined;
      if (first === undefined && this.#isAhead) await this.#untilNeeded();
      const fed = await (first ?? this.#take());
      if (fed.kind === "end") return END;
      const { place } = fed;
      if (place === undefined) throw this.#fail(fed);
      if (!this.#owned.has(place.sequence)) continue;
      if (fed.kind === "error") {
        if (fed.isFinal === true) throw this.#fail(fed);
        return { kind: "error", place, error: LeatError.fromWire(fed.error) };
      }
      if (fed.kind === "split_end") return { kind: "split_end", place };
      const decoded = this.#feed.decode(fed);
      return fed.kind === "element"
        ? { kind: "element", place, element: decoded }
        : { kind: "remainder", place, rows: decoded };
    }
  }

  /** The limit of a wait begins only when training asks: until then workers may be slow. */
  async #untilNeeded(): Promise<void> {
    while (this.#isAhead && this.#feed.length === 0 && !this.#feed.closed) {
      await (this.#wakened ??= Promise.withResolvers()).promise;
    }
  }

  #wake(): void {
    this.#wakened?.resolve();
    this.#wakened = undefined;
  }

  dispose(): void {
    this.#upper?.dispose();
    this.#stop();
    // A pending `take()` gets the end.
    this.#feed.end();
    this.#feed.drop();
    this.#wake();
    this.#options.source?.dispose();
  }

  async #take(): Promise<FeedItem> {
    const { host, timeoutMs } = this.#options;
    try {
      const fed = this.#feed.take();
      if (this.#feed.length === 0) this.#aheadSinceMs = undefined;
      if (!(fed instanceof Promise)) return this.#received(fed);
      const waited = new AbortController();
      const timeout = host.sleep(timeoutMs, waited.signal).then(() => {
        throw new LeatError(
          "deadline_exceeded",
          `No element came from the service for ${timeoutMs} ms`,
        );
      });
      timeout.catch(() => {});
      try {
        return this.#received(await Promise.race([fed, timeout]));
      } finally {
        waited.abort(new LeatError("cancelled", "The element has arrived"));
      }
    } catch (error) {
      throw this.#failure = ReadingFailure.of(error);
    }
  }

  #received(fed: FeedItem): FeedItem {
    if (!(fed.kind === "error" && fed.place === undefined)) this.#hasReceived = true;
    return fed;
  }

  #fail(fed: FeedItem): ReadingFailure {
    const error = fed.kind === "error"
      ? LeatError.fromWire(fed.error)
      : new LeatError("internal", `The service sent "${fed.kind}" without a position`);
    return this.#failure = new ReadingFailure(error);
  }
}
