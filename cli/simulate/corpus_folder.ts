/**
 * Caches files that are expensive to generate. Each set of parameters has its own folder, which is
 * complete or absent, and is reused only while all its bytes are unchanged.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { hashJson } from "../../core/hash.ts";

const MANIFEST_NAME = "manifest.json";
/** Age at which an unfinished folder of another process is removed, in ms. */
const ABANDONED_MS = 3_600_000;
const KEY_LENGTH = 12;
/** The name of an unfinished folder: that of the corpus, the process and a random part. */
const UNFINISHED = /-[0-9a-f]{12}\.\d+\.[0-9a-f]{8}\.tmp$/;

/** The parameters of a corpus. Equal parameters give equal corpora. */
interface CorpusParameters {
  /** Names the folder, with a digest of all parameters. */
  kind: string;
  /** Increase it when the same parameters give other files. */
  release: number;
  [name: string]: unknown;
}

/** A corpus in the cache. */
interface CachedCorpus<Found> {
  /** Paths of the files, in the order in which they were created. */
  files: string[];
  /** The result of its writer. */
  found: Found;
  /** Whether the corpus came from the cache. */
  reused: boolean;
}

interface Manifest<Found> {
  parameters: CorpusParameters;
  files: { name: string; bytes: number; sha256: string }[];
  found: Found;
}

/**
 * Returns the corpus with these parameters: from the cache if it is complete there, otherwise written
 * anew. The result of `write` is stored with the files and must be JSON.
 */
export async function openCorpus<Found>(
  directory: string,
  parameters: CorpusParameters,
  write: (folder: CorpusFolder) => Found | Promise<Found>,
): Promise<CachedCorpus<Found>> {
  const path = join(directory, `${parameters.kind}-${hashJson(parameters).slice(0, KEY_LENGTH)}`);
  const cached = await readManifest<Found>(path, parameters);
  if (cached !== undefined) return toCorpus(path, cached, true);

  await Deno.mkdir(directory, { recursive: true });
  await removeAbandoned(directory);
  const temporary = `${path}.${Deno.pid}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  await Deno.mkdir(temporary);
  try {
    const folder = new CorpusFolder(temporary);
    const found = await write(folder);
    const manifest: Manifest<Found> = { parameters, files: folder.describe(), found };
    await Deno.writeTextFile(join(temporary, MANIFEST_NAME), JSON.stringify(manifest, null, 2));
    await publish(temporary, path, parameters);
    return toCorpus(path, manifest, false);
  } finally {
    await remove(temporary);
  }
}

/** The folder of a corpus that is being written. */
export class CorpusFolder {
  readonly #path: string;
  readonly #files: CorpusFile[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  create(name: string): CorpusFile {
    const file = new CorpusFile(this.#path, name);
    this.#files.push(file);
    return file;
  }

  /** Returns the files with their digests. */
  describe(): Manifest<unknown>["files"] {
    return this.#files.map((file) => file.describe());
  }
}

/** Distributes samples round-robin over `count` files, `KIND-00000-of-00016.EXT`. */
export class Shards {
  readonly #files: CorpusFile[];
  #samples = 0;

  constructor(folder: CorpusFolder, count: number, kind: string, extension: string) {
    const padded = (index: number) => String(index).padStart(5, "0");
    this.#files = Array.from(
      { length: count },
      (_, index) => folder.create(`${kind}-${padded(index)}-of-${padded(count)}.${extension}`),
    );
  }

  add(sample: Uint8Array): void {
    this.#files[this.#samples++ % this.#files.length]!.write(sample);
  }
}

/** A file of a corpus that is being written. */
export class CorpusFile {
  readonly #name: string;
  readonly #path: string;
  readonly #hash = createHash("sha256");
  #bytes = 0;

  constructor(folder: string, name: string) {
    this.#name = name;
    this.#path = join(folder, name);
    Deno.writeFileSync(this.#path, new Uint8Array());
  }

  write(bytes: Uint8Array): void {
    Deno.writeFileSync(this.#path, bytes, { append: true });
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
  }

  /** Returns the file's entry in the manifest. Nothing can be written afterwards. */
  describe(): { name: string; bytes: number; sha256: string } {
    return { name: this.#name, bytes: this.#bytes, sha256: this.#hash.digest("hex") };
  }
}

function toCorpus<Found>(
  path: string,
  manifest: Manifest<Found>,
  reused: boolean,
): CachedCorpus<Found> {
  const files = manifest.files.map(({ name }) => join(path, name));
  return { files, found: manifest.found, reused };
}

/**
 * Returns the manifest of a complete corpus; undefined if the corpus is missing or damaged, or has
 * other parameters.
 */
async function readManifest<Found>(
  path: string,
  parameters: CorpusParameters,
): Promise<Manifest<Found> | undefined> {
  try {
    const text = await Deno.readTextFile(join(path, MANIFEST_NAME));
    const manifest = JSON.parse(text) as Manifest<Found>;
    if (hashJson(manifest.parameters) !== hashJson(parameters)) return undefined;
    for (const { name, bytes, sha256 } of manifest.files) {
      const contents = await Deno.readFile(join(path, name));
      if (contents.length !== bytes) return undefined;
      if (createHash("sha256").update(contents).digest("hex") !== sha256) return undefined;
    }
    return manifest;
  } catch (error) {
    const isDamaged = error instanceof SyntaxError || error instanceof TypeError;
    if (error instanceof Deno.errors.NotFound || isDamaged) return undefined;
    throw error;
  }
}

/**
 * Moves a finished folder to its path. Replaces a damaged folder, but not one that another writer has
 * completed, because another process may already be reading it.
 */
async function publish(
  temporary: string,
  path: string,
  parameters: CorpusParameters,
): Promise<void> {
  for (const isLastTry of [false, true]) {
    try {
      return await Deno.rename(temporary, path);
    } catch (error) {
      if (await readManifest(path, parameters) !== undefined) return;
      if (isLastTry) throw error;
      await remove(path);
    }
  }
}

/**
 * Removes unfinished folders of processes that were killed. The user chose the directory, so it may have
 * other files of any name, and unfinished folders of other users.
 */
async function removeAbandoned(directory: string): Promise<void> {
  for await (const { name, isDirectory } of Deno.readDir(directory)) {
    if (!isDirectory || !UNFINISHED.test(name)) continue;
    const path = join(directory, name);
    const modified = await modifiedMs(path);
    if (modified === undefined || Date.now() - modified <= ABANDONED_MS) continue;
    await remove(path).catch((error) => {
      if (!(error instanceof Deno.errors.PermissionDenied)) throw error;
    });
  }
}

/** Returns when a folder was modified; undefined if its writer has moved it since it was listed. */
async function modifiedMs(path: string): Promise<number | undefined> {
  try {
    return (await Deno.stat(path)).mtime?.getTime() ?? 0;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

async function remove(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
