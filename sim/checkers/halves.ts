/** Checks that a stream that two sides produce has each element once, and in order if that is promised. */
import type { Findings } from "./checker.ts";

/** Maximum deviation of one side's number of elements from its share. */
const DEVIATION_MAX = 1;

/** Watches one training loop. Its position is the list of elements that it has received. */
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

  /** The elements received so far, which are the position to save. */
  get taken(): readonly number[] {
    return this.#taken;
  }

  /** Records that the loop continues from a position. */
  resume(taken: readonly number[]): void {
    this.#taken = taken;
  }

  /** Records that the loop received an element. */
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

  /** Checks that `remote` of `count` elements are about a share of `ratio`. */
  shared(remote: number, count: number, ratio: number, who: string): void {
    if (Math.abs(remote - ratio * count) <= DEVIATION_MAX) return;
    this.#findings.add(`${who} got ${remote} of ${count} elements from the service, not ${ratio}`);
  }

  ended(who: string): void {
    const missing = this.#wanted.filter((value) => !this.#taken.includes(value));
    if (missing.length > 0) this.#findings.add(`${who} came to the end without ${missing}`);
  }
}
