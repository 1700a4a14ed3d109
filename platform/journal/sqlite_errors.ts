/** The errors of a log's files, with what the operator can do. */
import { rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { isDiskFull, systemCode } from "../system_codes.ts";

const NO_LOG: readonly [LeatErrorCode, string] = [
  "data_loss",
  "is damaged or no log; restore it from a copy, or move it away to begin anew",
];

/** SQLite's primary result codes for which the operator can do something. */
const CODE_OF_RESULT: ReadonlyMap<number, readonly [LeatErrorCode, string]> = new Map([
  // The statements are correct, so the tables in the file are not a log's.
  [1, NO_LOG],
  [3, [
    "permission_denied",
    "may not be accessed; give this program the right to read and write it",
  ]],
  [5, ["failed_precondition", "is in use; stop the program that holds it, or choose another file"]],
  [6, ["failed_precondition", "is in use; stop the program that holds it, or choose another file"]],
  [8, ["permission_denied", "may only be read; give this program the right to write it"]],
  [10, ["data_loss", "could not be read or written; check the disk"]],
  [11, ["data_loss", "is damaged; restore it from a copy, or move it away to begin anew"]],
  [13, ["resource_exhausted", "cannot grow: the disk is full; make room"]],
  [14, ["permission_denied", "could not be opened; check that its folder may be written"]],
  [26, NO_LOG],
]);

/** The system's error codes for files, with the remedy. */
const CODE_OF_SYSTEM: ReadonlyMap<unknown, readonly [LeatErrorCode, string]> = new Map([
  ["ENOTDIR", ["invalid_argument", "lies below a file: name a folder, or one that can be made"]],
  ["EEXIST", ["invalid_argument", "lies below a file: name a folder, or one that can be made"]],
  ["ENAMETOOLONG", ["invalid_argument", "is too long a name: choose a shorter one"]],
  ["EACCES", ["permission_denied", "may not be written; give this program's user the right to"]],
  ["EPERM", ["permission_denied", "may not be written; give this program's user the right to"]],
  ["EROFS", ["permission_denied", "is on a disk that may only be read; choose another folder"]],
  ["ENOSPC", ["resource_exhausted", "cannot grow: the disk is full; make room"]],
  ["EDQUOT", [
    "resource_exhausted",
    "cannot grow: the quota is used up; make room",
  ]],
]);

/** `exec` reports results without their number: this maps SQLite's text to it. */
const RESULT_OF_TEXT: ReadonlyMap<string, number> = new Map([
  ["attempt to write a readonly database", 8],
  ["disk I/O error", 10],
  ["database or disk is full", 13],
]);

/** SQLite's code for an I/O error, and the extended one for a page where the file ends. */
const IO_ERROR = 10;

const SHORT_READ = 522;

/** Bytes written to find out whether there is space: one SQLite page. */
const PROBE_BYTES = 4096;

/** SQLite reports an exhausted quota as an I/O error: writing a new file tells which it is. */
function isQuotaUsedUp(path: string): boolean {
  const probe = `${path}-probe`;
  try {
    writeFileSync(probe, new Uint8Array(PROBE_BYTES));
    return false;
  } catch (error) {
    return isDiskFull(error);
  } finally {
    rmSync(probe, { force: true });
  }
}

export function damaged(path: string, what: string): LeatError {
  return new LeatError(
    "data_loss",
    `${path} is damaged: ${what}. Restore it with its ${`${basename(path)}-wal`} from a copy, ` +
      "or move it away with all files of the same prefix to begin anew (what it recorded is then " +
      "forgotten)",
  );
}

export function translate(error: unknown, path: string): LeatError {
  if (error instanceof LeatError) return error;
  const { message, errcode = RESULT_OF_TEXT.get(message) } = error as
    & Error
    & { readonly errcode?: unknown };
  if (errcode === SHORT_READ) return damaged(path, "it is cut off");
  const result = typeof errcode === "number" ? errcode & 0xff : undefined;
  const isQuota = result === IO_ERROR && isQuotaUsedUp(path);
  const known = isQuota || result === undefined
    ? CODE_OF_SYSTEM.get(isQuota ? "EDQUOT" : systemCode(error))
    : CODE_OF_RESULT.get(result);
  if (known !== undefined) {
    return new LeatError(known[0], `${path} ${known[1]} (${message})`, {
      cause: error,
    });
  }
  const cause = LeatError.from(error, "internal");
  return new LeatError(cause.code, `${path}: ${cause.message}`, { cause: error });
}
