/**
 * The bounded buffer between a client actor and the training loop that reads from it.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { decodeMessage } from "../../transport/codec.ts";
import type { ServiceStats } from "../../data/stats.ts";
import type { Payload } from "../../transport/payload.ts";
import { Fifo } from "../runtime/fifo.ts";
import type { ElementAnswer, Skipped } from "../worker/protocol.ts";
import { TakeMeter } from "./take_meter.ts";

/** What there is for the training loop. */
export type Fed =
  & Extract<ElementAnswer, { kind: "element" | "error" | "remainder" | "split_end" | "end" }>
  & {
    /**
     * DETERMINISTIC with consumers: its number in the stream; of a remainder that of the batch which it
     * may complete, of a split's end that of what comes next.
     */
    readonly number?: number;
  };

/** Elements that have arrived and were not taken yet. */
export class Feed {
  readonly #ready = new Fifo<Exclude<Fed, { kind: "end" }>>();
  #bytes = 0;
  #taker: PromiseWithResolvers<Fed> | undefined;
  #closed: Fed | LeatError | undefined;
  #meter: TakeMeter | undefined;
  #nowMs: () => number = () => 0;
  /** How it goes; undefined before somebody feeds it. */
  stats: () => ServiceStats | undefined = () => undefined;
  /** Called when something was taken: there is room for more. */
  onTaken: () => void = () => {};

  /** Elements that wait to be taken. */
  get length(): number {
    return this.#ready.length;
  }

  /** Their size in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  /** Whether somebody waits for the next element now. */
  get isWaitedFor(): boolean {
    return this.#taker !== undefined;
  }

  /** The share of its newest time, 0 to 1, in which the training loop has waited. */
  get waitingShare(): number {
    return this.#meter?.waitingShare ?? 0;
  }

  /** Decodes what was taken just now. */
  decode({ bytes, shared }: Payload): unknown {
    const startMs = this.#nowMs();
    const element = decodeMessage(bytes, { copy: shared });
    this.#meter?.decoded(this.#nowMs() - startMs);
    return element;
  }

  /** Begins to measure what is taken, and what its taker waits. @param nowMs Monotonic time. */
  measure(nowMs: () => number): TakeMeter {
    this.#nowMs = nowMs;
    this.#meter = new TakeMeter(nowMs);
    if (this.#taker !== undefined) this.#meter.asked();
    return this.#meter;
  }

  push(fed: Exclude<Fed, { kind: "end" }>): void {
    if (this.#closed !== undefined) return;
    const taker = this.#taker;
    if (taker !== undefined) {
      this.#taker = undefined;
      this.#give(fed);
      taker.resolve(fed);
      this.onTaken();
      return;
    }
    this.#ready.push(fed);
    if ("element" in fed) this.#bytes += fed.element.byteLength;
  }

  /** There will be no more; what waits can still be taken. */
  end(): void {
    this.#close({ kind: "end" });
  }

  /** Reading cannot go on; what waits can still be taken, then `take` throws. */
  fail(error: LeatError): void {
    this.#close(error);
  }

  /** The next element, now or later; one call at a time. */
  take(): Fed | Promise<Fed> {
    this.#meter?.asked();
    const fed = this.#ready.shift();
    if (fed !== undefined) {
      if ("element" in fed) this.#bytes -= fed.element.byteLength;
      this.#give(fed);
      this.onTaken();
      return fed;
    }
    if (this.#closed instanceof LeatError) throw this.#closed;
    if (this.#closed !== undefined) return this.#closed;
    this.#taker = Promise.withResolvers<Fed>();
    this.onTaken();
    return this.#taker.promise;
  }

  #give(fed: Fed): void {
    const counts = fed.kind === "element" || fed.kind === "remainder" || fed.kind === "error";
    if (!counts) return this.#meter?.given();
    const { skipped = 0 } = fed as Skipped;
    this.#meter?.given({ bytes: "element" in fed ? fed.element.byteLength : 0, skipped });
  }

  #close(how: Fed | LeatError): void {
    if (this.#closed !== undefined) return;
    this.#closed = how;
    const taker = this.#taker;
    this.#taker = undefined;
    if (how instanceof LeatError) taker?.reject(how);
    else taker?.resolve(how);
  }
}
