/** Creates files under a temporary name, locked, and renames them when they are complete. */

import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import type { NewFile, NewFiles } from "../../data/host.ts";
import { fileError } from "./files.ts";

/** The suffix of an unfinished file. That file is also the lock. */
export const PARTIAL_SUFFIX = ".partial";

/** Most retries when other processes remove the folder. Beyond it something else is wrong. */
const TRIES_MAX = 100;

/**
 * Files of this machine, named by a plain path or a `file:` URL.
 *
 * The system locks an unfinished file, and releases the lock when the process ends: the next writer
 * starts a crashed writer's file from the beginning.
 */
export class DenoNewFiles implements NewFiles {
  readonly #folders = new MadeFolders();

  /**
   * @throws {LeatError} `already_exists` while another writer creates this file; `unimplemented`
   * for `s3:`, `http:` and other far storage; `permission_denied`, `resource_exhausted` as the
   * system says.
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
        if (file !== undefined) return partialFile(local, partial, file, this.#folders);
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

/** The folders that were created for unfinished files. A folder is removed if none is completed there. */
class MadeFolders {
  readonly #made = new Set<string>();
  /** The number of unfinished files, by folder. */
  readonly #inMaking = new Map<string, number>();

  /** Begins a file in a folder; creates the folder and its parents if needed. */
  async enter(path: string): Promise<void> {
    const folder = resolve(path);
    const missing: string[] = [];
    for (let at = folder; !(await isThere(at)); at = dirname(at)) missing.push(at);
    if (missing.length > 0) await makeFolder(path);
    const count = this.#inMaking.get(folder) ?? 0;
    if (count === 0) this.#keep(folder); // the file that it was created for is finished
    for (const made of missing) this.#made.add(made);
    this.#inMaking.set(folder, count + 1);
  }

  /** A file is complete. Its folder stays for good when it has no other unfinished files. */
  placed(path: string): void {
    const folder = resolve(path);
    if (this.#left(folder) === 0) this.#keep(folder);
  }

  givenUp(path: string): void {
    this.#left(resolve(path));
    this.tidy(path);
  }

  /** Removes a folder that was created here, and its parents, as long as they are empty. */
  tidy(path: string): void {
    for (let at = resolve(path); this.#made.has(at); at = dirname(at)) {
      try {
        Deno.removeSync(at);
      } catch {
        return; // not empty
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

/** Creates a folder. Retries, because `mkdir` fails if others remove the folder at the same time. */
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

/** True also for a path that this program may not inspect: it did not create that. */
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
    `Cannot write ${
      shownPath(path)
    }: files are made on this machine only, not on ${scheme}: storage. Write to a local folder and copy that.`,
  );
}

/** Creates or empties the file, locked. `undefined` if it was completed or removed before the lock. */
async function lockedFile(path: string, partial: string): Promise<Deno.FsFile | undefined> {
  const file = await openIn(dirname(path), partial);
  if (file === undefined) return undefined;
  try {
    if (!file.tryLockSync(true)) {
      throw new LeatError(
        "already_exists",
        `Cannot write ${path}: another writer holds its lock ${partial}. Wait until it is done, or give each ` +
          `writer a path of its own. The system releases the lock when that process ends.`,
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

/** Opens the file; `undefined` if its folder is gone, which another writer created and removed. */
async function openIn(folder: string, path: string): Promise<Deno.FsFile | undefined> {
  for (let tries = 1;; tries++) {
    try {
      return await openOrCreate(path);
    } catch (error) {
      // Another writer has removed or created the file since it was looked up.
      const { AlreadyExists, NotFound } = Deno.errors;
      if (!(error instanceof NotFound || error instanceof AlreadyExists)) throw error;
      if (!(await isThere(folder))) return undefined;
      if (tries === TRIES_MAX) throw error;
    }
  }
}

/** Opens only a regular file and follows no link: another user may have put anything at this path. */
async function openOrCreate(path: string): Promise<Deno.FsFile> {
  const found = await Deno.lstat(path).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  if (found === undefined) return await Deno.open(path, { write: true, createNew: true });
  requireFile(found, path);
  // Also for reading: if a pipe has replaced the file since, opening it like this does not block.
  return await Deno.open(path, { read: true, write: true });
}

/** Refuses links, whose target would be emptied, and pipes, which may block when opened. */
function requireFile({ isFile, isSymlink, isDirectory }: Deno.FileInfo, path: string): void {
  if (isFile) return;
  const what = isSymlink ? "a link" : isDirectory ? "a folder" : "a pipe, socket or device";
  throw new LeatError("failed_precondition", `Cannot write ${path}: it is ${what}. Remove it.`);
}

async function isSameFile(file: Deno.FsFile, path: string): Promise<boolean> {
  try {
    const [held, named] = [await file.stat(), await Deno.lstat(path)];
    requireFile(named, path);
    return held.ino === named.ino && held.dev === named.dev;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** An unfinished file. Writes are synchronous, as reads are: they go to the page cache. */
function partialFile(
  path: string,
  partial: string,
  created: Deno.FsFile,
  folders: MadeFolders,
): NewFile {
  let file: Deno.FsFile | undefined = created;
  const opened = () => {
    if (file !== undefined) return file;
    throw new LeatError("failed_precondition", `Cannot write ${path}: it was abandoned.`);
  };
  return {
    append: (bytes) => {
      const file = opened();
      try {
        for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
      } catch (error) {
        throw writeError(path, error);
      }
    },
    commit: async () => {
      const written = opened();
      try {
        await written.sync();
        if (file === undefined) return; // abandoned meanwhile
        Deno.renameSync(partial, path); // still locked, so that no other writer takes it over
        file = undefined;
        folders.placed(dirname(path));
        written.close();
      } catch (error) {
        throw writeError(path, error);
      }
    },
    abandon: () => {
      if (file === undefined) return false;
      const abandoned = file;
      file = undefined;
      try {
        removeIfThere(partial);
      } catch {
        // The file stays, unlocked. The next writer empties it.
      }
      abandoned.close();
      folders.givenUp(dirname(path));
      return true;
    },
  };
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
      `Cannot write ${path}: this program may not. Run it with --allow-read and --allow-write ` +
        `for ${dirname(path)}.`,
      { cause: error },
    );
  }
  return fileError(`Cannot write ${path}`, error);
}
