/**
 * Slots that a worker and a trainer of one host and user share. Neither has to believe that the other
 * is on its host: the trainer creates a file in the worker's private folder, and the worker opens it.
 */
import { dirname } from "node:path";
import { hexOf64 } from "../../core/bytes.ts";
import type { SlotFile } from "../../transport/process/slots.ts";
import type { NearDialler, NearListener } from "../../transport/web_socket.ts";
import { slotFile } from "./slot_files.ts";
import { newFile, PREFIX, PrivateFolder, removeLeftFolders } from "./slot_folder.ts";

/** The worker's part: a private folder for as long as it listens. */
export class NearFolder implements NearListener {
  readonly folder: string;
  readonly #folder = new PrivateFolder();

  constructor() {
    const { path } = this.#folder;
    this.folder = path.slice(dirname(path).length + 1);
    removeLeftFolders(path);
  }

  open(name: string): SlotFile | undefined {
    const path = `${this.#folder.path}/${name}`;
    try {
      const file = Deno.openSync(path, { write: true });
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

/** The worker's part; undefined where this program may not write temporary files. */
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
interface Own {
  readonly folder: string;
  readonly uid: number | null;
}

let own: Own | undefined;

/** The trainer's part. */
export const nearDialler: NearDialler = {
  create(folder) {
    if (!FOLDER.test(folder) || Deno.build.os === "windows") return undefined;
    try {
      own ??= ownFolder();
      const path = `${own.folder}/${folder}`;
      const { isDirectory, uid, mode } = Deno.lstatSync(path);
      const isPrivate = isDirectory && uid === own.uid && mode !== null && (mode & 0o077) === 0;
      if (!isPrivate) return undefined;
      const [bits] = crypto.getRandomValues(new BigUint64Array(1));
      const name = hexOf64(bits!);
      return { name, file: slotFile(newFile(`${path}/${name}`), Infinity) };
    } catch {
      // It is on another host, or in another container, or not permitted.
      return undefined;
    }
  },
};

/** Creates a folder and removes it: Deno has no other way to tell the folder for temporary files. */
function ownFolder(): Own {
  const path = Deno.makeTempDirSync();
  const { uid } = Deno.statSync(path);
  Deno.removeSync(path);
  return { folder: dirname(path), uid };
}
