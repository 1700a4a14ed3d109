/** Errors of functions as plain data, with stacks and causes, for another thread of this program. */
import { LeatError, type LeatErrorCode } from "../../core/error.ts";

/** A thrown value. */
export interface PackedError {
  /** Absent for an error of another class, and for a thrown value that is not an error. */
  readonly code?: LeatErrorCode;
  readonly name?: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly details?: Record<string, unknown> | undefined;
  readonly cause?: PackedError;
}

/** Deeper causes are left out, because causes may be circular. */
const CAUSES_MAX = 8;

/** A thrown value as plain data. Never throws. */
export function packError(thrown: unknown, depth = 0): PackedError {
  try {
    if (Error.isError(thrown)) return packed(thrown, depth);
  } catch {
    // A getter of the error threw.
  }
  return { message: LeatError.from(thrown).message };
}

function packed(thrown: Error, depth: number): PackedError {
  const { name, message, stack, cause } = thrown;
  return {
    ...(thrown instanceof LeatError ? { code: thrown.code, details: thrown.toWire().details } : {}),
    ...{ name, message, stack },
    ...(cause === undefined || depth >= CAUSES_MAX ? {} : { cause: packError(cause, depth + 1) }),
  };
}

/** The error that was packed. A thrown value that was not an error is returned as text. */
export function unpackError(packed: PackedError): unknown {
  const { code, name, message, stack, details, cause: packedCause } = packed;
  if (name === undefined) return message;
  const cause = packedCause === undefined ? {} : { cause: unpackError(packedCause) };
  const error = code === undefined
    ? new Error(message, cause)
    : new LeatError(code, message, { ...cause, ...(details === undefined ? {} : { details }) });
  if (code === undefined) Object.defineProperty(error, "name", { value: name });
  error.stack = stack ?? `${name}: ${message}`;
  return error;
}
