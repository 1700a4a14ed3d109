/**
 * Why a dataset cannot be read on, as against the error of an element of it.
 *
 * - The error of an element is part of the stream: it has a place there, the next element comes after
 *   it, and whoever goes on from a saved iterator is told it in its place.
 * - A failure of reading has no place. It says something of this reader: that its service cannot be
 *   reached or does not know it any more, or that what it waits for does not come. No element comes
 *   after it, nor the end: each `next()` fails with it. It is told once, by whoever reads for a user,
 *   and nothing of it is saved, so that another reader goes on from the position before it.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Answer } from "../elements/answer.ts";

/** See the module. Made by the iterator that cannot go on; operators pass it and remain as they are. */
export class ReadingFailure extends LeatError {
  /** What the user is told. */
  readonly reason: LeatError;

  constructor(reason: LeatError) {
    const { code, message, details, cause } = reason;
    super(code, message, { cause, ...(details === undefined ? {} : { details }) });
    this.reason = reason;
  }

  /** Says of what was thrown that reading cannot go on. */
  static of(error: unknown): ReadingFailure {
    return error instanceof ReadingFailure ? error : new ReadingFailure(LeatError.from(error));
  }
}

/** Whether an answer belongs to the stream, and so to what is saved of it. */
export function isOfStream({ failed, value }: Answer): boolean {
  return !(failed && value instanceof ReadingFailure);
}

/** What a user is told of an error. */
export function toldOf(error: unknown): unknown {
  return error instanceof ReadingFailure ? error.reason : error;
}
