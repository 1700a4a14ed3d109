/**
 * The host of pipelines on a simulated node. It has the node's time and random numbers, and the files
 * that all nodes share, but nothing of the real machine.
 */
import { LeatError } from "../core/error.ts";
import type { Tensor } from "../core/tensor.ts";
import type { AudioCodec, Files, Host, ImageCodec, NewFiles } from "../data/host.ts";
import type { SimRandom } from "./engine/random.ts";
import type { SimWorld } from "./world.ts";

/** A host with shared files, and without images, audio and modules. */
export class SimHost implements Host {
  readonly files: Files;
  readonly newFiles: NewFiles;
  readonly images: ImageCodec = {
    decode: (): Tensor => {
      throw absent("images are not decoded");
    },
    size: () => {
      throw absent("images are not decoded");
    },
  };
  readonly audio: AudioCodec = {
    decodeWav: () => {
      throw absent("sound is not decoded");
    },
    melSpectrogram: () => {
      throw absent("sound is not transformed");
    },
  };
  readonly #world: SimWorld;
  readonly #rng: SimRandom;

  constructor(world: SimWorld, { files, newFiles }: Pick<Host, "files" | "newFiles">) {
    this.#world = world;
    this.#rng = world.random.fork("host");
    this.files = files;
    this.newFiles = newFiles;
  }

  nowMs(): number {
    return this.#world.nowMs();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const timer = this.#world.timer(ms, () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      });
      const abort = () => {
        timer.cancel();
        reject(signal!.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  yield(): Promise<void> {
    return new Promise((resolve) => this.#world.macrotask(resolve));
  }

  entropy64(): bigint {
    return BigInt(`0x${this.#rng.hex64()}`);
  }

  /** Ignores warnings, because a simulated machine has no console. */
  warn(): void {}

  importModule(url: string): Promise<Record<string, unknown>> {
    return Promise.reject(absent(`"${url}" is not imported`));
  }
}

function absent(what: string): LeatError {
  return new LeatError("unimplemented", `In a simulation ${what}: that would be real work`);
}
