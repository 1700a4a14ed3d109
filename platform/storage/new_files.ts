/** Creates files under a temporary name, with a lock, and renames them when they are complete. */

import { dirname, resolve, sep } from "node:path";
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import type { NewFile, NewFiles } from "../../data/host.ts";
import { fileError, pathOfFileUrl, schemeOf } from "./files.ts";

/** The suffix of an unfinished file. That file is also the lock. */
export const PARTIAL_SUFFIX = ".partial";

/** Limit of attempts while other processes remove folders or files. Beyond it something else is wrong. */
const TRIES_MAX = 100;

/**
 * Files of this machine, named by a plain path or a `file:` URL.
 *
 * An unfinished file is locked. The system releases the lock when the process ends, so the next writer
 * can start a crashed writer's file from the beginning.
 */
export class DenoNewFiles implements NewFiles {
  readonly #syncFolder: SyncFolder;
  readonly #folders: CreatedFolders;

  constructor(syncFolder: SyncFolder = syncDenoFolder) {
    this.#syncFolder = syncFolder;
    this.#folders = new CreatedFolders(syncFolder);
  }

  /**
   * @throws {LeatError} `already_exists` while another writer creates this file; `unimplemented`
   * for `s3:`, `http:` and other far storage; `permission_denied` and `resource_exhausted` for the
   * system's errors.
   */
  async create(path: string): Promise<NewFile> {
    const local = localPath(path);
    const partial = local + PARTIAL_SUFFIX;
    const folder = dirname(local);
    try {
      for (;;) {
        await this.#folders.begin(folder);
        const file = await lockedFile(local, partial).catch((error) => {
          this.#folders.abandoned(folder);
          throw error;
        });
        if (file !== undefined) {
          return partialFile(local, partial, file, this.#folders, this.#syncFolder);
        }
        this.#folders.abandoned(folder);
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
    this.#folders.removeEmpty(dirname(local));
  }
}

/** Makes new names in a folder durable, if the system can. */
type SyncFolder = (folder: string) => Promise<void>;

async function syncDenoFolder(folder: string): Promise<void> {
  try {
    using opened = await Deno.open(folder);
    await opened.sync();
  } catch {
    // Windows opens no folder: its file system journals names itself.
  }
}

/** The folders created for unfinished files. A folder is removed again if no file in it is completed. */
class CreatedFolders {
  readonly #syncFolder: SyncFolder;
  readonly #created = new Set<string>();
  /** The number of unfinished files, by folder. */
  readonly #unfinished = new Map<string, number>();

  constructor(syncFolder: SyncFolder) {
    this.#syncFolder = syncFolder;
  }

  /** Begins a file in a folder; creates the folder and its parents if needed. */
  async begin(path: string): Promise<void> {
    const folder = resolve(path);
    const missing: string[] = [];
    for (let at = folder; !(await isThere(at)); at = dirname(at)) missing.push(at);
    if (missing.length > 0) await makeFolder(path);
    const count = this.#unfinished.get(folder) ?? 0;
    // If it was created here and not for a file below it, other files are in it by now.
    if (count === 0 && !this.#hasUnfinishedBelow(folder)) this.#keep(folder);
    for (const made of missing) this.#created.add(made);
    this.#unfinished.set(folder, count + 1);
    for (const made of missing) await this.#syncFolder(dirname(made));
  }

  /** Ends a completed file. Its folder stays for good when it has no other unfinished files. */
  completed(path: string): void {
    const folder = resolve(path);
    if (this.#end(folder) === 0) this.#keep(folder);
  }

  /** Ends a file that was not completed. */
  abandoned(path: string): void {
    this.#end(resolve(path));
    this.removeEmpty(path);
  }

  /** Removes a folder and its parents as long as they were created here and are empty. */
  removeEmpty(path: string): void {
    for (let at = resolve(path); this.#created.has(at); at = dirname(at)) {
      try {
        Deno.removeSync(at);
      } catch {
        return; // not empty
      }
      this.#created.delete(at);
    }
  }

  #hasUnfinishedBelow(folder: string): boolean {
    return [...this.#unfinished.keys()].some((other) => other.startsWith(`${folder}${sep}`));
  }

  /** Returns how many files of the folder remain unfinished. */
  #end(folder: string): number {
    const count = this.#unfinished.get(folder)! - 1;
    if (count === 0) this.#unfinished.delete(folder);
    else this.#unfinished.set(folder, count);
    return count;
  }

  #keep(folder: string): void {
    for (let at = folder; this.#created.delete(at); at = dirname(at));
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
      if (isGone && tries < TRIES_MAX) continue;
      if (!(error instanceof AlreadyExists)) throw error;
      // Not `already_exists`, which means that another writer will be done.
      throw new LeatError(
        "failed_precondition",
        `Cannot create the folder ${path}: a part of this path is a file, or a link that leads to no ` +
          "folder. Remove it, or write to another folder.",
        { cause: error },
      );
    }
  }
}

/** Also true for a path that this program may not inspect: this program has not created it. */
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
  const scheme = schemeOf(path);
  if (scheme === undefined) return path;
  if (scheme === "file") return pathOfFileUrl(path);
  throw new LeatError(
    "unimplemented",
    `Cannot write ${shownPath(path)}: files are written on this machine only, not to ${scheme}: ` +
      "storage. Write to a local folder and copy the files.",
  );
}

/**
 * Opens the unfinished file, locked and empty. Returns `undefined` if it was completed or removed
 * before it was locked.
 */
async function lockedFile(path: string, partial: string): Promise<Deno.FsFile | undefined> {
  const file = await openIn(dirname(path), partial);
  if (file === undefined) return undefined;
  try {
    if (!file.tryLockSync(true)) {
      throw new LeatError(
        "already_exists",
        `Cannot write ${path}: another writer holds its lock ${partial}. Wait until it is done, or give ` +
          `each writer a path of its own. The system releases the lock when that process ends.`,
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

/** Opens the file. Returns `undefined` if another writer has removed its folder. */
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
  // Opened for reading, too, so that opening does not block if a pipe has replaced the file.
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
    const [open, named] = [await file.stat(), await Deno.lstat(path)];
    requireFile(named, path);
    return open.ino === named.ino && open.dev === named.dev;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** An unfinished file. Writes are synchronous, like reads, because they go to the page cache. */
function partialFile(
  path: string,
  partial: string,
  created: Deno.FsFile,
  folders: CreatedFolders,
  syncFolder: SyncFolder,
): NewFile {
  let file: Deno.FsFile | undefined = created;
  const openFile = () => {
    if (file !== undefined) return file;
    throw new LeatError(
      "failed_precondition",
      `Cannot write ${path}: it was completed or abandoned.`,
    );
  };
  return {
    append: (bytes) => {
      const file = openFile();
      try {
        for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
      } catch (error) {
        throw writeError(path, error);
      }
    },
    commit: async () => {
      const written = openFile();
      try {
        await written.sync();
        if (file === undefined) return; // abandoned meanwhile
        Deno.renameSync(partial, path); // still locked, so that no other writer empties it
        file = undefined;
        folders.completed(dirname(path));
        written.close();
        // Before this, a power cut can undo the renaming.
        await syncFolder(dirname(path));
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
        // The file stays, without a lock. The next writer empties it.
      }
      abandoned.close();
      folders.abandoned(dirname(path));
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
