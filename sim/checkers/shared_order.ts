/**
 * Checks for ephemeral data sharing that each trainer receives a subsequence of each worker's stream, in
 * order and without duplicates. This holds in every run, with any faults.
 */
import type { Findings } from "./checker.ts";

/** The content of an element of the shared job. */
export interface SharedElement {
  /** A number that each task draws, which identifies its stream. */
  readonly stream: number;
  /** Its position in the stream. */
  readonly place: number;
}

/** Watches all trainers of a job. */
export class SharedOrderChecker {
  readonly #findings: Findings;
  /** The last position that each trainer received, by trainer and stream. */
  readonly #last = new Map<string, number>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /**
   * Records that a training loop received an element. Returns its previous position in that stream, or
   * -1.
   */
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
