/** Numbers for what a host process has opened for its runner. */
import { LeatError } from "../../../core/error.ts";
import { HOST_GONE } from "../edge.ts";

/**
 * Numbers that start at random: if a host process ends, its runner keeps the numbers that it got, and
 * must not get what the next process opens.
 */
export class OpenedNumbers {
  #last = crypto.getRandomValues(new Uint32Array(1))[0]! * 2 ** 20;

  next(): number {
    return ++this.#last;
  }
}

/** The error for a number that this process has not given. */
export function notOpened(what: string): LeatError {
  return new LeatError(
    "unavailable",
    `The process that ${what} for this runner has ended, or it was closed`,
    { details: { reason: HOST_GONE } },
  );
}
