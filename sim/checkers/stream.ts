/**
 * Checks that a training loop is given one certain stream: each element once, in its place.
 *
 * @module
 */
import type { Findings } from "./checker.ts";

/** Watches what is given of a stream whose elements are known, each by a text that tells it from others. */
export class StreamChecker {
  readonly #wanted: readonly string[];
  readonly #findings: Findings;
  #furthest = 0;

  constructor(wanted: readonly string[], findings: Findings) {
    this.#wanted = wanted;
    this.#findings = findings;
  }

  /** How far into the stream anybody has been. */
  get furthest(): number {
    return this.#furthest;
  }

  /** Somebody has taken the element at that position. */
  took(position: number, element: string, consumer: string): void {
    this.#furthest = Math.max(this.#furthest, position + 1);
    const wanted = this.#wanted[position] ?? "the end";
    if (element === wanted) return;
    this.#findings.add(`${consumer} took ${element} at ${position}, where ${wanted} is`);
  }

  /** Somebody has come to the end after so many elements. */
  ended(position: number, consumer: string): void {
    if (position === this.#wanted.length) return;
    this.#findings.add(
      `${consumer} came to the end after ${position} of ${this.#wanted.length} elements`,
    );
  }
}
