/** A host whose files are in memory, so that their state can be restored. */
import { LeatError } from "../../../core/error.ts";
import type { Files, NewFile, NewFiles, OpenFile } from "../../../data/host.ts";
import { DenoHost } from "../../../platform/deno_host.ts";

/** Files by full name; folders are only prefixes of names. */
export class MemoryHost extends DenoHost {
  contents: Map<string, Uint8Array>;
  /** The names of unfinished files. */
  readonly locked = new Set<string>();

  constructor(files: Readonly<Record<string, string>> = {}) {
    super();
    const text = new TextEncoder();
    this.contents = new Map(Object.entries(files).map(([path, all]) => [path, text.encode(all)]));
  }

  override readonly files: Files = {
    open: (path) => Promise.resolve(path).then((path) => openBytes(path, this.contents.get(path))),
    list: (pattern) => {
      const beginning = pattern.slice(0, pattern.indexOf("*"));
      return Promise.resolve(
        [...this.contents.keys()].filter((path) => path.startsWith(beginning)).sort(),
      );
    },
  };

  override readonly newFiles: NewFiles = {
    create: (path) => Promise.resolve(path).then((path) => this.#create(path)),
    remove: (path) => void this.contents.delete(path),
  };

  #create(path: string): NewFile {
    if (this.locked.has(path)) throw new LeatError("already_exists", `${path} is being made`);
    this.locked.add(path);
    const written: number[] = [];
    return {
      append: (bytes) => {
        for (const byte of bytes) written.push(byte);
      },
      commit: () => {
        this.contents.set(path, new Uint8Array(written));
        this.locked.delete(path);
        return Promise.resolve();
      },
      abandon: () => this.locked.delete(path),
    };
  }
}

function openBytes(path: string, bytes: Uint8Array | undefined): OpenFile {
  if (bytes === undefined) throw new LeatError("not_found", `${path} is not there`);
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
