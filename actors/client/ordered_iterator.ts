/**
 * Reads a stream in order. Rows that are left over at the ends of splits are joined to batches. A
 * saved position is a few numbers.
 */
import { LeatError } from "../../core/error.ts";
import { definedFields, isPlainObject } from "../../core/tree.ts";
import type { IteratorContext } from "../../data/context.ts";
import { ElementIterator, END, type Pulled } from "../../data/iterator.ts";
import type { OrderedChain } from "../../data/deterministic/chain.ts";
import { type CarriedRows, type Joined, RemainderJoin } from "../../data/deterministic/join.ts";
import { batchSizeOf } from "../../data/deterministic/split_run.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import type { Payload } from "../../transport/payload.ts";
import type { StreamPosition } from "../worker/protocol.ts";
import type { ClientOptions } from "./client.ts";
import { Feed, type FeedItem } from "./feed.ts";
import type { Numbering } from "./readers/numbering.ts";
import { isCount } from "../../core/count.ts";

/** Where the stream resumes: everything that is saved. */
interface Position {
  /** The position of the next split in the order of splits. */
  readonly sequence: number;
  /** How many items of that split the training loop has taken. */
  readonly given: number;
  /** Rows of earlier splits that wait to fill a batch. */
  readonly carried: readonly CarriedRows[];
  /** The digest of the table of splits; null before it is known. */
  readonly digest: string | null;
  readonly ended: boolean;
  /** With consumers: the number of the next element, counting all consumers' elements. */
  readonly number?: number;
  /** With consumers: some consumer has got an element, so the stream is not empty. */
  readonly hasElements?: true;
}

/** @throws LeatError `invalid_argument` for a state that `save()` did not write. */
function checkPosition({ sequence, given, carried, digest, ended, number = 0 }: Position): void {
  const isPosition = [sequence, given, number].every(isCount) && typeof ended === "boolean" &&
    (digest === null || typeof digest === "string") && Array.isArray(carried) &&
    carried.every((rest) => isPlainObject(rest) && isCount(rest.sequence) && isCount(rest.rows));
  if (isPosition) return;
  throw new LeatError(
    "invalid_argument",
    "restore: this state holds no position in a stream. Restore a state that save() gave.",
  );
}

interface OrderedIteratorOptions {
  readonly context: IteratorContext;
  readonly chain: OrderedChain;
  readonly seed: bigint;
  /**
   * Set if this iterator itself drops the elements of other consumers: it gives only those of
   * consumer `index` of `count`.
   */
  readonly consumer?: { readonly index: number; readonly count: number };
  /**
   * Whether this is one of several consumers. If `consumer` is left out, a later operator drops the
   * elements of the others.
   */
  readonly isOneOfSeveral: boolean;
  /** The job's name, under which others may read it. Left out: no other reader is possible. */
  readonly jobName?: string;
  readonly start: (ordered: NonNullable<ClientOptions["ordered"]>, feed: Feed) => () => void;
}

/** Iterates over one stream of a DETERMINISTIC job. */
export class OrderedIterator extends ElementIterator {
  readonly #options: OrderedIteratorOptions;
  readonly #feed = new Feed();
  readonly #join: RemainderJoin;
  #position: Position = { sequence: 0, given: 0, carried: [], digest: null, ended: false };
  /** The restored position: an earlier iterator gave everything before it. */
  #restored: Position | undefined;
  #stop: (() => void) | undefined;
  /** Reading cannot continue. Another iterator may resume from the position. */
  #failure: ReadingFailure | undefined;

  constructor(options: OrderedIteratorOptions) {
    super();
    this.#options = options;
    const { context, chain, seed } = options;
    context.stats.serves(() => this.#feed.stats());
    const { host, randomState: { epoch } } = context;
    this.#join = new RemainderJoin(chain, { host, seed, epoch, within: context });
  }

  override next(): Pulled<unknown> {
    if (this.disposed || this.#position.ended) return END;
    if (this.#failure !== undefined) throw this.#failure;
    try {
      this.#stop ??= this.#begin();
    } catch (error) {
      throw this.#fail(error);
    }
    return this.#pull();
  }

  protected override saveState(): Promise<Position> {
    return Promise.resolve(this.#position);
  }

  protected override restoreState(state: unknown): Promise<void> {
    const { sequence, given, carried, digest, ended, ...more } = state as Position;
    const position = { sequence, given, carried, digest, ended, ...more };
    checkPosition(position);
    // The stream of a named job is opened again even if it has ended: other consumers may wait for
    // this one.
    const opensAgain = ended && this.#options.jobName !== undefined;
    this.#restored = this.#position = opensAgain
      ? { ...position, carried: [], ended: false }
      : position;
    return Promise.resolve();
  }

  protected override release(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#feed.drop();
  }

  #begin(): () => void {
    const { context, jobName } = this.#options;
    // The first stream that joins after a restore names its position, even if that is the start or
    // the end of an epoch. Otherwise a process that still reads, further ahead, would decide where
    // to read.
    const onJoined = jobName === undefined ? undefined : context.lastReaders.opensRestored(jobName);
    const restored = this.#restored ?? (onJoined === undefined ? undefined : this.#position);
    const onTable = (digest: string) => this.#position = { ...this.#position, digest };
    const place = { onTable, ...definedFields({ onJoined }), ...this.#numbering() };
    if (restored === undefined) return this.#options.start(place, this.#feed);
    // Workers produce an earlier split again only if rows of it wait for a batch.
    const { sequence: startAt, carried } = restored;
    const behind = carried.map(({ sequence }) => sequence);
    const expected = restored.digest === null ? {} : { expectedDigest: restored.digest };
    return this.#options.start({ ...place, startAt, behind, ...expected }, this.#feed);
  }

  #numbering(): { readonly numbering?: Numbering } {
    const { consumer, chain: { batch } } = this.#options;
    if (consumer === undefined) return {};
    const { number = 0, given, carried } = this.#position;
    const numbering = {
      first: number - given,
      batchSize: batch === undefined ? null : batchSizeOf(batch),
      carriedRows: carried.reduce((sum, { rows }) => sum + rows, 0),
    };
    return { numbering };
  }

  /** The field `number`, if it is used: with consumers. */
  #numbered(number: number): Pick<Position, "number"> {
    return this.#options.consumer === undefined ? {} : { number };
  }

  /** Whether the element with this number belongs to this consumer. */
  #isOwn(number: number): boolean {
    const { consumer } = this.#options;
    return consumer === undefined || number % consumer.count === consumer.index;
  }

  async #pull(): Promise<unknown> {
    for (;;) {
      let item: FeedItem;
      try {
        item = await this.#options.context.waitFor(Promise.resolve(this.#feed.take()));
      } catch (error) {
        if (this.disposed) return END;
        throw this.#fail(error);
      }
      if (this.disposed) return END;
      if ("element" in item) this.#options.context.stats.received(item.element.bytes.byteLength);
      let outcome: Joined | typeof END | undefined;
      try {
        outcome = item.kind === "end" ? await this.#end() : await this.#take(item);
      } catch (error) {
        // Operators after the batch may run in a confined process. If that has ended, joining fails
        // in the same way as reading.
        throw error instanceof ReadingFailure ? this.#fail(error) : error;
      }
      if (outcome === undefined) continue;
      if (outcome === END) return END;
      if (this.#options.isOneOfSeveral && this.#position.hasElements === undefined) {
        this.#position = { ...this.#position, hasElements: true };
      }
      const { stats } = this.#options.context;
      if ("error" in outcome) throw stats.failed(outcome.error);
      return stats.gave(outcome.element);
    }
  }

  #fail(error: unknown): ReadingFailure {
    this.release();
    return this.#failure = ReadingFailure.of(error);
  }

  /** Handles one item. Returns undefined if it yields no element. */
  async #take(item: Exclude<FeedItem, { kind: "end" }>): Promise<Joined | undefined> {
    const place = item.place;
    if (place === undefined) {
      // An error without a position concerns the whole stream: reading cannot continue.
      if (item.kind === "error") throw this.#fail(LeatError.fromWire(item.error));
      return undefined;
    }
    if (item.kind === "error" && item.isFinal === true) {
      throw this.#fail(LeatError.fromWire(item.error));
    }
    const { number = 0 } = item;
    if (item.kind === "remainder") return await this.#joinRows(place, item.element, number);
    if (item.kind === "split_end") {
      this.#moveTo(place.sequence + 1, number);
      return undefined;
    }
    if (this.#isKnown(place)) return undefined;
    const { sequence, index } = place;
    this.#position = {
      ...this.#position,
      sequence,
      given: index + 1,
      ...this.#numbered(number + 1),
    };
    return item.kind === "error"
      ? { error: LeatError.fromWire(item.error) }
      : { element: this.#feed.decode(item.element) };
  }

  /** Whether the saved iterator had already given this item. */
  #isKnown({ sequence, index }: StreamPosition): boolean {
    const restored = this.#restored;
    if (restored === undefined || sequence > restored.sequence) return false;
    return sequence < restored.sequence || index < restored.given;
  }

  async #joinRows(
    { sequence, split }: StreamPosition,
    rows: Payload,
    number: number,
  ): Promise<Joined | undefined> {
    const restored = this.#restored;
    if (restored !== undefined && sequence < restored.sequence) {
      const carried = restored.carried.find((at) => at.sequence === sequence);
      if (carried !== undefined) {
        await this.#join.add(sequence, split, this.#rowsOf(rows), carried.rows);
      }
      return undefined;
    }
    const joined = await this.#join.add(sequence, split, this.#rowsOf(rows));
    // Left-over rows are the last of their split. With the batch that they complete, it is done.
    if (joined === undefined) return undefined;
    this.#moveTo(sequence + 1, number + 1);
    return this.#isOwn(number) ? joined : undefined;
  }

  /** @throws {ReadingFailure} for damaged rows: without them all later batches would be others. */
  #rowsOf(payload: Payload): unknown {
    try {
      return this.#feed.decode(payload);
    } catch (error) {
      throw ReadingFailure.of(error);
    }
  }

  #moveTo(sequence: number, number: number): void {
    if (sequence <= this.#position.sequence) return;
    const { carried } = this.#join;
    this.#position = {
      ...this.#position,
      sequence,
      given: 0,
      carried,
      ...this.#numbered(number),
    };
  }

  async #end(): Promise<Joined | typeof END> {
    const last = await this.#join.end();
    const { number = 0, hasElements = false } = this.#position;
    const isOwn = this.#isOwn(number);
    const hadElements = hasElements || number > 0 || last !== undefined;
    if (this.#options.isOneOfSeveral && hadElements) this.#options.context.noteOtherConsumers();
    this.#position = { ...this.#position, carried: [], ended: true };
    this.release();
    return last !== undefined && isOwn ? last : END;
  }
}
