/**
 * Files that all nodes of a simulated cluster share, as on a network's storage: they outlive every
 * node, and a file in the making is given free when its maker's life ends.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";
import type { Files, NewFile, NewFiles, OpenFile } from "../data/host.ts";
import type { Life } from "./life.ts";

/** How long beginning, committing and opening a file take, in ms. */
const LATENCY_MS = 0.4;

/** A file that a life of a node is making. */
interface Making {
  readonly life: Life;
  readonly parts: Uint8Array[];
}

/** See the module. */
export class SharedFiles {
  readonly #files = new Map<string, Uint8Array>();
  readonly #making = new Map<string, Making>();
  readonly #matchers = new Map<string, RegExp>();
  /** Why files could not be opened, by path. */
  readonly #missing = new Map<string, LeatError>();

  /** The names of all files. */
  get names(): readonly string[] {
    return [...this.#files.keys()].sort();
  }

  /** Puts a file there, as if it had always been. */
  put(path: string, bytes: Uint8Array): void {
    this.#files.set(path, bytes);
  }

  /** The files as a life of a node meets them; nothing of it happens after that life. */
  of(life: Life): { readonly files: Files; readonly newFiles: NewFiles } {
    const later = () => new Promise<void>((resolve) => life.after(LATENCY_MS, "file", resolve));
    return {
      files: {
        open: async (path) => {
          await later();
          return openFile(this.#files.get(path) ?? this.#absent(path));
        },
        list: async (pattern) => {
          await later();
          let matches = this.#matchers.get(pattern);
          if (matches === undefined) this.#matchers.set(pattern, matches = matcher(pattern));
          const { names } = this;
          return names.filter((name) => matches.test(name));
        },
      },
      newFiles: {
        create: async (path) => {
          await later();
          return this.#create(path, life, later);
        },
        remove: (path) => {
          if (life.alive) this.#files.delete(path);
        },
      },
    };
  }

  /** One error for each path: files are looked for again and again until somebody has made them. */
  #absent(path: string): never {
    let error = this.#missing.get(path);
    if (error === undefined) {
      this.#missing.set(path, error = new LeatError("not_found", `There is no file "${path}"`));
    }
    throw error;
  }

  #create(path: string, life: Life, later: () => Promise<void>): NewFile {
    if (this.#making.get(path)?.life.alive === true) {
      throw new LeatError("already_exists", `"${path}" is being made by somebody else`);
    }
    const making: Making = { life, parts: [] };
    this.#making.set(path, making);
    const isOpen = () => life.alive && this.#making.get(path) === making;
    return {
      append: (bytes) => void making.parts.push(bytes.slice()),
      commit: async () => {
        await later();
        if (!isOpen()) return;
        this.#files.set(path, concat(making.parts));
        this.#making.delete(path);
      },
      abandon: () => isOpen() && this.#making.delete(path),
    };
  }
}

function openFile(bytes: Uint8Array): OpenFile {
  return {
    sizeBytes: bytes.length,
    read(into: Uint8Array, offset: number): number {
      const part = bytes.subarray(offset, offset + into.length);
      into.set(part);
      return part.length;
    },
    close() {},
  };
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Of patterns it knows `*` and `?`. */
function matcher(pattern: string): RegExp {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("*", "[^/]*").replaceAll("?", "[^/]")}$`);
}
