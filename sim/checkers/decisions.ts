/** Checks that a trainer comes to run the candidate that is fastest, and stays with it. */
import type { Findings } from "./checker.ts";

/** Batches of one life in which the trainer may try others. */
const LEARNING = 18;
/** So many batches are judged at least. */
const JUDGED_MIN = 16;
/** The share of them that the best candidate has at least: others are tried again at times. */
const SHARE_MIN = 0.4;

/** Watches one trainer. */
export class DecisionsChecker {
  readonly #best: string;
  readonly #findings: Findings;
  #taken: (string | null)[] = [];

  constructor(best: string, findings: Findings) {
    this.#best = best;
    this.#findings = findings;
  }

  /** A batch came while workers ran this candidate. */
  took(candidate: string | null): void {
    this.#taken.push(candidate);
  }

  /** The service failed, or the trainer began again: what it has learnt may be lost. */
  forget(): void {
    this.#judge();
    this.#taken = [];
  }

  ended(): void {
    this.#judge();
  }

  #judge(): void {
    const judged = this.#taken.slice(LEARNING);
    const right = judged.filter((candidate) => candidate === this.#best).length;
    if (judged.length < JUDGED_MIN || right >= SHARE_MIN * judged.length) return;
    this.#findings.add(
      `${this.#best} is the fastest, but had only ${right} of the last ${judged.length} batches`,
    );
  }
}
