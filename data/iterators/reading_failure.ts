/**
 * The error that ends the reading of a dataset, in contrast to the error of an element.
 *
 * - The error of an element is part of the stream: it has a position there, the next element
 *   follows, and a restored iterator reports it again at that position.
 * - A failure of reading has no position. It concerns this reader: its service or the storage is
 *   unreachable, the service no longer knows it, or the data it waits for does not come. Neither
 *   elements nor the end follow: each `next()` fails with it. The user gets it once, and it is not
 *   saved, so that another reader can resume from the position before it.
 */
import { LeatError } from "../../core/error.ts";
import type { Outcome } from "../elements/answer.ts";

/** Thrown by an iterator that cannot continue. Operators above pass it on, and keep their state. */
export class ReadingFailure extends LeatError {
  /** The error for the user. */
  readonly reason: LeatError;

  constructor(reason: LeatError) {
    const { code, message, details, cause } = reason;
    super(code, message, { cause, ...(details === undefined ? {} : { details }) });
    this.reason = reason;
  }

  /** Wraps an error as one that ends the reading. */
  static of(error: unknown): ReadingFailure {
    return error instanceof ReadingFailure ? error : new ReadingFailure(LeatError.from(error));
  }
}

/** Whether an answer belongs to the stream, and so to its saved state. */
export function isOfStream({ failed, value }: Outcome): boolean {
  return !(failed && value instanceof ReadingFailure);
}

/** The error as the user gets it. */
export function userErrorOf(error: unknown): unknown {
  return error instanceof ReadingFailure ? error.reason : error;
}
