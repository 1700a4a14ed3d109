/**
 * Stored datasets: folders of chunk files and a manifest, `DONE`, that says what they hold. A folder
 * without one holds nothing: it is written last.
 *
 * A chunk is a file of TFRecords, each an encoded element. The manifest is JSON with its own digest.
 */
import { LeatError } from "../../core/error.ts";
import { type Compression, COMPRESSIONS } from "../formats/compression.ts";
import type { Host } from "../host.ts";
import type { ElementSpec } from "../spec.ts";
import { encodeDocument, readDocument } from "./document.ts";

/** The name of the manifest within its folder. */
export const MANIFEST_NAME = "DONE";

const FORMAT = "leat-elements-1";

/** One chunk file. */
export interface Chunk {
  /** Within the folder. */
  readonly name: string;
  /** The shard that its elements were assigned to; 0 where there is but one. */
  readonly shard: number;
  /** How many elements it holds. */
  readonly count: number;
  readonly sizeBytes: number;
}

/** What a folder holds. */
export interface Manifest {
  /** Tells one writing from another. */
  readonly id: string;
  readonly spec: ElementSpec;
  readonly compression: Compression | undefined;
  /** In the order of their elements, shard by shard. */
  readonly chunks: readonly Chunk[];
}

/** A path within a folder. */
export function within(folder: string, name: string): string {
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`;
}

/** The bytes of a manifest. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  return encodeDocument(FORMAT, manifest);
}

/**
 * What the folder holds; `undefined` where it holds nothing that was finished.
 *
 * Errors: `data_loss` for a manifest that is damaged, and those of reading files.
 */
export async function readManifest(host: Host, folder: string): Promise<Manifest | undefined> {
  const path = within(folder, MANIFEST_NAME);
  const remedy = `Remove the folder ${folder} to have it written again.`;
  const manifest = await readDocument<Manifest>(host, path, FORMAT, remedy);
  const known: readonly unknown[] = [undefined, ...COMPRESSIONS];
  if (manifest === undefined || known.includes(manifest.compression)) return manifest;
  throw new LeatError(
    "data_loss",
    `${path} was written by another version: unknown compression ${manifest.compression}. ${remedy}`,
  );
}

/** The names of files that stored datasets are written to, finished or not. Nothing else in a folder is ever removed. */
const STORED_NAME = /^[0-9a-f]{16}-[\w-]+\.(tfrecord(\.gz)?|run|rest|ledger)(\.partial)?$/;

/** The paths in a folder that stored datasets have written to, but for `DONE`, which stands for what stays. */
export async function storedPaths(host: Host, folder: string): Promise<string[]> {
  // Characters of the folder's name that mean something in a pattern stand for any; looked at below.
  const pattern = within(folder.replace(/[\\*?[\]{}()!+@|]/g, "?"), "*");
  return (await host.files.list(pattern)).filter((path) =>
    STORED_NAME.test(nameOf(path)) && within(folder, nameOf(path)) === path
  );
}

/** The last part of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
