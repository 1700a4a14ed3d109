/** Small metadata files: JSON with a checksum, written atomically. */
import { LeatError } from "../../core/error.ts";
import { shownPath, shownText } from "../../core/shown_text.ts";
import { hashBytes } from "../../core/hash.ts";
import { hasManyStructures, JSON_STRUCTURES_MAX, parseJson } from "../../core/json.ts";
import { fieldsOf, isPlainObject } from "../../core/tree.ts";
import { ByteReader } from "../formats/byte_reader.ts";
import type { Host } from "../host.ts";
import { ValueReader, ValueWriter } from "../wire.ts";

/**
 * Limit of a document's size in bytes. The limit of JSON's fields is usually reached first, by a list of
 * some 400,000 files: each takes five.
 */
const DOCUMENT_BYTES_MAX = 128 << 20;

/** Characters of what is wrong with a document that an error shows. */
const WHY_CHARS_SHOWN = 1_000;

/** Time between two attempts to create a file that another writer has locked. */
const LOCK_RETRY_MS = 50;
/** After this time there are no more attempts. */
const LOCK_WAIT_MAX_MS = 30_000;

/**
 * Throws an `Error` that says what is wrong with a document. The checksum does not suffice, because
 * the folder may come from somebody else.
 */
export type DocumentCheck = (document: Readonly<Record<string, unknown>>) => void;

/**
 * The bytes of a document: plain data and specs.
 * @throws {LeatError} `resource_exhausted` if it would be too long to be read.
 */
export function encodeDocument(format: string, value: object): Uint8Array {
  const content = JSON.stringify(new ValueWriter().write({ format, ...value }));
  const isWide = hasManyStructures(content, JSON_STRUCTURES_MAX);
  if (isWide || content.length > DOCUMENT_BYTES_MAX) throw tooLong();
  const bytes = new TextEncoder().encode(JSON.stringify({ digest: hashBytes(content), content }));
  if (bytes.length > DOCUMENT_BYTES_MAX) throw tooLong();
  return bytes;
}

function tooLong(): LeatError {
  return new LeatError(
    "resource_exhausted",
    `A saved dataset's list of files takes more than ${DOCUMENT_BYTES_MAX} bytes (DOCUMENT_BYTES_MAX), ` +
      `or has more than ${JSON_STRUCTURES_MAX} fields (JSON_STRUCTURES_MAX); ` +
      "save it in fewer files, with a larger chunkBytesMax",
  );
}

/** @param beforeCommit Called when the document is complete. Even if its commit fails, it may be there. */
export async function writeDocument(
  host: Host,
  path: string,
  format: string,
  value: object,
  beforeCommit: () => void = () => {},
): Promise<void> {
  const file = await host.newFiles.create(path);
  try {
    await file.append(encodeDocument(format, value));
    beforeCommit();
    await file.commit();
  } finally {
    file.abandon();
  }
}

/**
 * Repeats `begin` while it fails with `already_exists`, which means that another writer has the
 * lock.
 *
 * Errors: `already_exists` after 30 seconds, and other errors of `begin`.
 */
export async function retryWhileLocked<T>(host: Host, begin: () => Promise<T>): Promise<T> {
  const untilMs = host.nowMs() + LOCK_WAIT_MAX_MS;
  for (;;) {
    try {
      return await begin();
    } catch (error) {
      const isLocked = LeatError.from(error).code === "already_exists";
      if (!isLocked || host.nowMs() >= untilMs) throw error;
      await host.sleep(LOCK_RETRY_MS);
    }
  }
}

/**
 * Changes or creates a document. Concurrent changes are applied one after the other.
 *
 * @param remedy As in {@linkcode readDocument}.
 * @param change Returns the new document; `undefined` leaves the current one as it is.
 */
export async function changeDocument<T extends object>(
  host: Host,
  path: string,
  format: string,
  remedy: string,
  check: DocumentCheck,
  change: (document: T | undefined) => Promise<T | undefined>,
): Promise<void> {
  const file = await retryWhileLocked(host, () => host.newFiles.create(path));
  try {
    const changed = await change(await readDocument<T>(host, path, format, remedy, check));
    if (changed === undefined) return;
    await file.append(encodeDocument(format, changed));
    await file.commit();
  } finally {
    file.abandon();
  }
}

/**
 * Reads a document; `undefined` if there is none.
 *
 * Errors: `data_loss` for a document that is damaged, of another format or refused by `check`, and
 * the errors of reading files.
 *
 * @param remedy A sentence for the error message: what to do about a damaged document.
 */
export async function readDocument<T>(
  host: Host,
  path: string,
  format: string,
  remedy: string,
  check: DocumentCheck,
): Promise<T | undefined> {
  const bytes = await readWhole(host, path);
  if (bytes === undefined) return undefined;
  try {
    const document = decode(bytes, format);
    check(document);
    return document as T;
  } catch (error) {
    // It may quote the document, which may be of others.
    const cause = LeatError.fromWire(LeatError.from(error).toWire());
    const why = shownText(cause.message.slice(0, WHY_CHARS_SHOWN));
    throw new LeatError(
      "data_loss",
      `${shownPath(path)} is damaged, or was written by another version: ${why}. ${remedy}`,
      { cause },
    );
  }
}

async function readWhole(host: Host, path: string): Promise<Uint8Array | undefined> {
  try {
    const reader = new ByteReader(path, await host.files.open(path));
    try {
      const size = await reader.fill(Math.min(reader.remaining, DOCUMENT_BYTES_MAX + 1));
      return reader.take(size);
    } finally {
      reader.close();
    }
  } catch (error) {
    if (LeatError.from(error).code === "not_found") return undefined;
    throw error;
  }
}

function decode(bytes: Uint8Array, format: string): Record<string, unknown> {
  if (bytes.length > DOCUMENT_BYTES_MAX) {
    throw new Error(`it has more than ${DOCUMENT_BYTES_MAX} bytes (DOCUMENT_BYTES_MAX)`);
  }
  const outer = parsed(new TextDecoder().decode(bytes));
  const { digest, content } = fieldsOf(outer);
  if (typeof content !== "string") throw new Error("it has no contents");
  if (digest !== hashBytes(content)) throw new Error("its checksum is wrong");
  const value = new ValueReader().read(parsed(content));
  if (!isPlainObject(value) || value.format !== format) throw new Error("unknown format");
  const { format: _, ...document } = value;
  return document;
}

/** V8's error would quote the file, which may be a symbolic link to any file of this machine. */
function parsed(text: string): unknown {
  if (hasManyStructures(text, JSON_STRUCTURES_MAX)) {
    throw new Error(`it has more than ${JSON_STRUCTURES_MAX} fields (JSON_STRUCTURES_MAX)`);
  }
  try {
    return parseJson(text, Infinity);
  } catch {
    throw new Error("it is not JSON");
  }
}
