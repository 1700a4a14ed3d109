/**
 * A disk in memory that several processes share; each can be paused, or killed, before any of its
 * steps. As with real files, an unfinished file is a separate file that is also its lock; other
 * processes see it and can remove it.
 */
import { LeatError } from "../../../core/error.ts";
import type { Files, NewFile, NewFiles, OpenFile } from "../../../data/host.ts";
import { PARTIAL_SUFFIX } from "../../../platform/storage/new_files.ts";
import { DenoHost } from "../../../platform/deno_host.ts";

interface Making {
  /** The file is unlocked once this process is killed. */
  readonly maker: DiskProcess;
  readonly parts: Uint8Array[];
}

/** The disk. */
export class SharedDisk {
  readonly contents = new Map<string, Uint8Array>();
  readonly making = new Map<string, Making>();

  /** The names of all files, including unfinished ones. */
  get names(): string[] {
    return [...this.contents.keys(), ...this.making.keys()].sort();
  }
}

/** A process with access to the disk. */
export class DiskProcess extends DenoHost {
  readonly #disk: SharedDisk;
  /** Number of steps that it has begun. */
  #steps = 0;
  #killed = false;
  /** The step before which it pauses. */
  #holdAt = 0;
  #killAt = 0;
  readonly #held = Promise.withResolvers<void>();
  readonly #letGo = Promise.withResolvers<void>();
  readonly #sleeps = Promise.withResolvers<void>();

  constructor(disk: SharedDisk) {
    super();
    this.#disk = disk;
  }

  /** Pauses it before the step of this number; resolves when it gets there. */
  holdAt(step: number): Promise<void> {
    this.#holdAt = step;
    return this.#held.promise;
  }

  letGo(): void {
    this.#letGo.resolve();
  }

  /** Kills it before the step of this number and frees its locks. Resolves when it is dead. */
  killAt(step: number): Promise<void> {
    this.#killAt = step;
    return this.#held.promise;
  }

  /** Resolves when it sleeps. */
  get sleeps(): Promise<void> {
    return this.#sleeps.promise;
  }

  override async sleep(_ms: number, signal?: AbortSignal): Promise<void> {
    this.#sleeps.resolve();
    await this.yield();
    signal?.throwIfAborted();
  }

  override readonly files: Files = {
    open: async (path) => {
      await this.#step();
      const bytes = this.#disk.contents.get(path);
      if (bytes !== undefined) return opened(bytes);
      if (this.#disk.making.has(path)) return opened(new Uint8Array());
      throw new LeatError("not_found", `${path} is not there`);
    },
    list: async (pattern) => {
      await this.#step();
      const beginning = pattern.slice(0, pattern.indexOf("*"));
      return this.#disk.names.filter((path) => path.startsWith(beginning));
    },
  };

  override readonly newFiles: NewFiles = {
    create: async (path) => {
      await this.#step();
      return this.#create(path);
    },
    remove: (path) => {
      this.#countStep();
      if (this.#killed) return;
      this.#disk.contents.delete(path);
      this.#disk.making.delete(path);
    },
  };

  #create(path: string): NewFile {
    const { contents, making } = this.#disk;
    const partial = path + PARTIAL_SUFFIX;
    const there = making.get(partial);
    if (there !== undefined && !there.maker.#killed) {
      throw new LeatError("already_exists", `${path} is being made`);
    }
    const mine: Making = { maker: this, parts: [] };
    making.set(partial, mine);
    let isOpen = true;
    return {
      append: (bytes) => void mine.parts.push(bytes.slice()),
      commit: async () => {
        await this.#step();
        if (!isOpen) return;
        isOpen = false;
        if (making.get(partial) !== mine) throw new LeatError("not_found", `${partial} has gone`);
        making.delete(partial);
        contents.set(path, new Uint8Array(mine.parts.flatMap((part) => [...part])));
        await this.#step();
      },
      abandon: () => {
        const wasOpen = isOpen;
        isOpen = false;
        if (wasOpen && !this.#killed && making.get(partial) === mine) making.delete(partial);
        return wasOpen;
      },
    };
  }

  async #step(): Promise<void> {
    this.#countStep();
    if (this.#killed) await new Promise(() => {});
    if (this.#steps !== this.#holdAt) return;
    this.#held.resolve();
    await this.#letGo.promise;
  }

  #countStep(): void {
    if (++this.#steps !== this.#killAt) return;
    this.#killed = true;
    this.#held.resolve();
  }
}

function opened(bytes: Uint8Array): OpenFile {
  return {
    sizeBytes: bytes.length,
    read: (into, offset) => {
      const part = bytes.subarray(offset, offset + into.length);
      into.set(part);
      return part.length;
    },
    close: () => {},
  };
}
