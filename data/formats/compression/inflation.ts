/** Decompression of one gzip member, zlib stream or zstd frame. */
import { nodeZlib } from "../../../core/builtins.ts";
import { READ_BYTES } from "../plain_bytes.ts";
import type { Compression } from "./compression.ts";

/** One run of Node's zlib, which reports where a member ends, or damage begins. */
export class Inflation {
  /** Whether the member has ended, even if more input follows. */
  ended = false;
  error: NodeJS.ErrnoException | undefined;
  readonly #stream: ReturnType<typeof streamOf>;
  readonly #chunks: Uint8Array[] = [];
  #settle = () => {};

  constructor(compression: Compression) {
    this.#stream = streamOf(compression);
    this.#stream.on("data", (chunk) => this.#chunks.push(chunk));
    this.#stream.on("end", () => this.#end());
    this.#stream.on("error", (error) => this.#fail(error));
    this.#stream.on("close", () => this.#settle());
  }

  /** Number of input bytes consumed, without the step that failed. */
  get consumed(): number {
    return this.#stream.bytesWritten;
  }

  /** Decompresses more input. Empty input ends the stream. The caller may reuse `input` afterwards. */
  async take(input: Uint8Array): Promise<Uint8Array[]> {
    await new Promise<void>((resolve) => {
      this.#settle = resolve;
      if (input.length === 0) this.#stream.end();
      else this.#stream.write(input, (error) => error ? this.#fail(error) : resolve());
    });
    return this.#chunks.splice(0);
  }

  destroy(): void {
    this.#stream.destroy();
  }

  #end(): void {
    this.ended = true;
    this.#settle();
  }

  #fail(error: Error): void {
    this.error ??= error;
    this.#settle();
  }
}

function streamOf(compression: Compression) {
  const options = { chunkSize: READ_BYTES };
  const zlib = nodeZlib();
  switch (compression) {
    case "gzip":
      return zlib.createGunzip(options);
    case "zlib":
      return zlib.createInflate(options);
    case "zstd":
      return zlib.createZstdDecompress(options);
  }
}
