/** Writes a stored dataset. */
import { LeatError } from "../../core/error.ts";
import { specOf } from "../elements/components.ts";
import { hex64, type Host, type NewFile } from "../host.ts";
import { type ElementSpec, mergeSpecs } from "../elements/spec.ts";
import { isWhole, missingIn } from "../elements/spec_check.ts";
import { wholeState } from "../checkpoint/whole_state.ts";
import { ChunkWriter } from "./chunk_writer.ts";
import { entryName, Ledger, type LedgerHead } from "./ledger.ts";
import {
  type Chunk,
  encodeManifest,
  fileNameOf,
  type Manifest,
  MANIFEST_NAME,
  readManifest,
  removeLeftover,
  storedPaths,
  within,
} from "./manifest.ts";

export interface WritingOptions {
  readonly compression?: "gzip" | undefined;
  /** Size in bytes after which a new chunk begins. Default 256 MiB. */
  readonly chunkBytesMax?: number | undefined;
  /** The element spec. Default: inferred from the elements. */
  readonly spec?: ElementSpec;
  /** The signature of the pipeline: `cache` and `snapshot` refuse elements with another one. */
  readonly pipeline?: string;
  /**
   * The ledger to keep while writing: `"head"` says only that a writer is active; `"entries"` also lists
   * finished chunks, which can then be read before the end. Default: none.
   */
  readonly ledger?: "head" | "entries";
}

/** A writer's part of a checkpoint. These chunks stay in the folder if the writer ends early. */
export interface WritingState {
  readonly id: string;
  readonly chunks: readonly Chunk[];
  readonly count: number;
  readonly spec: ElementSpec;
}

/**
 * Writes the chunks of a folder, and its manifest last. Until then the manifest is an uncommitted
 * file, which is a lock (see `NewFiles.create`): a folder has one writer at a time.
 */
export class ElementsWriter {
  readonly #host: Host;
  readonly #folder: string;
  readonly #manifest: NewFile;
  readonly #options: WritingOptions;
  readonly #id: string;
  readonly #chunks: Chunk[];
  /** How many of the chunks stay if the write is abandoned: those of the last checkpoint. */
  #kept: number;
  /** Number of chunks begun, for their names. */
  #begun: number;
  #count: number;
  /** Bytes written, in finished and open chunks. */
  #sizeBytes: number;
  #spec: ElementSpec;
  readonly #open = new Map<number, ChunkWriter>();
  #replaces: Manifest | undefined;
  readonly #ledger: Ledger;
  #hasLedger = false;
  /** Number of ledger entries; each lists one chunk. */
  #entries = 0;
  #isCommitting = false;
  #abandoned = false;

  private constructor(
    host: Host,
    folder: string,
    manifest: NewFile,
    options: WritingOptions,
    { chunks, count, spec }: Pick<WritingState, "chunks" | "count" | "spec">,
  ) {
    this.#host = host;
    this.#folder = folder;
    this.#ledger = new Ledger(host, folder);
    this.#manifest = manifest;
    this.#options = options;
    this.#id = hex64(host);
    this.#chunks = [...chunks];
    this.#kept = this.#begun = chunks.length;
    this.#count = count;
    this.#sizeBytes = chunks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    this.#spec = spec;
  }

  /**
   * Locks the folder. A dataset saved there stays until `finish()`.
   *
   * Errors: `already_exists` while another writer is active there, `permission_denied`.
   */
  static async begin(host: Host, folder: string, options: WritingOptions): Promise<ElementsWriter> {
    const manifest = await host.newFiles.create(within(folder, MANIFEST_NAME));
    const state = { chunks: [], count: 0, spec: options.spec };
    const writer = new ElementsWriter(host, folder, manifest, options, state);
    try {
      writer.#replaces = await readManifest(host, folder);
      return writer;
    } catch (error) {
      writer.abandon();
      throw error;
    }
  }

  /**
   * Continues after a checkpoint; `undefined` if its chunks were removed or replaced. The writer gets a
   * new id, and so new chunk names, because another writer may have resumed from the same checkpoint.
   */
  static async resume(
    host: Host,
    folder: string,
    options: WritingOptions,
    state: WritingState,
  ): Promise<ElementsWriter | undefined> {
    const manifest = await host.newFiles.create(within(folder, MANIFEST_NAME));
    let writer: ElementsWriter | undefined;
    try {
      if (await isFree(host, folder) && await allExist(host, folder, state.chunks)) {
        writer = new ElementsWriter(host, folder, manifest, options, state);
      }
      return writer;
    } finally {
      if (writer === undefined) manifest.abandon();
    }
  }

  /** The manifest of the folder when writing began. */
  get replaces(): Manifest | undefined {
    return this.#replaces;
  }

  /**
   * Removes the files of unfinished saves. Called once, before anything is written.
   *
   * @param check Called with the head of an unfinished save; throws if that save must stay.
   */
  async clear(check: (unfinished: LedgerHead | undefined) => void): Promise<void> {
    const { ledger, compression } = this.#options;
    await this.#ledger.change((unfinished) => {
      this.#expectActive();
      check(unfinished);
      this.#hasLedger = ledger !== undefined;
      if (!this.#hasLedger && unfinished !== undefined) {
        this.#host.newFiles.remove(this.#ledger.headPath);
      }
      return Promise.resolve(this.#hasLedger ? { id: this.#id, compression } : undefined);
    });
    // The head changes first, so nobody resumes the save whose chunks are removed here.
    await this.#removeChunksBut(this.#replaces);
  }

  get count(): number {
    return this.#count;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Adds an element. Returns synchronously if the element is only buffered. */
  write(element: unknown, shard = 0): void | Promise<void> {
    if (!isWhole(element)) throw missingIn(element, `${this.#folder}: element ${this.#count}`);
    this.#countElement(element);
    const chunk = this.#open.get(shard);
    return chunk === undefined
      ? this.#beginChunk(element, shard)
      : this.#writeTo(chunk, element, shard);
  }

  /** Finishes the open chunks. */
  async closeChunks(): Promise<void> {
    for (const [shard, chunk] of [...this.#open]) await this.#closeChunk(shard, chunk);
  }

  /** Commits the manifest, and removes what it replaces. */
  async finish(): Promise<Manifest> {
    await this.closeChunks();
    const { compression, pipeline } = this.#options;
    const manifest: Manifest = {
      id: this.#id,
      spec: this.#spec,
      compression,
      ...(pipeline === undefined ? {} : { pipeline }),
      chunks: this.#chunks.toSorted((a, b) => a.shard - b.shard),
    };
    await this.#manifest.append(encodeManifest(manifest));
    // A committed manifest locks nothing, so the ledger's lock keeps other writers out.
    await this.#ledger.change(async () => {
      this.#isCommitting = true;
      await this.#manifest.commit();
      if (this.#abandoned) return undefined;
      removeLeftover(this.#host, this.#ledger.headPath);
      await this.#removeChunksBut(manifest, (path) => removeLeftover(this.#host, path));
      return undefined;
    });
    return manifest;
  }

  /** Finishes the open chunks. All finished chunks then stay for a resumed writer. */
  async save(): Promise<WritingState> {
    await this.closeChunks();
    this.#kept = this.#chunks.length;
    return { id: this.#id, chunks: [...this.#chunks], count: this.#count, spec: this.#spec };
  }

  /**
   * Abandons the write: removes everything since the last checkpoint, and unlocks the folder.
   * Synchronous and idempotent.
   */
  abandon(): void {
    if (this.#abandoned || (this.#isCommitting && !this.#manifest.abandon())) return;
    this.#abandoned = true;
    for (const chunk of this.#open.values()) chunk.abandon();
    this.#open.clear();
    // The head goes first, so readers do not open files that are removed below.
    if (this.#hasLedger) removeLeftover(this.#host, this.#ledger.headPath);
    const chunks = this.#chunks.splice(this.#kept).map(({ name }) => name);
    const entries = Array.from({ length: this.#entries }, (_, i) => entryName(this.#id, i));
    for (const name of [...chunks, ...entries]) this.#removeLeftover(name);
    this.#manifest.abandon();
  }

  #removeLeftover(name: string): void {
    removeLeftover(this.#host, within(this.#folder, name));
  }

  #expectActive(): void {
    if (this.#abandoned) throw new LeatError("cancelled", `Writing ${this.#folder} was abandoned.`);
  }

  /**
   * Removes all stored files that the manifest does not list.
   *
   * @param remove Removes one of them. Default: ends with an error if that fails.
   */
  async #removeChunksBut(
    manifest: Manifest | undefined,
    remove: (path: string) => void = (path) => this.#host.newFiles.remove(path),
  ): Promise<void> {
    const kept = new Set(manifest?.chunks.map(({ name }) => name));
    const paths = await storedPaths(this.#host, this.#folder);
    // `abandon()` has released the lock, so the files may now belong to another writer.
    if (this.#abandoned) return;
    for (const path of paths) {
      if (!kept.has(fileNameOf(path))) remove(path);
    }
  }

  /** Counts the element and, unless the options give a spec, merges its spec with those before. */
  #countElement(element: unknown): void {
    if (this.#count++ === 0) this.#spec ??= specOf(element);
    else if (this.#options.spec === undefined && this.#spec !== undefined) {
      this.#spec = mergeSpecs(this.#spec, specOf(element), () => undefined);
    }
  }

  async #beginChunk(element: unknown, shard: number): Promise<void> {
    const number = String(this.#begun++).padStart(6, "0");
    const { compression, chunkBytesMax: bytesMax } = this.#options;
    const compress = compression === "gzip";
    const name = `${this.#id}-${number}.tfrecord${compress ? ".gz" : ""}`;
    const options = { shard, compress, bytesMax };
    const chunk = await ChunkWriter.begin(this.#host, this.#folder, name, options);
    if (this.#abandoned) chunk.abandon();
    this.#expectActive();
    this.#open.set(shard, chunk);
    await this.#writeTo(chunk, element, shard);
  }

  #writeTo(chunk: ChunkWriter, element: unknown, shard: number): void | Promise<void> {
    const before = chunk.sizeBytes;
    const written = chunk.write(element);
    this.#sizeBytes += chunk.sizeBytes - before;
    if (written === undefined && !chunk.isFull) return;
    return this.#afterWriting(chunk, shard, written);
  }

  async #afterWriting(
    chunk: ChunkWriter,
    shard: number,
    written: void | Promise<void>,
  ): Promise<void> {
    await written;
    if (chunk.isFull) await this.#closeChunk(shard, chunk);
  }

  async #closeChunk(shard: number, chunk: ChunkWriter): Promise<void> {
    const before = chunk.sizeBytes;
    const finished = await chunk.finish();
    this.#sizeBytes += finished.sizeBytes - before;
    this.#open.delete(shard);
    if (this.#abandoned) {
      this.#removeLeftover(finished.name);
      return;
    }
    this.#chunks.push(finished);
    if (this.#options.ledger !== "entries") return;
    const number = this.#entries++;
    await this.#ledger.enter(this.#id, { number, chunks: [finished], spec: this.#spec });
    if (this.#abandoned) {
      this.#removeLeftover(entryName(this.#id, number));
    }
  }
}

/** Returns a copy of a saved state. Throws if a field is missing. */
export function wholeWriting(saved: WritingState): WritingState {
  const { id, chunks, count, spec } = wholeState(saved);
  return { id, chunks: chunks.map(wholeChunk), count, spec };
}

/** Returns a copy of a chunk. Throws if one of the fields that the manifest will list is missing. */
function wholeChunk(saved: Chunk): Chunk {
  const { name, shard, count, sizeBytes } = wholeState(saved);
  return { name, shard, count, sizeBytes };
}

/**
 * Whether the folder has neither a saved dataset nor an unfinished distributed save. Takes the
 * ledger's lock, which a writer holds while it finishes.
 */
async function isFree(host: Host, folder: string): Promise<boolean> {
  let isFree = false;
  await new Ledger(host, folder).change(async (head) => {
    isFree = head?.joint === undefined && await readManifest(host, folder) === undefined;
    return undefined;
  });
  return isFree;
}

async function allExist(host: Host, folder: string, chunks: readonly Chunk[]): Promise<boolean> {
  for (const { name, sizeBytes } of chunks) {
    if (await sizeOf(host, within(folder, name)) !== sizeBytes) return false;
  }
  return true;
}

/** The size of a file; `undefined` if there is none. */
async function sizeOf(host: Host, path: string): Promise<number | undefined> {
  try {
    const file = await host.files.open(path);
    file.close();
    return file.sizeBytes;
  } catch (error) {
    if (LeatError.from(error).code === "not_found") return undefined;
    throw error;
  }
}
