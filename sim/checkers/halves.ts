/** Checks a stream that two sides produce together: each element once, in order if that is promised. */
import type { Findings } from "./checker.ts";

/** Most elements that the share of one side may be away from its ratio. */
const AWAY_MAX = 1;

/** Watches what one training loop takes; its position is what it has taken since the beginning. */
export class HalvesChecker {
  readonly #wanted: readonly number[];
  readonly #inOrder: boolean;
  readonly #findings: Findings;
  #taken: readonly number[] = [];

  constructor(wanted: readonly number[], inOrder: boolean, findings: Findings) {
    this.#wanted = wanted;
    this.#inOrder = inOrder;
    this.#findings = findings;
  }

  /** What was taken so far: the position to save. */
  get taken(): readonly number[] {
    return this.#taken;
  }

  /** The loop continues from a position. */
  resume(taken: readonly number[]): void {
    this.#taken = taken;
  }

  took(value: number, who: string): void {
    const { length } = this.#taken;
    if (this.#inOrder && this.#wanted[length] !== value) {
      this.#findings.add(`${who} took ${value} at ${length}, where ${this.#wanted[length]} is`);
    } else if (this.#taken.includes(value)) this.#findings.add(`${who} took ${value} twice`);
    else if (!this.#wanted.includes(value)) {
      this.#findings.add(`${who} took ${value}, which is none`);
    }
    this.#taken = [...this.#taken, value];
  }

  /** So many elements of `count` came from the side that is to give a share of `ratio`. */
  shared(remote: number, count: number, ratio: number, who: string): void {
    if (Math.abs(remote - ratio * count) <= AWAY_MAX) return;
    this.#findings.add(`${who} got ${remote} of ${count} elements from the service, not ${ratio}`);
  }

  ended(who: string): void {
    const missing = this.#wanted.filter((value) => !this.#taken.includes(value));
    if (missing.length > 0) this.#findings.add(`${who} came to the end without ${missing}`);
  }
}
