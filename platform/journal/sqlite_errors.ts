/** Errors of a log's files, which tell the operator what to do. */
import { rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { isDiskFull, systemCode } from "../system_codes.ts";

const NO_LOG: readonly [LeatErrorCode, string] = [
  "data_loss",
  "is damaged, or is not a log; restore it from a copy, or move it away to start an empty log",
];

/** SQLite's primary result codes for which the operator can do something. */
const CODE_OF_RESULT: ReadonlyMap<number, readonly [LeatErrorCode, string]> = new Map([
  // The statements are correct, so the tables in the file are not a log's.
  [1, NO_LOG],
  [3, [
    "permission_denied",
    "cannot be accessed; give this program permission to read and write it",
  ]],
  [5, ["failed_precondition", "is in use; stop the program that holds it, or choose another file"]],
  [6, ["failed_precondition", "is in use; stop the program that holds it, or choose another file"]],
  [8, ["permission_denied", "is read-only; give this program permission to write it"]],
  [10, ["data_loss", "could not be read or written; check the disk"]],
  [11, ["data_loss", "is damaged; restore it from a copy, or move it away to start an empty log"]],
  [13, ["resource_exhausted", "cannot grow: the disk is full; make room"]],
  [14, ["permission_denied", "could not be opened; check that its folder can be written"]],
  [26, NO_LOG],
]);

/** The system's error codes for files, with the remedy. */
const CODE_OF_SYSTEM: ReadonlyMap<unknown, readonly [LeatErrorCode, string]> = new Map([
  ["ENOTDIR", ["invalid_argument", "lies below a file, not in a folder: choose another folder"]],
  ["EEXIST", ["invalid_argument", "lies below a file, not in a folder: choose another folder"]],
  ["ENAMETOOLONG", ["invalid_argument", "has a name that is too long: choose a shorter one"]],
  ["EACCES", ["permission_denied", "cannot be written; give this program's user permission"]],
  ["EPERM", ["permission_denied", "cannot be written; give this program's user permission"]],
  ["EROFS", ["permission_denied", "is on a read-only file system; choose another folder"]],
  ["EIO", ["data_loss", "could not be read or written; check the disk"]],
  ["ENOSPC", ["resource_exhausted", "cannot grow: the disk is full; make room"]],
  ["EDQUOT", [
    "resource_exhausted",
    "cannot grow: the quota is used up; make room",
  ]],
]);

/** Errors of `exec` have no `errcode`: this maps SQLite's message to its result code. */
const RESULT_OF_TEXT: ReadonlyMap<string, number> = new Map([
  ["attempt to write a readonly database", 8],
  ["disk I/O error", 10],
  ["database or disk is full", 13],
]);

/** SQLite's result code for I/O errors, and its extended code for a read beyond the file's end. */
const IO_ERROR = 10;
const SHORT_READ = 522;

/** Bytes written to find out whether there is space: one SQLite page. */
const PROBE_BYTES = 4096;

/** Whether a disk quota caused an I/O error. SQLite does not say, so this tries to write a file. */
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

export function damaged(path: string, why: string): LeatError {
  const name = basename(path);
  return new LeatError(
    "data_loss",
    `${path} is damaged: ${why}. Restore it and ${name}-wal from a copy. Or move away all files ` +
      `whose names begin with ${name} to start an empty log: what was recorded is then lost`,
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
  const translation = isQuota || result === undefined
    ? CODE_OF_SYSTEM.get(isQuota ? "EDQUOT" : systemCode(error))
    : CODE_OF_RESULT.get(result);
  if (translation !== undefined) {
    const [code, remedy] = translation;
    return new LeatError(code, `${path} ${remedy} (${message})`, { cause: error });
  }
  const cause = LeatError.from(error, "internal");
  return new LeatError(cause.code, `${path}: ${cause.message}`, { cause: error });
}
