/** The queued calls of an iterator, and their answers once it is closed. */
import { LeatError } from "../../core/error.ts";

/** A queued call. */
export interface Request {
  /** Executes the call when it is due. */
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Answers the call if the iterator is closed first. */
  readonly whenClosed: (this: Request) => void;
}

export const DONE: IteratorReturnResult<undefined> = Object.freeze({
  done: true,
  value: undefined,
});

export function resolveDone(this: Request): void {
  this.resolve(DONE);
}

export function rejectClosed(this: Request): void {
  this.reject(closedError());
}

export function closedError(): LeatError {
  return new LeatError("failed_precondition", "This iterator was closed; open another one.");
}
