/** Writes one chunk file of a stored dataset. */
import { nodeZlib } from "../../core/builtins.ts";
import { encodeTfRecord } from "../formats/tfrecord/tfrecord.ts";
import type { Host, NewFile } from "../host.ts";
import { type Chunk, within } from "./manifest.ts";
import { encodeElement } from "./stored_element.ts";

/** Default size in bytes after which a new file begins: `chunkBytesMax`. */
const CHUNK_BYTES_MAX = 256 << 20;

/** Elements are compressed and appended in blocks of this many bytes, or of what the file lacks. */
const BLOCK_BYTES = 1 << 20;
/**
 * A smaller block is appended with the first element after this time: readers that wait see by the
 * growing file that a slow writer is alive.
 */
const BLOCK_MS = 1_000;

interface ChunkOptions {
  /** Default 0. */
  readonly shard?: number;
  readonly compress: boolean;
  /** The size in bytes at which it is full. Default 256 MiB. */
  readonly bytesMax?: number | undefined;
}

/** Gathers elements into blocks, and appends the blocks to a file that is not committed yet. */
export class ChunkWriter {
  readonly #host: Host;
  readonly #file: NewFile;
  readonly #name: string;
  readonly #shard: number;
  readonly #compress: boolean;
  readonly #bytesMax: number;
  #count = 0;
  #sizeBytes = 0;
  #block: Uint8Array[] = [];
  #blockBytes = 0;
  #flushedAtMs: number;

  private constructor(
    host: Host,
    file: NewFile,
    name: string,
    { shard = 0, compress, bytesMax = CHUNK_BYTES_MAX }: ChunkOptions,
  ) {
    this.#host = host;
    this.#flushedAtMs = host.nowMs();
    this.#file = file;
    this.#name = name;
    this.#shard = shard;
    this.#compress = compress;
    this.#bytesMax = bytesMax;
  }

  static async begin(
    host: Host,
    folder: string,
    name: string,
    options: ChunkOptions,
  ): Promise<ChunkWriter> {
    const file = await host.newFiles.create(within(folder, name));
    return new ChunkWriter(host, file, name, options);
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Whether the next element belongs in a new file. */
  get isFull(): boolean {
    return this.#sizeBytes >= this.#bytesMax;
  }

  /** Adds an element. Returns a promise if a block must be written. */
  write(element: unknown): void | Promise<void> {
    const record = encodeTfRecord(encodeElement(element));
    this.#count++;
    this.#block.push(record);
    this.#blockBytes += record.length;
    const isDue = this.#blockBytes >= Math.min(BLOCK_BYTES, this.#bytesMax - this.#sizeBytes) ||
      this.#host.nowMs() - this.#flushedAtMs >= BLOCK_MS;
    return isDue ? this.#flush() : undefined;
  }

  /** Commits the file under its final name. */
  async finish(): Promise<Chunk> {
    await this.#flush();
    await this.#file.commit();
    return {
      name: this.#name,
      shard: this.#shard,
      count: this.#count,
      sizeBytes: this.#sizeBytes,
    };
  }

  abandon(): void {
    this.#file.abandon();
    this.#block = [];
  }

  #flush(): void | Promise<void> {
    if (this.#blockBytes === 0) return;
    const block = new Uint8Array(this.#blockBytes);
    let offset = 0;
    for (const record of this.#block) {
      block.set(record, offset);
      offset += record.length;
    }
    this.#block = [];
    this.#blockBytes = 0;
    this.#flushedAtMs = this.#host.nowMs();
    const bytes = this.#compress ? nodeZlib().gzipSync(block) : block;
    this.#sizeBytes += bytes.length;
    return this.#file.append(bytes);
  }
}
