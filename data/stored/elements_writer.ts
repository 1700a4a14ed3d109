/**
 * Writing a stored dataset.
 */
import { LeatError } from "../../core/error.ts";
import { specOf } from "../components.ts";
import { hex64, type Host, type NewFile } from "../host.ts";
import { type ElementSpec, mergeSpecs } from "../spec.ts";
import { isWhole, missingIn } from "../spec_check.ts";
import { wholeState } from "../whole_state.ts";
import { ChunkWriter } from "./chunk_writer.ts";
import { entryName, Ledger, type LedgerHead } from "./ledger.ts";
import {
  type Chunk,
  encodeManifest,
  type Manifest,
  MANIFEST_NAME,
  nameOf,
  readManifest,
  storedPaths,
  within,
} from "./manifest.ts";

/** How elements are written. */
export interface WritingOptions {
  readonly compression?: "gzip" | undefined;
  /** A chunk that has grown to so many bytes is followed by another. Default 256 MiB. */
  readonly chunkBytesMax?: number | undefined;
  /** What is known of the elements; what is not is found out from them. */
  readonly spec?: ElementSpec;
  /**
   * Whether there is a ledger meanwhile: one that says that somebody writes, or one with entries, from
   * which chunks are read as they are finished. Default: none.
   */
  readonly ledger?: "head" | "entries";
}

/** What was written before a writer was saved: chunks that stay when it goes. */
export interface WritingState {
  readonly id: string;
  readonly chunks: readonly Chunk[];
  readonly count: number;
  readonly spec: ElementSpec;
}

const CHUNK_BYTES_MAX = 256 << 20;

/**
 * Writes the chunks of one folder, and at last its manifest. Until then the folder's manifest is a
 * file in the making and so locked: there is one writer at a time.
 */
export class ElementsWriter {
  readonly #host: Host;
  readonly #folder: string;
  readonly #manifest: NewFile;
  readonly #options: WritingOptions;
  readonly #id: string;
  readonly #chunks: Chunk[];
  /** How many of the chunks stay if it is abandoned. */
  #kept: number;
  #begun: number;
  #count: number;
  #spec: ElementSpec;
  /** Per shard, the chunk that is being written. */
  readonly #open = new Map<number, ChunkWriter>();
  #replaces: Manifest | undefined;
  readonly #ledger: Ledger;
  #hasLedger = false;
  /** How many entries it has: each lists a chunk. */
  #entries = 0;
  /** The manifest is being put in its place, or is there. */
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
    this.#spec = spec;
  }

  /**
   * Locks the folder. What it holds stays until it is replaced.
   *
   * Errors: `already_exists` while somebody else writes there, `permission_denied`.
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
   * Goes on after the elements that were written before a writer was saved; `undefined` where they are
   * gone, or something else is there. Its chunks have names of their own: another one may have gone on
   * from the same place.
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
      const { chunks, count, spec } = wholeState(state);
      const written = chunks.map(wholeChunk);
      if (await isFree(host, folder) && await areThere(host, folder, written)) {
        const restored = { chunks: written, count, spec };
        writer = new ElementsWriter(host, folder, manifest, options, restored);
      }
      return writer;
    } finally {
      if (writer === undefined) manifest.abandon();
    }
  }

  /** What the folder held when writing began. */
  get replaces(): Manifest | undefined {
    return this.#replaces;
  }

  /**
   * Makes room: removes what an earlier writer did not finish. Called once, before anything is written.
   *
   * @param check is given what somebody was saving there, and fails where that is to stay.
   */
  async clear(check: (unfinished: LedgerHead | undefined) => void): Promise<void> {
    const { ledger, compression } = this.#options;
    await this.#ledger.change((unfinished) => {
      this.#expectGoingOn();
      check(unfinished);
      this.#hasLedger = ledger !== undefined;
      if (!this.#hasLedger && unfinished !== undefined) this.#ledger.end();
      return Promise.resolve(this.#hasLedger ? { id: this.#id, compression } : undefined);
    });
    // After their head: a save is not gone on with when parts of it are missing.
    await this.#removeChunksBut(this.#replaces);
  }

  /** How many elements were written. */
  get count(): number {
    return this.#count;
  }

  /** Bytes written, those of finished chunks and of open ones. */
  get sizeBytes(): number {
    let sum = 0;
    for (const { sizeBytes } of [...this.#chunks, ...this.#open.values()]) sum += sizeBytes;
    return sum;
  }

  /** Adds an element. Answers at once where it is merely gathered. */
  write(element: unknown, shard = 0): void | Promise<void> {
    if (!isWhole(element)) throw missingIn(element, `${this.#folder}: element ${this.#count}`);
    this.#notice(element);
    const chunk = this.#open.get(shard);
    return chunk === undefined
      ? this.#beginChunk(element, shard)
      : this.#writeTo(chunk, element, shard);
  }

  /** Puts the manifest in its place, and removes what it replaces. */
  async finish(): Promise<Manifest> {
    await this.#closeChunks();
    const manifest: Manifest = {
      id: this.#id,
      spec: this.#spec,
      compression: this.#options.compression,
      chunks: this.#chunks.toSorted((a, b) => a.shard - b.shard),
    };
    await this.#manifest.append(encodeManifest(manifest));
    // The manifest is no lock any more when it is there: whoever writes next waits for the ledger's.
    await this.#ledger.change(async () => {
      this.#isCommitting = true;
      await this.#manifest.commit();
      if (this.#abandoned) return undefined;
      this.#ledger.end();
      await this.#removeChunksBut(manifest);
      return undefined;
    });
    return manifest;
  }

  /** Finishes the chunks that are open, which then stay for whoever resumes. */
  async save(): Promise<WritingState> {
    await this.#closeChunks();
    this.#kept = this.#chunks.length;
    return { id: this.#id, chunks: [...this.#chunks], count: this.#count, spec: this.#spec };
  }

  /** Gives up: removes what was written and not saved, and unlocks the folder. Synchronous and idempotent. */
  abandon(): void {
    if (this.#abandoned || (this.#isCommitting && !this.#manifest.abandon())) return;
    this.#abandoned = true;
    for (const chunk of this.#open.values()) chunk.abandon();
    this.#open.clear();
    // The head goes first, so that nobody reads what goes after it.
    if (this.#hasLedger) this.#ledger.end();
    const chunks = this.#chunks.splice(this.#kept).map(({ name }) => name);
    const entries = Array.from({ length: this.#entries }, (_, i) => entryName(this.#id, i));
    for (const name of [...chunks, ...entries]) {
      this.#host.newFiles.remove(within(this.#folder, name));
    }
    this.#manifest.abandon();
  }

  #expectGoingOn(): void {
    if (this.#abandoned) throw new LeatError("cancelled", `Writing ${this.#folder} was given up.`);
  }

  /** Removes the chunks of writers that are gone. */
  async #removeChunksBut(manifest: Manifest | undefined): Promise<void> {
    const kept = new Set(manifest?.chunks.map(({ name }) => name));
    const paths = await storedPaths(this.#host, this.#folder);
    // Its lock is free since it was given up: what is there now is somebody else's.
    if (this.#abandoned) return;
    for (const path of paths) {
      if (!kept.has(nameOf(path))) this.#host.newFiles.remove(path);
    }
  }

  /** Finds out the spec from elements until nothing is left to be known. */
  #notice(element: unknown): void {
    if (this.#count++ === 0) this.#spec ??= specOf(element);
    else if (this.#options.spec === undefined && this.#spec !== undefined) {
      this.#spec = mergeSpecs(this.#spec, specOf(element), () => undefined);
    }
  }

  async #beginChunk(element: unknown, shard: number): Promise<void> {
    const number = String(this.#begun++).padStart(6, "0");
    const compress = this.#options.compression === "gzip";
    const name = `${this.#id}-${number}.tfrecord${compress ? ".gz" : ""}`;
    const chunk = await ChunkWriter.begin(this.#host, this.#folder, name, shard, compress);
    if (this.#abandoned) chunk.abandon();
    this.#expectGoingOn();
    this.#open.set(shard, chunk);
    await this.#writeTo(chunk, element, shard);
  }

  #writeTo(chunk: ChunkWriter, element: unknown, shard: number): void | Promise<void> {
    const written = chunk.write(element);
    const { chunkBytesMax = CHUNK_BYTES_MAX } = this.#options;
    if (written === undefined && chunk.sizeBytes < chunkBytesMax) return;
    return this.#afterWriting(chunk, shard, written);
  }

  async #afterWriting(
    chunk: ChunkWriter,
    shard: number,
    written: void | Promise<void>,
  ): Promise<void> {
    await written;
    if (chunk.sizeBytes >= (this.#options.chunkBytesMax ?? CHUNK_BYTES_MAX)) {
      await this.#closeChunk(shard, chunk);
    }
  }

  async #closeChunk(shard: number, chunk: ChunkWriter): Promise<void> {
    const finished = await chunk.finish();
    this.#open.delete(shard);
    if (this.#abandoned) {
      this.#host.newFiles.remove(within(this.#folder, finished.name));
      return;
    }
    this.#chunks.push(finished);
    if (this.#options.ledger !== "entries") return;
    const number = this.#entries++;
    await this.#ledger.enter(this.#id, { number, chunks: [finished], spec: this.#spec });
    if (this.#abandoned) {
      this.#host.newFiles.remove(within(this.#folder, entryName(this.#id, number)));
    }
  }

  async #closeChunks(): Promise<void> {
    for (const [shard, chunk] of [...this.#open]) await this.#closeChunk(shard, chunk);
  }
}

/** A chunk of which nothing is missing: the manifest will list all of it. */
function wholeChunk(saved: Chunk): Chunk {
  const { name, shard, count, sizeBytes } = wholeState(saved);
  return { name, shard, count, sizeBytes };
}

/** Whether nobody has saved anything there, or is about to. Who has just finished has tidied up then. */
async function isFree(host: Host, folder: string): Promise<boolean> {
  let isFree = false;
  await new Ledger(host, folder).change(async (head) => {
    isFree = head?.joint === undefined && await readManifest(host, folder) === undefined;
    return undefined;
  });
  return isFree;
}

async function areThere(host: Host, folder: string, chunks: readonly Chunk[]): Promise<boolean> {
  for (const { name, sizeBytes } of chunks) {
    if (await sizeOf(host, within(folder, name)) !== sizeBytes) return false;
  }
  return true;
}

/** The size of a file; `undefined` where there is none. */
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
