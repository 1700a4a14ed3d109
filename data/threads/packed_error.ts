/** Errors of functions as plain data, with stacks and causes, for another thread of this program. */
import { fieldOf, LeatError, type LeatErrorCode } from "../../core/error.ts";

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
  if (!Error.isError(thrown)) return { message: LeatError.from(thrown).message };
  const cause = fieldOf(thrown, "cause");
  return {
    ...(thrown instanceof LeatError ? leatFields(thrown) : {}),
    name: textOf(thrown, "name") ?? "Error",
    message: textOf(thrown, "message") ?? LeatError.from(thrown).toWire().message,
    stack: textOf(thrown, "stack"),
    ...(cause === undefined || depth >= CAUSES_MAX ? {} : { cause: packError(cause, depth + 1) }),
  };
}

function leatFields(error: LeatError): Pick<PackedError, "code" | "details"> {
  const { code, details } = error.toWire();
  return { code, details };
}

/** A field that is a text. Others might not be plain data. */
function textOf(thrown: Error, field: "name" | "message" | "stack"): string | undefined {
  const value = fieldOf(thrown, field);
  return typeof value === "string" ? value : undefined;
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
