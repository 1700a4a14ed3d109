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
import { rowsIn } from "../../data/deterministic/remainder.ts";
import { batchSizeOf } from "../../data/deterministic/split_run.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import type { StreamPosition } from "../worker/protocol.ts";
import type { ClientOptions } from "./client.ts";
import { Feed, type FeedItem, unreadable } from "./feed.ts";
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
  /** With consumers: how many rows of earlier splits fitted no batch. */
  readonly misfits?: number;
  /** With consumers: some consumer has got an element, so the stream is not empty. */
  readonly hasElements?: true;
}

/** @throws LeatError `invalid_argument` for a state that `save()` did not write. */
function checkPosition(
  { sequence, given, carried, digest, ended, number = 0, misfits = 0 }: Position,
): void {
  const isPosition = [sequence, given, number, misfits].every(isCount) &&
    typeof ended === "boolean" &&
    (digest === null || typeof digest === "string") && Array.isArray(carried) &&
    carried.every((rest) =>
      isPlainObject(rest) && [rest.sequence, rest.rows, rest.refused ?? 0].every(isCount)
    );
  if (isPosition) return;
  throw new LeatError(
    "invalid_argument",
    "restore: this state holds no position in a stream. Restore a state that save() gave.",
  );
}

/** Rows that a split leaves over. */
type Rows = Extract<FeedItem, { readonly kind: "remainder" }>;

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
    this.#feed.goesOn = this.#failure === undefined && !this.#options.context.isDisposed;
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
    const { number = 0, given } = this.#position;
    const batchSize = batch === undefined ? null : batchSizeOf(batch);
    return { numbering: { first: number - given, batchSize, carriedRows: this.#countedRows } };
  }

  /** The rows that wait to fill a batch as consumers count them, who do not know which rows fit. */
  get #countedRows(): number {
    const { carried, misfits = 0 } = this.#position;
    const { batch } = this.#options.chain;
    const rows = carried.reduce((sum, { rows }) => sum + rows, misfits);
    return batch === undefined ? 0 : rows % batchSizeOf(batch);
  }

  /** The fields that are used with consumers. */
  #numbered(number: number): Pick<Position, "number" | "misfits"> {
    if (this.#options.consumer === undefined) return {};
    const misfits = (this.#restored?.misfits ?? 0) + this.#join.misfits;
    return { number, ...(misfits === 0 ? {} : { misfits }) };
  }

  /** Whether the element with this number belongs to this consumer. */
  #isOwn(number: number): boolean {
    const { consumer } = this.#options;
    return consumer === undefined || number % consumer.count === consumer.index;
  }

  async #pull(): Promise<unknown> {
    for (;;) {
      let outcome: Joined | typeof END | undefined;
      try {
        // After the error of a row, the others may still fill a batch.
        outcome = this.#join.hasBatch ? await this.#nextJoined() : await this.#pullItem();
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

  async #pullItem(): Promise<Joined | typeof END | undefined> {
    let item: FeedItem;
    try {
      item = await this.#options.context.waitFor(Promise.resolve(this.#feed.take()));
    } catch (error) {
      if (this.disposed) return END;
      throw this.#fail(error);
    }
    if (this.disposed) return END;
    if ("element" in item) this.#options.context.stats.received(item.element.bytes.byteLength);
    return item.kind === "end" ? await this.#end() : await this.#take(item);
  }

  #fail(error: unknown): ReadingFailure {
    this.#failure = ReadingFailure.of(error);
    this.release();
    return this.#failure;
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
    if (item.kind === "remainder") return await this.#joinRows(place, item, number);
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
      : { element: this.#feed.decode(item) };
  }

  /** Whether the saved iterator had already given this item. */
  #isKnown({ sequence, index }: StreamPosition): boolean {
    const restored = this.#restored;
    if (restored === undefined || sequence > restored.sequence) return false;
    return sequence < restored.sequence || index < restored.given;
  }

  async #joinRows(
    { sequence, split }: StreamPosition,
    rows: Rows,
    number: number,
  ): Promise<Joined | undefined> {
    const restored = this.#restored;
    if (restored !== undefined && sequence < restored.sequence) {
      const carried = restored.carried.find((at) => at.sequence === sequence);
      if (carried !== undefined) {
        this.#join.add(sequence, split, this.#rowsOf(rows), carried);
      }
      return undefined;
    }
    const remainder = this.#rowsOf(rows);
    this.#join.add(sequence, split, remainder);
    if (!this.#join.hasBatch) return undefined;
    const joined = await this.#join.next();
    // Left-over rows are the last of their split. With the batch that they complete, it is done.
    const isCounted =
      this.#countedRows + rowsIn(remainder) >= batchSizeOf(this.#options.chain.batch!);
    this.#moveTo(sequence + 1, isCounted ? number + 1 : number);
    return this.#isOwn(number) ? joined : undefined;
  }

  /** What rows give beyond what consumers count. It belongs to the consumer of the next number. */
  async #nextJoined(): Promise<Joined | undefined> {
    const joined = await this.#join.next();
    const { number = 0 } = this.#position;
    this.#position = {
      ...this.#position,
      carried: this.#join.carried,
      ...this.#numbered(number),
    };
    return this.#isOwn(number) ? joined : undefined;
  }

  /** @throws {ReadingFailure} for damaged rows: without them all later batches would be others. */
  #rowsOf(item: Rows): unknown {
    try {
      const rows = this.#feed.decode(item);
      const { batch } = this.#options.chain;
      const rowsMax = batch === undefined ? 0 : batchSizeOf(batch) - 1;
      if (rowsIn(rows) > rowsMax) {
        const fault = `its split can leave over at most ${rowsMax} rows, and it has more`;
        throw unreadable(item, new LeatError("data_loss", fault));
      }
      return rows;
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

  async #end(): Promise<Joined | typeof END | undefined> {
    const last = await this.#join.end();
    const { number = 0, hasElements = false } = this.#position;
    const isOwn = this.#isOwn(number);
    const { carried } = this.#join;
    if (last !== undefined && carried.length > 0) { // the error of a row
      this.#position = { ...this.#position, carried, ...this.#numbered(number + 1) };
      return isOwn ? last : undefined;
    }
    const hadElements = hasElements || number > 0 || last !== undefined;
    if (this.#options.isOneOfSeveral && hadElements) this.#options.context.noteOtherConsumers();
    this.#position = { ...this.#position, carried: [], ended: true };
    this.release();
    return last !== undefined && isOwn ? last : END;
  }
}
