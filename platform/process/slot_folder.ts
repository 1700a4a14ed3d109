/** The private folder for the slot files of two processes, needed until both have opened the files. */
import { dirname } from "node:path";
import { LeatError } from "../../core/error.ts";
import { systemCode } from "../system_codes.ts";

/** The prefix of these folders' names. */
export const PREFIX = "leat-slots-";
/** The process that created the folder holds the lock of this file while it needs the folder. */
const LOCK = "lock";
/** Limit of attempts to create a folder, which another process may remove before it is locked. */
const TRIES_MAX = 10;

/** A folder for this user alone. If this process is killed, a later process removes the folder. */
export class PrivateFolder {
  readonly path: string;
  readonly #lock: Deno.FsFile;
  #isRemoved = false;
  /** Called on exit, too, so that the program leaves nothing behind. */
  readonly #remove = () => this.remove();

  /** Creates the folder in `parent`, by default the folder for temporary files. */
  constructor(parent?: string) {
    const { path, lock } = lockedFolder(parent);
    this.path = path;
    this.#lock = lock;
    addEventListener("unload", this.#remove);
  }

  /** Removes the folder and its files. Idempotent. */
  remove(): void {
    if (this.#isRemoved) return;
    this.#isRemoved = true;
    removeEventListener("unload", this.#remove);
    this.#lock.close();
    removeFolder(this.path);
  }
}

/** A folder with an empty slot file for each direction. Remove it once both files are opened. */
export class SlotFolder extends PrivateFolder {
  /** The file that the folder's creator writes. */
  readonly outgoing: string;
  /** The file that the folder's creator reads. */
  readonly incoming: string;

  constructor(parent?: string) {
    super(parent);
    this.outgoing = `${this.path}/down`;
    this.incoming = `${this.path}/up`;
    try {
      for (const file of [this.outgoing, this.incoming]) newFile(file).close();
    } catch (error) {
      this.remove();
      throw error;
    }
  }
}

/**
 * Removes the folders next to `own` that killed processes of the same user have left. Folders in use
 * are locked, so they stay. Not even root removes other users' folders, because their content may
 * change meanwhile.
 */
export function removeLeftFolders(own: string): void {
  const parent = dirname(own);
  for (const { name, isDirectory } of entriesOf(parent)) {
    if (isDirectory && name.startsWith(PREFIX)) removeIfUnlocked(`${parent}/${name}`, own);
  }
}

function entriesOf(folder: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch {
    // This program may create files there, but not list it.
    return [];
  }
}

function removeIfUnlocked(path: string, own: string): void {
  try {
    if (Deno.lstatSync(path).uid !== Deno.lstatSync(own).uid) return;
    // A folder is empty if its process was killed before it could create the lock.
    if (entriesOf(path).length === 0) return Deno.removeSync(path);
    if (!Deno.lstatSync(`${path}/${LOCK}`).isFile) return;
    using lock = Deno.openSync(`${path}/${LOCK}`, { read: true, write: true });
    if (lock.tryLockSync(true)) removeFolder(path);
  } catch {
    // Another process is removing the folder.
  }
}

/** Creates and locks a folder. Tries again if another process removes it before it is locked. */
function lockedFolder(parent: string | undefined): { path: string; lock: Deno.FsFile } {
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const path = newFolder(parent);
    const lock = lockIn(path);
    if (lock !== undefined) return { path, lock };
  }
  throw new LeatError(
    "internal",
    `${TRIES_MAX} folders for slot files were removed while Leat created them: check whether another ` +
      `program removes folders named ${PREFIX}… from the folder for temporary files`,
  );
}

function newFolder(parent: string | undefined): string {
  try {
    return Deno.makeTempDirSync({
      prefix: PREFIX,
      ...(parent === undefined ? {} : { dir: parent }),
    });
  } catch (cause) {
    const { code, message } = LeatError.from(cause);
    const isReadOnly = systemCode(cause) === "EROFS";
    if (code !== "not_found" && code !== "permission_denied" && !isReadOnly) throw cause;
    throw new LeatError(
      isReadOnly ? "permission_denied" : code,
      `Cannot create a folder for slot files in ${parent ?? "the folder for temporary files"}: ` +
        `${message}. Create that folder, or set TMPDIR to one that this program may write`,
      { cause },
    );
  }
}

function lockIn(folder: string): Deno.FsFile | undefined {
  let lock: Deno.FsFile | undefined;
  try {
    lock = newFile(`${folder}/${LOCK}`);
    lock.lockSync(true);
    Deno.lstatSync(`${folder}/${LOCK}`);
    return lock;
  } catch (error) {
    lock?.close();
    if (error instanceof Deno.errors.NotFound) return undefined;
    removeFolder(folder);
    throw error;
  }
}

/** Creates a file for this user alone. */
export function newFile(path: string): Deno.FsFile {
  return Deno.openSync(path, { read: true, write: true, createNew: true, mode: 0o600 });
}

/**
 * Opens a file that another process of this user has created.
 * @throws LeatError `permission_denied` unless the path is the only name of a regular file of the user
 *   `uid`: a link would lead to another file, and a pipe would block this thread.
 */
export function openOwnFile(path: string, uid: number | null): Deno.FsFile {
  const expected = Deno.lstatSync(path);
  if (!expected.isFile || expected.uid !== uid || expected.nlink !== 1) throw notOwn(path);
  // Opening a pipe for reading and writing does not block, should one have taken the file's place.
  const file = Deno.openSync(path, { read: true, write: true });
  const { dev, ino } = file.statSync();
  if (dev === expected.dev && ino === expected.ino) return file;
  file.close();
  throw notOwn(path);
}

function notOwn(path: string): LeatError {
  return new LeatError("permission_denied", `${path} is not a slot file of this user`);
}

function removeFolder(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch {
    // Either it no longer exists, or the next process that starts tries again.
  }
}
