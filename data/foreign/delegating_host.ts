/** The base of hosts that change a part of another host. */
import type { AudioCodec, Files, Host, ImageCodec, NewFiles } from "../host.ts";
import type { ReadingTask } from "../service/reading_task.ts";

/** Delegates to another host, except `files` and optional members of `Host`. */
export abstract class DelegatingHost implements Host {
  readonly #host: Host;
  abstract readonly files: Files;

  constructor(host: Host) {
    this.#host = host;
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

  get forTask(): ReadingTask | undefined {
    return this.#host.forTask;
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
}
