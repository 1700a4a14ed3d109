/** Checks that a trainer learns which candidate is the fastest, and mostly runs it. */
import type { Findings } from "./checker.ts";

/** Number of batches in which the trainer may try all candidates. */
const LEARNING = 18;
/** Minimum number of later batches. With fewer, nothing is checked. */
const JUDGED_MIN = 16;
/** Minimum share of the best candidate in these batches. The trainer tries others again at times. */
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

  /** Records that a batch was delivered while workers ran this candidate. */
  took(candidate: string | null): void {
    this.#taken.push(candidate);
  }

  /** Records that the service failed or the trainer restarted, so that it may learn again. */
  forget(): void {
    this.#judge();
    this.#taken = [];
  }

  ended(): void {
    this.#judge();
  }

  #judge(): void {
    const judged = this.#taken.slice(LEARNING);
    const ofBest = judged.filter((candidate) => candidate === this.#best).length;
    if (judged.length < JUDGED_MIN || ofBest >= SHARE_MIN * judged.length) return;
    this.#findings.add(
      `${this.#best} is the fastest, but had only ${ofBest} of the last ${judged.length} batches`,
    );
  }
}
