/**
 * Stored datasets: folders of chunk files and a manifest, `DONE`, that says what they hold. A folder
 * without one holds nothing: it is written last.
 *
 * A chunk is a file of TFRecords, each an encoded element. The manifest is JSON with its own digest.
 */
import { LeatError } from "../../core/error.ts";
import { hashBytes } from "../../core/hash.ts";
import { isPlainObject } from "../../core/tree.ts";
import { ByteReader } from "../formats/byte_reader.ts";
import { type Compression, COMPRESSIONS } from "../formats/compression.ts";
import type { Host } from "../host.ts";
import type { ElementSpec } from "../spec.ts";
import { ValueReader, ValueWriter } from "../wire.ts";

/** The name of the manifest within its folder. */
export const MANIFEST_NAME = "DONE";

const FORMAT = "leat-elements-1";

/** Longest manifest that is read: about a million chunks. */
const MANIFEST_BYTES_MAX = 128 << 20;

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

/** Keeps the components of a spec that nothing is known of. */
class ManifestWriter extends ValueWriter {
  protected override entries(object: Record<string, unknown>): [string, unknown][] {
    return Object.entries(object);
  }
}

/** The bytes of a manifest. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  const content = JSON.stringify(new ManifestWriter().write({ format: FORMAT, ...manifest }));
  return new TextEncoder().encode(JSON.stringify({ digest: hashBytes(content), content }));
}

/**
 * What the folder holds; `undefined` where it holds nothing that was finished.
 *
 * Errors: `data_loss` for a manifest that is damaged, and those of reading files.
 */
export async function readManifest(host: Host, folder: string): Promise<Manifest | undefined> {
  const path = within(folder, MANIFEST_NAME);
  const bytes = await readWhole(host, path);
  if (bytes === undefined) return undefined;
  try {
    return decodeManifest(bytes);
  } catch (cause) {
    throw new LeatError(
      "data_loss",
      `${path} is damaged, or was written by another version: ${
        LeatError.from(cause).message
      }. Remove the folder ${folder} to have it written again.`,
      { cause },
    );
  }
}

async function readWhole(host: Host, path: string): Promise<Uint8Array | undefined> {
  try {
    const reader = new ByteReader(path, await host.files.open(path));
    try {
      const size = await reader.fill(Math.min(reader.remaining, MANIFEST_BYTES_MAX));
      return reader.take(size);
    } finally {
      reader.close();
    }
  } catch (error) {
    if (LeatError.from(error).code === "not_found") return undefined;
    throw error;
  }
}

function decodeManifest(bytes: Uint8Array): Manifest {
  const { digest, content } = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, string>;
  if (digest !== hashBytes(content!)) throw new Error("its checksum is wrong");
  const manifest = new ValueReader().read(JSON.parse(content!));
  if (!isPlainObject(manifest) || manifest.format !== FORMAT) throw new Error("unknown format");
  const { id, spec, compression, chunks } = manifest as unknown as Manifest;
  const known: readonly unknown[] = [undefined, ...COMPRESSIONS];
  if (!known.includes(compression)) throw new Error(`unknown compression ${compression}`);
  return { id, spec, compression, chunks };
}
