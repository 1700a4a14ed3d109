/**
 * Files that this process makes: written beside their place, locked meanwhile, and put there whole.
 */

import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { LeatError } from "../core/error.ts";
import type { NewFile, NewFiles } from "../data/host.ts";
import { fileError } from "./files.ts";

/** What is appended to the name of a file in the making. It is the lock, too. */
export const PARTIAL_SUFFIX = ".partial";

/** Whom others take a folder away from tries again; after so many times it is another matter. */
const TRIES_MAX = 100;

/**
 * Files of this machine, named by a plain path or a `file:` URL.
 *
 * A file in the making is locked by the system, which gives the lock of a process that has ended free: what a crash left behind is begun
 * anew by whoever comes next.
 *
 * @example
 * ```ts
 * import { DenoNewFiles } from "./new_files.ts";
 *
 * const file = await new DenoNewFiles().create("./.cache/greeting.txt");
 * file.append(new TextEncoder().encode("hello"));
 * await file.commit(); // until here there was no greeting.txt
 * ```
 */
export class DenoNewFiles implements NewFiles {
  readonly #folders = new MadeFolders();

  /**
   * @throws {LeatError} `already_exists` while somebody else makes this file; `unimplemented` for `s3:`, `http:` and other far storage;
   * `permission_denied`, `resource_exhausted` as the system says.
   */
  async create(path: string): Promise<NewFile> {
    const local = localPath(path);
    const partial = local + PARTIAL_SUFFIX;
    const folder = dirname(local);
    try {
      for (;;) {
        await this.#folders.enter(folder);
        const file = await lockedFile(local, partial).catch((error) => {
          this.#folders.givenUp(folder);
          throw error;
        });
        if (file !== undefined) return new PartialFile(local, partial, file, this.#folders);
        this.#folders.givenUp(folder);
      }
    } catch (error) {
      throw writeError(local, error);
    }
  }

  remove(path: string): void {
    const local = localPath(path);
    try {
      removeIfThere(local);
    } catch (error) {
      throw writeError(local, error);
    }
    this.#folders.tidy(dirname(local));
  }
}

/** The folders that were made for files in the making: they go with them, unless something comes into its place. */
class MadeFolders {
  readonly #made = new Set<string>();
  /** How many files are in the making, by their folder. */
  readonly #inMaking = new Map<string, number>();

  /** A file is begun in a folder, which is made if need be, with those above it. */
  async enter(path: string): Promise<void> {
    const folder = resolve(path);
    const missing: string[] = [];
    for (let at = folder; !(await isThere(at)); at = dirname(at)) missing.push(at);
    if (missing.length > 0) await makeFolder(path);
    const count = this.#inMaking.get(folder) ?? 0;
    if (count === 0) this.#keep(folder); // whoever made it has long been done
    for (const made of missing) this.#made.add(made);
    this.#inMaking.set(folder, count + 1);
  }

  /** A file is in its place. It may still be taken away while others of its folder are in the making. */
  placed(path: string): void {
    const folder = resolve(path);
    if (this.#left(folder) === 0) this.#keep(folder);
  }

  /** A file was given up. */
  givenUp(path: string): void {
    this.#left(resolve(path));
    this.tidy(path);
  }

  /** Removes a folder that was made here, and those above it, as long as they are empty. */
  tidy(path: string): void {
    for (let at = resolve(path); this.#made.has(at); at = dirname(at)) {
      try {
        Deno.removeSync(at);
      } catch {
        return; // something is in it
      }
      this.#made.delete(at);
    }
  }

  #left(folder: string): number {
    const count = this.#inMaking.get(folder)! - 1;
    if (count === 0) this.#inMaking.delete(folder);
    else this.#inMaking.set(folder, count);
    return count;
  }

  #keep(folder: string): void {
    for (let at = folder; this.#made.delete(at); at = dirname(at));
  }
}

/** Others that take it away meanwhile make it fail as though something else were in its place. */
async function makeFolder(path: string): Promise<void> {
  for (let tries = 1;; tries++) {
    try {
      return await Deno.mkdir(path, { recursive: true });
    } catch (error) {
      const { AlreadyExists, NotFound } = Deno.errors;
      const isGone = error instanceof AlreadyExists || error instanceof NotFound;
      if (!isGone || tries === TRIES_MAX) throw error;
    }
  }
}

/** Also of what this program may not look at: that was not made by it. */
async function isThere(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    if (error instanceof Deno.errors.NotCapable) return true;
    throw error;
  }
}

function localPath(path: string): string {
  if (/^file:/i.test(path)) return fileURLToPath(path);
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(path)?.[1];
  if (scheme === undefined) return path;
  throw new LeatError(
    "unimplemented",
    `Cannot write ${path}: files are made on this machine only, not on ${scheme}: storage. Write to a local folder and copy that.`,
  );
}

/** The empty, locked file; `undefined` where it was put in its place, or removed with or without its folder, before it could be locked. */
async function lockedFile(path: string, partial: string): Promise<Deno.FsFile | undefined> {
  const file = await openIn(dirname(path), partial);
  if (file === undefined) return undefined;
  try {
    if (!file.tryLockSync(true)) {
      throw new LeatError(
        "already_exists",
        `Cannot write ${path}: somebody else is writing it, and holds the lock ${partial}. Wait until they are done, or give each ` +
          `writer a path of its own. The lock of a process that has ended is free by itself.`,
      );
    }
    if (await isSameFile(file, partial)) {
      file.truncateSync(0);
      return file;
    }
  } catch (error) {
    file.close();
    throw error;
  }
  file.close();
  return undefined;
}

/** `undefined` where the folder has gone since it was made: whoever shared it has given up. */
async function openIn(folder: string, path: string): Promise<Deno.FsFile | undefined> {
  for (let tries = 1;; tries++) {
    try {
      return await Deno.open(path, { write: true, create: true });
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      if (!(await isThere(folder))) return undefined;
      // Somebody may have made it again by now. A link that leads nowhere stays what it is.
      if (tries === TRIES_MAX) throw error;
    }
  }
}

async function isSameFile(file: Deno.FsFile, path: string): Promise<boolean> {
  try {
    const [held, named] = [await file.stat(), await Deno.stat(path)];
    return held.ino === named.ino && held.dev === named.dev;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Writes are synchronous, as reads are: they go to the page cache. */
class PartialFile implements NewFile {
  readonly #path: string;
  readonly #partial: string;
  readonly #folders: MadeFolders;
  #file: Deno.FsFile | undefined;

  constructor(path: string, partial: string, file: Deno.FsFile, folders: MadeFolders) {
    this.#path = path;
    this.#partial = partial;
    this.#file = file;
    this.#folders = folders;
  }

  append(bytes: Uint8Array): void {
    const file = this.#opened();
    try {
      for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
    } catch (error) {
      throw writeError(this.#path, error);
    }
  }

  async commit(): Promise<void> {
    const file = this.#opened();
    try {
      await file.sync();
      if (this.#file === undefined) return; // abandoned meanwhile
      Deno.renameSync(this.#partial, this.#path); // still locked, so that nobody takes it for left behind
      this.#file = undefined;
      this.#folders.placed(dirname(this.#path));
      file.close();
    } catch (error) {
      throw writeError(this.#path, error);
    }
  }

  abandon(): boolean {
    const file = this.#file;
    if (file === undefined) return false;
    this.#file = undefined;
    try {
      removeIfThere(this.#partial);
    } catch {
      // It stays behind unlocked, to be begun anew.
    }
    file.close();
    this.#folders.givenUp(dirname(this.#path));
    return true;
  }

  #opened(): Deno.FsFile {
    if (this.#file !== undefined) return this.#file;
    throw new LeatError("failed_precondition", `Cannot write ${this.#path}: it was given up.`);
  }
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function writeError(path: string, error: unknown): LeatError {
  if (error instanceof Deno.errors.NotCapable) {
    return new LeatError(
      "permission_denied",
      `Cannot write ${path}: this program may not. Run it with --allow-read and --allow-write for ${
        dirname(path)
      }.`,
      { cause: error },
    );
  }
  return fileError(`Cannot write ${path}`, error);
}
