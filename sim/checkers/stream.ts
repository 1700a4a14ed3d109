/** Checks that training loops receive a given stream, each element once and in order. */
import type { Findings } from "./checker.ts";

/** Watches the deliveries of a known stream. Each element is a text that identifies it. */
export class StreamChecker {
  readonly #wanted: readonly string[];
  readonly #findings: Findings;
  #furthest = 0;

  constructor(wanted: readonly string[], findings: Findings) {
    this.#wanted = wanted;
    this.#findings = findings;
  }

  /** The furthest position that any consumer has reached. */
  get furthest(): number {
    return this.#furthest;
  }

  /** Records that a consumer received the element at that position. */
  took(position: number, element: string, consumer: string): void {
    this.#furthest = Math.max(this.#furthest, position + 1);
    const wanted = this.#wanted[position] ?? "the end";
    if (element === wanted) return;
    this.#findings.add(`${consumer} took ${element} at ${position}, where ${wanted} is`);
  }

  /** Records that a consumer reached the end after `position` elements. */
  ended(position: number, consumer: string): void {
    if (position === this.#wanted.length) return;
    this.#findings.add(
      `${consumer} came to the end after ${position} of ${this.#wanted.length} elements`,
    );
  }
}
