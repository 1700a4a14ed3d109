/**
 * Checks of ephemeral data sharing what a trainer can see by itself: it is given a subsequence of what
 * each worker produces, in order and nothing twice, whatever happens to it in between.
 *
 * @module
 */
import type { Findings } from "./checker.ts";

/** What an element of the shared job says of itself. */
export interface SharedElement {
  /** Which worker's stream it is of: a number that each task draws. */
  readonly stream: number;
  /** Its place there. */
  readonly place: number;
}

/** See the module. */
export class SharedOrderChecker {
  readonly #findings: Findings;
  /** The place that each trainer has taken last, by trainer and stream. */
  readonly #last = new Map<string, number>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** A training loop has taken an element; answers the place it had taken last of that stream, or -1. */
  took(trainer: string, { stream, place }: SharedElement): number {
    const key = `${trainer} ${stream}`;
    const last = this.#last.get(key) ?? -1;
    this.#last.set(key, Math.max(last, place));
    if (place <= last) {
      this.#findings.add(
        `${trainer} took ${place} of stream ${stream} after ${last}: twice, or out of order`,
      );
    }
    return last;
  }
}
