/** The bounded buffer between a client actor and its training loop. */
import { LeatError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import { noteMemory } from "../../data/elements/released.ts";
import { LARGE_FROM_BYTES } from "../../transport/codec.ts";
import { decompressed } from "../../transport/compression.ts";
import { decodeElement } from "../../transport/element.ts";
import type { ServiceStats } from "../../data/iterators/stats.ts";
import { Payload } from "../../transport/payload.ts";
import type { ClientFigures } from "../dispatcher/protocol_figures.ts";
import { bytesOfAnswer } from "../exactly_once/kept_answers.ts";
import type { ElementAnswer, Skipped } from "../worker/protocol.ts";
import { ConsumerMeter } from "./consumer_meter.ts";

/** The remedy for a worker that sends what no worker sends. */
export const REPLACE_WORKER =
  "Check that it has the same version of Leat as this program, and otherwise end that worker";

/** An answer, and the worker that an element in it came from, for errors. */
export type Arrived = ElementAnswer & { readonly sender?: string };

export type FeedItem =
  & Extract<Arrived, { kind: "element" | "error" | "remainder" | "split_end" | "end" }>
  & {
    /**
     * DETERMINISTIC with `numConsumers`: the position in the stream of this element. For a
     * remainder (rows that a split leaves over): that of the batch that it may complete. For the
     * end of a split: that of the next element.
     */
    readonly number?: number;
  };

/** Items that have arrived and that the training loop has not taken yet. */
export class Feed {
  #ready = new Fifo<Exclude<FeedItem, { kind: "end" }>>();
  #bytes = 0;
  #taker: PromiseWithResolvers<FeedItem> | undefined;
  #closed: FeedItem | LeatError | undefined;
  #meter: ConsumerMeter | undefined;
  #nowMs: () => number = () => 0;
  /** The client's statistics; undefined before a client feeds it. */
  stats: () => ServiceStats | undefined = () => undefined;
  /** What `offload()` has decided, for the client's heartbeats. Empty without `offload()`. */
  offload: () => Pick<ClientFigures, "offloadRatio" | "offloadWorkers"> = () => ({});
  /** Reads elements of a source for tasks that cannot read that source. Default: refuses. */
  readSource: (split: number, from: number) => Promise<{ readonly given: Payload }> = () =>
    Promise.reject(new LeatError("failed_precondition", "This reader sends no source elements"));
  /** Whether the training loop, once it takes no more items, reads on in another pass or chain. */
  goesOn = false;
  /** Called when the training loop takes an item or starts to wait for one. */
  onTaken: () => void = () => {};
  /** Called when an item is buffered, because the training loop does not wait for one. */
  onKept: () => void = () => {};

  /** The number of buffered items. */
  get length(): number {
    return this.#ready.length;
  }

  /** The bytes of the buffered elements, encoded, and of errors. */
  get bytes(): number {
    return this.#bytes;
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  /** Whether the training loop is waiting for an element. */
  get isWaitedFor(): boolean {
    return this.#taker !== undefined;
  }

  /** The share of recent time that the training loop has spent waiting, from 0 to 1. */
  get waitingShare(): number {
    return this.#meter?.waitingShare ?? 0;
  }

  /** Decodes the item that was taken last, and measures the time. See {@linkcode decoded}. */
  decode(item: Decodable): unknown {
    const startMs = this.#nowMs();
    const { element, unpacked } = decoded(item);
    this.#meter?.decoded(this.#nowMs() - startMs);
    if (!unpacked.shared && unpacked.byteLength >= LARGE_FROM_BYTES) noteMemory(element, unpacked);
    return element;
  }

  /** Starts to measure elements taken and time waited. @param nowMs Monotonic time. */
  measure(nowMs: () => number): ConsumerMeter {
    this.#nowMs = nowMs;
    this.#meter = new ConsumerMeter(nowMs);
    if (this.#taker !== undefined) this.#meter.asked();
    return this.#meter;
  }

  push(item: Exclude<FeedItem, { kind: "end" }>): void {
    if (this.#closed !== undefined) return;
    const taker = this.#taker;
    if (taker !== undefined) {
      this.#taker = undefined;
      this.#give(item);
      taker.resolve(item);
      this.onTaken();
      return;
    }
    this.#ready.push(item);
    this.#bytes += bytesOfAnswer(item);
    this.onKept();
  }

  /** No more elements will come; buffered ones can still be taken. */
  end(): void {
    this.#close({ kind: "end" });
  }

  /** Reading cannot continue. Buffered elements can still be taken; then `take` throws. */
  fail(error: LeatError): void {
    this.#close(error);
  }

  /** The training loop takes no more items: forgets those that are buffered, and accepts no others. */
  drop(): void {
    this.fail(new LeatError("cancelled", "The iterator was disposed"));
    this.#ready = new Fifo();
    this.#bytes = 0;
  }

  /** Takes the next item. The previous call must have settled. @throws LeatError after `fail`. */
  take(): FeedItem | Promise<FeedItem> {
    this.#meter?.asked();
    const item = this.#ready.shift();
    if (item !== undefined) {
      this.#bytes -= bytesOfAnswer(item);
      this.#give(item);
      this.onTaken();
      return item;
    }
    if (this.#closed instanceof LeatError) throw this.#closed;
    if (this.#closed !== undefined) return this.#closed;
    this.#taker = Promise.withResolvers<FeedItem>();
    this.onTaken();
    return this.#taker.promise;
  }

  #give(item: FeedItem): void {
    const isCounted = item.kind === "element" || item.kind === "remainder" || item.kind === "error";
    if (!isCounted) return this.#meter?.given();
    const { skipped = 0 } = item as Skipped;
    this.#meter?.given({ bytes: "element" in item ? item.element.byteLength : 0, skipped });
  }

  #close(outcome: FeedItem | LeatError): void {
    if (this.#closed !== undefined) return;
    this.#closed = outcome;
    const taker = this.#taker;
    this.#taker = undefined;
    if (outcome instanceof LeatError) taker?.reject(outcome);
    else taker?.resolve(outcome);
  }
}

type Decodable = Pick<Arrived, "sender"> & { readonly element: Payload };

/**
 * Decodes an element. `unpacked` is the memory that it may have views of.
 * @throws {LeatError} why it cannot be read; names the worker.
 */
export function decoded(
  item: Decodable,
): { readonly element: unknown; readonly unpacked: Payload } {
  const { element: payload } = item;
  try {
    const bytes = decompressed(payload.bytes);
    const unpacked = bytes === payload.bytes ? payload : new Payload(bytes);
    return { element: decodeElement(bytes, unpacked.shared), unpacked };
  } catch (cause) {
    throw unreadable(item, cause);
  }
}

/** The error for an element that this program cannot read. */
export function unreadable(
  { sender = "A worker" }: Pick<Arrived, "sender">,
  thrown: unknown,
): LeatError {
  const cause = LeatError.from(thrown);
  // An honest worker may send an element that is too large, and that error has its own remedy.
  const remedy = cause.code === "resource_exhausted" ? "" : `. ${REPLACE_WORKER}`;
  const message = `${sender} sent an element that cannot be read: ${cause.message}${remedy}`;
  return new LeatError(cause.code, message, { cause });
}
