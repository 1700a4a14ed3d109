/**
 * Slot files that a worker and a trainer share if they run on the same host as the same user. To prove
 * this to each other, the trainer creates a file in the worker's private folder, and the worker opens it.
 */
import { dirname } from "node:path";
import { hexOf64 } from "../../core/bytes.ts";
import type { SlotFile } from "../../transport/process/slots.ts";
import type { NearDialler, NearListener } from "../../transport/web_socket.ts";
import { slotFile } from "./slot_files.ts";
import { newFile, openOwnFile, PREFIX, PrivateFolder, removeLeftFolders } from "./slot_folder.ts";

/** The worker's side: its private folder while it listens. */
export class NearFolder implements NearListener {
  readonly folder: string;
  readonly #folder = new PrivateFolder();
  /** This process's user. */
  readonly #uid: number | null;

  constructor() {
    const { path } = this.#folder;
    this.#uid = Deno.lstatSync(path).uid;
    this.folder = path.slice(dirname(path).length + 1);
    removeLeftFolders(path);
  }

  open(name: string): SlotFile | undefined {
    const path = `${this.#folder.path}/${name}`;
    try {
      const file = openOwnFile(path, this.#uid);
      Deno.removeSync(path);
      return slotFile(file, Infinity);
    } catch {
      return undefined;
    }
  }

  remove(): void {
    this.#folder.remove();
  }
}

/** The worker's side; undefined on Windows, and if this program may not write temporary files. */
export function nearFolder(): NearFolder | undefined {
  if (Deno.build.os === "windows") return undefined;
  try {
    return new NearFolder();
  } catch {
    return undefined;
  }
}

const FOLDER = new RegExp(`^${PREFIX}[0-9a-zA-Z]+$`);

/** The folder for temporary files, and this process's user. */
interface TempFolder {
  readonly folder: string;
  readonly uid: number | null;
}

let temp: TempFolder | undefined;

/** The trainer's side: creates slot files in a worker's private folder. */
export const nearDialler: NearDialler = {
  create(folder) {
    if (!FOLDER.test(folder) || Deno.build.os === "windows") return undefined;
    try {
      temp ??= tempFolder();
      const path = `${temp.folder}/${folder}`;
      const { isDirectory, uid, mode } = Deno.lstatSync(path);
      const isPrivate = isDirectory && uid === temp.uid && mode !== null && (mode & 0o077) === 0;
      if (!isPrivate) return undefined;
      const [bits] = crypto.getRandomValues(new BigUint64Array(1));
      const name = hexOf64(bits!);
      return { name, file: slotFile(newFile(`${path}/${name}`), Infinity) };
    } catch {
      // The worker is on another host or in another container, or this program lacks a permission.
      return undefined;
    }
  },
};

/** Creates a folder and removes it: only this shows which folder Deno uses for temporary files. */
function tempFolder(): TempFolder {
  const path = Deno.makeTempDirSync();
  const { uid } = Deno.statSync(path);
  Deno.removeSync(path);
  return { folder: dirname(path), uid };
}
