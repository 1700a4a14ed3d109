/**
 * Tells failures of the storage from errors of the data. A damaged file is as damaged for every reader,
 * but storage that cannot answer now may answer the next reader.
 */
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import type { OpenFile } from "../../host.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";

/** What storage rejects with if it cannot answer now, for example because too many files are open. */
const FAILURE_CODES: ReadonlySet<LeatErrorCode> = new Set([
  "unavailable",
  "deadline_exceeded",
  "resource_exhausted",
]);

/** Returns an error of the storage, as a `ReadingFailure` if the storage cannot answer now. */
export function storageError(error: unknown): unknown {
  return FAILURE_CODES.has(LeatError.from(error).code) ? ReadingFailure.of(error) : error;
}

/** What a listing rejects with if the pattern is at fault. */
const PATTERN_CODES: ReadonlySet<LeatErrorCode> = new Set(["not_found", "invalid_argument"]);

/**
 * Returns the error of a listing, as a `ReadingFailure` unless the pattern is at fault. Without the
 * listing nothing is known about the data, so its end must not follow.
 */
export function listingError(error: unknown): unknown {
  return PATTERN_CODES.has(LeatError.from(error).code) ? error : ReadingFailure.of(error);
}

/**
 * Wraps a file so that its reads fail with a `ReadingFailure` if the storage cannot answer now. It must
 * wrap the file and not the format's reader, because formats refuse what is too large with
 * `resource_exhausted`, too.
 */
export function fileOfStorage(file: OpenFile): OpenFile {
  const fail = (error: unknown) => {
    throw storageError(error);
  };
  return {
    sizeBytes: file.sizeBytes,
    read(into, offset) {
      try {
        const read = file.read(into, offset);
        return read instanceof Promise ? read.catch(fail) : read;
      } catch (error) {
        return fail(error);
      }
    },
    expect: (start, stop) => file.expect?.(start, stop),
    close: () => file.close(),
  };
}
