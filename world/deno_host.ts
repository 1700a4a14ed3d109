/**
 * The host that pipelines meet on Deno: clock, timers, entropy, files, images and modules.
 */

import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { Files, Host, ImageCodec } from "../data/host.ts";
import { DenoFiles } from "./files.ts";
import { JpegImages } from "./images.ts";

/** What a {@linkcode DenoHost} is made of. */
export interface DenoHostOptions {
  /** Default: a new {@linkcode DenoFiles}. */
  readonly files?: Files;
  /** Default: a new {@linkcode JpegImages}. */
  readonly images?: ImageCodec;
}

/**
 * A host over Deno's own facilities. Making one asks for no permission; what is used later does: files ask for `--allow-read`, images
 * for what {@linkcode JpegImages} says.
 *
 * @example
 * ```ts
 * import { DenoHost } from "./deno_host.ts";
 * import { installHost } from "../data/host.ts";
 * installHost(new DenoHost());
 * ```
 */
export class DenoHost implements Host {
  readonly files: Files;
  readonly images: ImageCodec;

  constructor(options: DenoHostOptions = {}) {
    this.files = options.files ?? new DenoFiles();
    this.images = options.images ?? new JpegImages();
  }

  nowMs(): number {
    return performance.now();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const abort = () => {
        clearTimeout(timer);
        reject(signal!.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      }, ms);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** `setImmediate`: a `MessageChannel` is no faster, and between its turns timers and I/O starve. */
  yield(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  entropy64(): bigint {
    return crypto.getRandomValues(new BigUint64Array(1))[0]!;
  }

  importModule(url: string): Promise<Record<string, unknown>> {
    return import(url);
  }
}
