/**
 * A cache of files that are expensive to generate: one folder per set of parameters, complete or
 * absent, reused only while every byte of it is unchanged.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { hashJson } from "../../core/hash.ts";

const MANIFEST_NAME = "manifest.json";
/** Age in ms at which an unfinished folder of another process is removed. */
const ABANDONED_MS = 3_600_000;
const KEY_LENGTH = 12;

/** The parameters of a corpus. Equal parameters give equal corpora. */
interface CorpusParameters {
  /** Names the folder, with a digest of all parameters. */
  kind: string;
  /** Raised when the same parameters give other files. */
  release: number;
  [name: string]: unknown;
}

/** A corpus in the cache. */
interface CachedCorpus<Found> {
  /** Paths of its files, in the order in which they were created. */
  files: string[];
  /** The result of its writer. */
  found: Found;
  /** Whether it came from the cache. */
  reused: boolean;
}

interface Manifest<Found> {
  parameters: CorpusParameters;
  files: { name: string; bytes: number; sha256: string }[];
  found: Found;
}

/**
 * The corpus with these parameters: from the cache if it is there and complete, otherwise written
 * again. The result of `write` is kept with the files and must be JSON.
 */
export async function openCorpus<Found>(
  directory: string,
  parameters: CorpusParameters,
  write: (folder: CorpusFolder) => Found | Promise<Found>,
): Promise<CachedCorpus<Found>> {
  const path = join(directory, `${parameters.kind}-${hashJson(parameters).slice(0, KEY_LENGTH)}`);
  const kept = await readManifest<Found>(path, parameters);
  if (kept !== undefined) return toCorpus(path, kept, true);

  await Deno.mkdir(directory, { recursive: true });
  await sweep(directory);
  const temporary = `${path}.${Deno.pid}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  await Deno.mkdir(temporary);
  try {
    const folder = new CorpusFolder(temporary);
    const found = await write(folder);
    const manifest: Manifest<Found> = { parameters, files: folder.describe(), found };
    await Deno.writeTextFile(join(temporary, MANIFEST_NAME), JSON.stringify(manifest, null, 2));
    await moveIntoPlace(temporary, path, parameters);
    return toCorpus(path, manifest, false);
  } finally {
    await remove(temporary);
  }
}

/** The folder of a corpus while it is written. */
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

  /** The files, with their digests. */
  describe(): Manifest<unknown>["files"] {
    return this.#files.map((file) => file.describe());
  }
}

/** `count` files of a corpus, `KIND-00000-of-00016.EXT`, that take samples in turn. */
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

/** A file of a corpus while it is written. */
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

  /** What the manifest says about it; nothing can be written afterwards. */
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
 * The manifest of a complete corpus; undefined for one that is missing, damaged or of other
 * parameters.
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
 * Moves a finished folder to its place, replacing a damaged one, unless another writer was faster:
 * somebody may read its files already.
 */
async function moveIntoPlace(
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

/** Removes unfinished folders of processes that were killed. */
async function sweep(directory: string): Promise<void> {
  for await (const { name } of Deno.readDir(directory)) {
    if (!name.endsWith(".tmp")) continue;
    const path = join(directory, name);
    const modified = await modifiedMs(path);
    if (modified !== undefined && Date.now() - modified > ABANDONED_MS) await remove(path);
  }
}

/** When a folder was modified. Undefined if another writer has moved it since it was listed. */
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
