/**
 * Files that all nodes of a simulated cluster share, like network storage. They survive crashes of
 * nodes. An unfinished file is unlocked when its writer's life ends.
 */
import { joined } from "../../core/bytes.ts";
import { LeatError } from "../../core/error.ts";
import type { Files, NewFile, NewFiles, OpenFile } from "../../data/host.ts";
import { PARTIAL_SUFFIX } from "../../platform/storage/new_files.ts";
import type { Life } from "./life.ts";

/** Minimum time to begin, commit or open a file, in ms. */
const LATENCY_MS = 0.4;

/** An unfinished file of one life of a node. */
interface Making {
  readonly life: Life;
  readonly parts: Uint8Array[];
  /** When it was begun, in steps of the storage. */
  readonly begunAt: number;
}

/** How a file was made. */
interface Made extends Making {
  readonly committedAt: number;
}

/** What may fail. A commit may also fail after it has made the file, as when its answer is lost. */
export type FileOperation =
  | "create"
  | "append"
  | "commit"
  | "committed"
  | "remove"
  | "open"
  | "read"
  | "list";

/** The text in the message of every failure. */
export const STORAGE_FAILED = "The simulated storage fails";

/** The shared storage of a cluster. */
export class SharedFiles {
  readonly #files = new Map<string, Uint8Array>();
  readonly #making = new Map<string, Making>();
  /** How the files were made, by path, except those of `put()`. */
  readonly #made = new Map<string, Made>();
  /** Counts what was begun and committed. */
  #steps = 0;
  readonly #matchers = new Map<string, RegExp>();
  /** Errors of files that do not exist, by path. */
  readonly #missing = new Map<string, LeatError>();
  /** Returns the additional time of an operation on a file, in ms. */
  delayMs: (path: string) => number = () => 0;
  /** Returns whether an operation on a file fails. */
  fails: (operation: FileOperation, path: string) => boolean = () => false;

  /** The names of all files. Those of unfinished files have a suffix. */
  get names(): readonly string[] {
    const partial = [...this.#making.keys()].map((path) => path + PARTIAL_SUFFIX);
    return [...this.#files.keys(), ...partial].sort();
  }

  /** Stores a file without delay. */
  put(path: string, bytes: Uint8Array): void {
    this.#files.set(path, bytes);
  }

  /** Whether a file was begun after `path` was committed, by a life that has ended. */
  isLost(name: string, path: string): boolean {
    const file = this.#made.get(name) ?? this.#making.get(makingOf(name) ?? "");
    const since = this.#made.get(path)?.committedAt ?? Infinity;
    return file?.life.alive === false && file.begunAt > since;
  }

  /** Returns access to the files for one life of a node. Pending operations end with the life. */
  of(life: Life): { readonly files: Files; readonly newFiles: NewFiles } {
    const later = (path: string) =>
      new Promise<void>((resolve) => life.after(LATENCY_MS + this.delayMs(path), "file", resolve));
    return {
      files: {
        open: async (path) => {
          await later(path);
          this.#mayFail("open", path);
          const bytes = this.#files.get(path) ?? this.#partOf(path) ?? this.#absent(path);
          return openFile(bytes, () => this.#mayFail("read", path));
        },
        list: async (pattern) => {
          await later(pattern);
          this.#mayFail("list", pattern);
          const matches = this.#matchers.getOrInsertComputed(pattern, matcher);
          const { names } = this;
          return names.filter((name) => matches.test(name));
        },
      },
      newFiles: {
        create: async (path) => {
          await later(path);
          this.#mayFail("create", path);
          return this.#create(path, life, () => later(path));
        },
        remove: (path) => {
          if (!life.alive) return;
          this.#mayFail("remove", path);
          this.#files.delete(path);
          const making = makingOf(path);
          if (making !== undefined) this.#making.delete(making);
        },
      },
    };
  }

  /** @throws LeatError `unavailable` if the operation fails. */
  #mayFail(operation: FileOperation, path: string): void {
    if (!this.fails(operation, path)) return;
    throw new LeatError("unavailable", `${STORAGE_FAILED}: ${operation} "${path}"`);
  }

  /** Returns the content so far of an unfinished file, by its temporary name. */
  #partOf(path: string): Uint8Array | undefined {
    const making = this.#making.get(makingOf(path) ?? "");
    return making && joined(making.parts);
  }

  /** Throws `not_found`. There is one error per path, because readers poll for files. */
  #absent(path: string): never {
    throw this.#missing.getOrInsertComputed(
      path,
      () => new LeatError("not_found", `There is no file "${path}"`),
    );
  }

  #create(path: string, life: Life, later: () => Promise<void>): NewFile {
    if (this.#making.get(path)?.life.alive === true) {
      throw new LeatError("already_exists", `"${path}" is being written by another process`);
    }
    const making: Making = { life, parts: [], begunAt: ++this.#steps };
    this.#making.set(path, making);
    let isOpen = true;
    const isThere = () => this.#making.get(path) === making;
    return {
      append: (bytes) => {
        this.#mayFail("append", path);
        making.parts.push(bytes.slice());
      },
      commit: async () => {
        await later();
        if (!isOpen) return;
        if (!isThere()) throw new LeatError("not_found", `"${path}" was removed while it was made`);
        this.#mayFail("commit", path);
        isOpen = false;
        this.#files.set(path, joined(making.parts));
        this.#made.set(path, { ...making, committedAt: ++this.#steps });
        this.#making.delete(path);
        this.#mayFail("committed", path);
      },
      abandon: () => {
        if (!isOpen || !life.alive) return false;
        isOpen = false;
        if (isThere()) this.#making.delete(path);
        return true;
      },
    };
  }
}

/** Returns the final name of a file with this temporary name. */
function makingOf(path: string): string | undefined {
  return path.endsWith(PARTIAL_SUFFIX) ? path.slice(0, -PARTIAL_SUFFIX.length) : undefined;
}

/** @param mayFail Called before each read; throws if the read fails. */
function openFile(bytes: Uint8Array, mayFail: () => void): OpenFile {
  return {
    sizeBytes: bytes.length,
    read(into: Uint8Array, offset: number): number {
      mayFail();
      const part = bytes.subarray(offset, offset + into.length);
      into.set(part);
      return part.length;
    },
    close() {},
  };
}

/** Makes the matcher of a pattern, which may contain `*` and `?`. */
function matcher(pattern: string): RegExp {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("*", "[^/]*").replaceAll("?", "[^/]")}$`);
}
