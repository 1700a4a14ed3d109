/**
 * A cache of files that are expensive to generate: one folder per set of parameters, complete or
 * absent, reused only while every byte of it is unchanged.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { hashJson } from "../../core/hash.ts";

const MANIFEST_NAME = "manifest.json";
/** Bytes that a file gathers before it is written. */
const BUFFER_BYTES = 1024 * 1024;
/** Age in ms at which an unfinished folder of another process is removed. */
const ABANDONED_MS = 3_600_000;
const KEY_LENGTH = 12;

/** The parameters of a corpus. Equal parameters give equal corpora. */
export interface CorpusParameters {
  /** Names the folder, with a digest of all parameters. */
  kind: string;
  /** Raised when the same parameters give other files. */
  release: number;
  [name: string]: unknown;
}

/** A corpus in the cache. */
export interface CachedCorpus<Found> {
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
 * again.
 * @param directory The cache; created if it is missing.
 * @param parameters The parameters of the corpus.
 * @param write Creates and fills the files; its result is kept with them and must be JSON.
 */
export async function openCorpus<Found>(
  directory: string,
  parameters: CorpusParameters,
  write: (folder: CorpusFolder) => Promise<Found>,
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
    const manifest: Manifest<Found> = { parameters, files: await folder.close(), found };
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

  /** Creates a file. */
  create(name: string): CorpusFile {
    const file = new CorpusFile(this.#path, name);
    this.#files.push(file);
    return file;
  }

  /** Writes the rest and returns the digest of each file. */
  async close(): Promise<Manifest<unknown>["files"]> {
    return await Promise.all(this.#files.map((file) => file.close()));
  }
}

/** A file of a corpus while it is written. */
export class CorpusFile {
  readonly #name: string;
  readonly #path: string;
  readonly #hash = createHash("sha256");
  #buffered: Uint8Array[] = [];
  #bufferedBytes = 0;
  #bytes = 0;

  constructor(folder: string, name: string) {
    this.#name = name;
    this.#path = join(folder, name);
  }

  /** Appends bytes, which must not change afterwards. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#buffered.push(bytes);
    this.#bufferedBytes += bytes.length;
    if (this.#bufferedBytes >= BUFFER_BYTES) await this.#flush();
  }

  /** Writes the rest. */
  async close(): Promise<{ name: string; bytes: number; sha256: string }> {
    await this.#flush();
    return { name: this.#name, bytes: this.#bytes, sha256: this.#hash.digest("hex") };
  }

  async #flush(): Promise<void> {
    const chunk = new Uint8Array(this.#bufferedBytes);
    let at = 0;
    for (const bytes of this.#buffered) {
      chunk.set(bytes, at);
      at += bytes.length;
    }
    this.#buffered = [];
    this.#bufferedBytes = 0;
    this.#bytes += chunk.length;
    this.#hash.update(chunk);
    await Deno.writeFile(this.#path, chunk, { append: true });
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
    if (error instanceof Deno.errors.NotFound || isDamage(error)) return undefined;
    throw error;
  }
}

/** Whether a manifest could be read but is invalid. */
function isDamage(error: unknown): boolean {
  return error instanceof SyntaxError || error instanceof TypeError;
}

/**
 * Moves a finished folder to its place, replacing a damaged one, unless another process was faster.
 */
async function moveIntoPlace(
  temporary: string,
  path: string,
  parameters: CorpusParameters,
): Promise<void> {
  if (await readManifest(path, parameters) !== undefined) return;
  await remove(path);
  try {
    await Deno.rename(temporary, path);
  } catch (error) {
    if (await readManifest(path, parameters) === undefined) throw error;
  }
}

/** Removes unfinished folders of processes that were killed. */
async function sweep(directory: string): Promise<void> {
  for await (const { name } of Deno.readDir(directory)) {
    if (!name.endsWith(".tmp")) continue;
    const path = join(directory, name);
    const modified = (await Deno.stat(path)).mtime?.getTime() ?? 0;
    if (Date.now() - modified > ABANDONED_MS) await remove(path);
  }
}

async function remove(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
