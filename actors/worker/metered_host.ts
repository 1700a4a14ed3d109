/**
 * A host that counts the bytes its pipeline reads.
 *
 * @module
 */
import type { AudioCodec, Files, Host, ImageCodec, NewFiles, OpenFile } from "../../data/host.ts";

/** Passes everything on to another host, and counts. */
export class MeteredHost implements Host {
  readonly #host: Host;
  readonly files: Files;
  /** A runner is where pipelines of others run. */
  readonly runsForeign = true;
  bytesRead = 0;

  constructor(host: Host) {
    this.#host = host;
    this.files = {
      open: async (path, signal) => this.#metered(await host.files.open(path, signal)),
      list: (pattern, signal) => host.files.list(pattern, signal),
    };
  }

  get newFiles(): NewFiles {
    return this.#host.newFiles;
  }

  get images(): ImageCodec {
    return this.#host.images;
  }

  get audio(): AudioCodec {
    return this.#host.audio;
  }

  nowMs(): number {
    return this.#host.nowMs();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#host.sleep(ms, signal);
  }

  yield(): Promise<void> {
    return this.#host.yield();
  }

  entropy64(): bigint {
    return this.#host.entropy64();
  }

  warn(message: string): void {
    this.#host.warn(message);
  }

  importModule(url: string): Promise<Record<string, unknown>> {
    return this.#host.importModule(url);
  }

  #metered(file: OpenFile): OpenFile {
    const count = (bytes: number) => {
      this.bytesRead += bytes;
      return bytes;
    };
    return {
      sizeBytes: file.sizeBytes,
      read(into, offset) {
        const read = file.read(into, offset);
        return typeof read === "number" ? count(read) : read.then(count);
      },
      close: () => file.close(),
    };
  }
}
