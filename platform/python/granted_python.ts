/** Calls the Python functions that the operator of a worker has granted to confined pipelines. */
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import { type Folder, isWithin } from "../sandbox/grants.ts";
import { PYTHON, type PythonBatch, type PythonPool } from "./python_pool.ts";
import { PythonProcesses } from "./python_processes.ts";

/** The system opens no path that is longer. */
const PATH_LENGTH_MAX = 4_096;

/** Calls functions for a worker's confined pipelines, only from files in granted folders. */
export class GrantedPython {
  readonly #roots: readonly Folder[];
  readonly #processes: PythonProcesses;

  constructor(roots: readonly Folder[], callTimeoutMs: number) {
    this.#roots = roots;
    this.#processes = new PythonProcesses(PYTHON, { onlyOwn: true, callTimeoutMs });
  }

  /** Opens a pool for one pipeline of an identity, whose requests are untrusted. */
  open(owner?: string): PythonPool {
    const pool = this.#processes.open(owner);
    return {
      run: async (batch) => await pool.run({ ...batch, file: await this.#fileOf(batch) }),
      close: () => pool.close(),
    };
  }

  /** Checks that a file is granted, and returns its real path. */
  async #fileOf({ file, name }: PythonBatch): Promise<string> {
    const refused = (why: string) =>
      new LeatError(
        "permission_denied",
        `The Python function "${name}" of ${shownPath(file)} is not called here: ${why}`,
      );
    if (this.#roots.length === 0) {
      throw refused(
        "this pipeline is confined, but Python functions cannot be. The operator of a worker can grant " +
          "the functions of a folder with --allow-python FOLDER",
      );
    }
    const requested = file.startsWith("file:") ? fileURLToPath(file) : resolve(file);
    const path = await realPlaceOf(requested);
    if (path !== undefined && this.#roots.some(({ realPath }) => isWithin(path, realPath))) {
      if (await exists(path)) return path;
      throw new LeatError("not_found", `There is no file ${shownPath(file)} of Python functions`);
    }
    throw refused(
      "it is outside of the folders that the operator of this worker grants with --allow-python FOLDER",
    );
  }
}

/**
 * Returns a file's real path. If the file does not exist, it is the path that it would have: a pipeline
 * must not learn whether a file outside of the granted folders exists, even through a link in one of
 * them. Returns undefined for a path below a link that leads nowhere, because that may be outside.
 */
async function realPlaceOf(path: string): Promise<string | undefined> {
  if (path.length > PATH_LENGTH_MAX) return undefined;
  const realPath = await Deno.realPath(path).catch(() => undefined);
  if (realPath !== undefined) return realPath;
  const folder = dirname(path);
  if (folder === path || await exists(path)) return undefined;
  const place = await realPlaceOf(folder);
  return place === undefined ? undefined : join(place, basename(path));
}

/** Whether there is a file, a folder or a link, which may lead nowhere. */
function exists(path: string): Promise<boolean> {
  return Deno.lstat(path).then(() => true, () => false);
}
