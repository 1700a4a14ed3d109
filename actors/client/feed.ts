/**
 * The bounded buffer between a client actor and the training loop that reads from it.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { Fifo } from "../runtime/fifo.ts";
import type { ElementAnswer } from "../worker/protocol.ts";
import { TakeMeter } from "./take_meter.ts";

/** What there is for the training loop. */
export type Fed = Extract<
  ElementAnswer,
  { kind: "element" | "error" | "remainder" | "split_end" | "end" }
>;

/** Elements that have arrived and were not taken yet. */
export class Feed {
  readonly #ready = new Fifo<Exclude<Fed, { kind: "end" }>>();
  #bytes = 0;
  #taker: PromiseWithResolvers<Fed> | undefined;
  #closed: Fed | LeatError | undefined;
  #meter: TakeMeter | undefined;
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

  /** Begins to measure what is taken, and what its taker waits. @param nowMs Monotonic time. */
  measure(nowMs: () => number): TakeMeter {
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
    this.#meter?.given(
      counts ? { bytes: "element" in fed ? fed.element.byteLength : 0 } : undefined,
    );
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
