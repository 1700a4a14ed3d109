/**
 * Stored datasets: folders of chunk files and a manifest, `DONE`, that lists them. The manifest is
 * written last; a folder without one holds no dataset.
 *
 * A chunk is a file of TFRecords, each an encoded element. The manifest is JSON with a checksum.
 */
import { isCount } from "../../core/count.ts";
import { LeatError } from "../../core/error.ts";
import { shownText } from "../../core/shown_text.ts";
import { isPlainObject } from "../../core/tree.ts";
import { show } from "../check.ts";
import { type Compression, COMPRESSIONS } from "../formats/compression/compression.ts";
import { escapeGlob, type Host } from "../host.ts";
import { checkSpec, type ElementSpec } from "../elements/spec.ts";
import { encodeDocument, readDocument } from "./document.ts";

export const MANIFEST_NAME = "DONE";

const FORMAT = "leat-elements-1";

export interface Chunk {
  /** File name within the folder. */
  readonly name: string;
  /** The shard of its elements; 0 if there is only one. */
  readonly shard: number;
  readonly count: number;
  readonly sizeBytes: number;
}

export interface Manifest {
  /** Distinguishes one save from another. */
  readonly id: string;
  readonly spec: ElementSpec;
  readonly compression: Compression | undefined;
  /** The signature of the pipeline that `cache` or `snapshot` stored; `save` has none. */
  readonly pipeline?: string;
  /** For a distributed save: the service's save that committed it, as in the ledger's head. */
  readonly owner?: string;
  /** In the order of their elements, shard by shard. */
  readonly chunks: readonly Chunk[];
}

/** Limit of a file name's length, in characters: file systems allow no longer names. */
const NAME_LENGTH_MAX = 255;

/**
 * The path of a file of a folder. A folder from somebody else may list any name.
 *
 * @throws {LeatError} `data_loss` for a name that leads out of the folder, is too long, or has control
 * characters.
 */
export function within(folder: string, name: string): string {
  const shown = shownText(name);
  if (/[/\\]|^\.*$/.test(name) || shown !== name || name.length > NAME_LENGTH_MAX) {
    throw new LeatError(
      "data_loss",
      `The folder ${folder} lists "${
        shown.slice(0, NAME_LENGTH_MAX)
      }", which cannot be the name of a file in it. ` +
        "Remove the folder to have it written again.",
    );
  }
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`;
}

export function encodeManifest(manifest: Manifest): Uint8Array {
  return encodeDocument(FORMAT, manifest);
}

/**
 * Reads the manifest of a folder; `undefined` if the folder has no finished dataset.
 *
 * Errors: `data_loss` for a damaged manifest, and the errors of reading files.
 */
export async function readManifest(host: Host, folder: string): Promise<Manifest | undefined> {
  const path = within(folder, MANIFEST_NAME);
  const remedy = `Remove the folder ${folder} to have it written again.`;
  return await readDocument<Manifest>(host, path, FORMAT, remedy, checkManifest);
}

function checkManifest(
  { id, compression, pipeline, owner, ...others }: Record<string, unknown>,
): void {
  checkId(id);
  checkCompression(compression);
  checkChunks(others);
  if (!["undefined", "string"].includes(typeof pipeline)) throw new Error("unknown pipeline");
  if (!["undefined", "string"].includes(typeof owner)) throw new Error("unknown owner");
}

/** Checks the id of a save, which is part of file names. */
export function checkId(id: unknown): void {
  if (typeof id !== "string" || !/^[0-9a-f]{16}$/.test(id)) throw new Error("unknown id");
}

export function checkCompression(compression: unknown): void {
  const known: readonly unknown[] = [undefined, ...COMPRESSIONS];
  if (known.includes(compression)) return;
  throw new Error(`unknown compression ${shownText(show(compression))}`);
}

export function checkChunks({ chunks, spec }: Record<string, unknown>): void {
  if (!Array.isArray(chunks) || !chunks.every(isChunk)) throw new Error("unknown chunks");
  try {
    checkSpec("load", spec);
  } catch {
    throw new Error("unknown spec");
  }
}

function isChunk(value: unknown): value is Chunk {
  return isPlainObject(value) && typeof value.name === "string" &&
    [value.shard, value.count, value.sizeBytes].every(isCount);
}

/** Names of the files of stored datasets, finished or not. Leat removes no other files of a folder. */
const STORED_NAME = /^[0-9a-f]{16}-[\w-]+\.(tfrecord(\.gz)?|run|rest|ledger)(\.partial)?$/;

/** The paths of a stored dataset's files in a folder, without `DONE`. */
export async function storedPaths(host: Host, folder: string): Promise<string[]> {
  return (await host.files.list(within(escapeGlob(folder), "*"))).filter((path) =>
    STORED_NAME.test(fileNameOf(path)) && within(folder, fileNameOf(path)) === path
  );
}

/**
 * Removes a file that nobody needs any more. If that fails, warns: the file only takes space, and the
 * next save to its folder removes it.
 */
export function removeLeftover(host: Host, path: string): void {
  try {
    host.newFiles.remove(path);
  } catch (error) {
    const { message } = LeatError.from(error);
    host.warn(`A file is left over: ${message}. The next save to its folder removes it`);
  }
}

export function fileNameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
