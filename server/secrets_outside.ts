/**
 * Refuses data roots and write roots that contain secrets: with the token of an admin, the author of a
 * pipeline function could impersonate the admin.
 */
import { dirname, join, resolve } from "node:path";
import { LeatError } from "../core/error.ts";
import { JOURNAL_NAME } from "./roles.ts";
import {
  checkSandboxOptions,
  isFar,
  isWithin,
  rootPath,
  type SandboxOptions,
} from "../platform/sandbox/grants.ts";

/** A file or folder that functions must not read. */
export interface Secret {
  /** The option that names it, such as `--key`. */
  readonly what: string;
  readonly path: string;
}

/** A folder that functions may read. */
interface Root {
  readonly path: string;
  readonly what: "data root" | "write root";
}

/** The options that name the roots. */
const OPTIONS: Readonly<Record<Root["what"], string>> = {
  "data root": "--data-root, dataRoots",
  "write root": "--allow-write, writeRoots",
};

/** Limits of the search of a root for journals and for links to secrets: levels and entries. */
const DEPTH_MAX = 2;
const ENTRIES_MAX = 10_000;

const JOURNAL_FILE = `${JOURNAL_NAME}.sqlite`;

/**
 * Checks whether functions could read any of the secrets, or the journal of a dispatcher. It
 * searches only the top of each root for journals, symbolic links and hard links. Below that, only
 * the kernel can keep functions from following symbolic links out of the root.
 * @throws LeatError `invalid_argument` that names the secret, where it can be read, and the remedy, or
 * what is wrong with the options.
 */
export async function requireSecretsOutside(
  options: SandboxOptions,
  secrets: readonly Secret[],
): Promise<void> {
  checkSandboxOptions(options);
  const { dataRoots = [Deno.cwd()], writeRoots = [] } = options;
  const located = await Promise.all(secrets.map(async (secret) => ({
    ...secret,
    paths: [resolve(secret.path), await realPathOf(secret.path)],
    files: await fileIdsOf(secret.path),
  })));
  const roots: Root[] = [
    // Storage elsewhere has no secrets of this host.
    ...dataRoots.filter((path) => !isFar(path)).map((path) => ({
      path,
      what: "data root" as const,
    })),
    ...writeRoots.map((path) => ({ path, what: "write root" as const })),
  ];
  for (const root of roots) {
    const named = rootPath(root.path);
    const folder = await realPathOf(named);
    const isFolder = await Deno.stat(folder).then(({ isDirectory }) => isDirectory, () => false);
    // Other code refuses a path that is no folder.
    if (!isFolder) continue;
    for (const { what, path, paths } of located) {
      if (paths.some((at) => isWithin(at, folder) || isWithin(at, named))) {
        throw readable(`${what} ${path} is`, root);
      }
    }
    for await (const { path, target } of entriesIn(folder, root)) {
      // `entriesIn` refuses journals by their names, also where there are no secrets.
      if (located.length === 0) continue;
      // A hard link looks like any other file, so files are compared by their ids.
      const id = await fileIdOf(path);
      const secret = located.find(({ paths, files }) =>
        target !== undefined && paths.some((at) => isWithin(at, target)) ||
        id !== undefined && files.has(id)
      );
      if (secret === undefined) continue;
      throw readable(`${secret.what} ${secret.path} is reached by the link ${path}`, root);
    }
  }
}

/** Resolves the links of a path, as far as the path exists. */
async function realPathOf(path: string): Promise<string> {
  try {
    return await Deno.realPath(path);
  } catch {
    const folder = dirname(resolve(path));
    const real = await Deno.realPath(folder).catch(() => folder);
    return join(real, resolve(path).slice(folder.length));
  }
}

/** A file's device and inode. Undefined if the path is no file, or the system has no inodes. */
async function fileIdOf(path: string): Promise<string | undefined> {
  const { isFile, dev, ino } = await Deno.stat(path).catch(() => NOTHING);
  return isFile && ino ? `${dev} ${ino}` : undefined;
}

const NOTHING = { isFile: false, dev: 0, ino: null } as const;

/** The id of a file, or the ids of the files directly in a folder. */
async function fileIdsOf(path: string): Promise<Set<string>> {
  const inside = (await entriesOf(path, ENTRIES_MAX)).map(({ name }) => join(path, name));
  const ids = await Promise.all([path, ...inside].map(fileIdOf));
  return new Set(ids.filter((id) => id !== undefined));
}

/**
 * Yields the files near the top of a folder, and the symbolic links there with their targets.
 * @throws LeatError if one of the entries is a journal.
 */
async function* entriesIn(
  folder: string,
  root: Root,
): AsyncGenerator<{ readonly path: string; readonly target?: string }> {
  let entries = 0;
  let level = [folder];
  for (let depth = 0; depth < DEPTH_MAX; depth++) {
    const next: string[] = [];
    for (const parent of level) {
      for (const entry of await entriesOf(parent, ENTRIES_MAX - entries)) {
        entries++;
        const path = join(parent, entry.name);
        if (entry.name === JOURNAL_FILE) {
          throw readable(`The journal of a dispatcher, ${path}, is`, root);
        }
        if (entry.isSymlink) {
          const target = await Deno.realPath(path).catch(() => undefined);
          if (target !== undefined) yield { path, target };
        } else if (entry.isDirectory) next.push(path);
        else if (entry.isFile) yield { path };
      }
    }
    level = next;
  }
}

async function entriesOf(folder: string, countMax: number): Promise<Deno.DirEntry[]> {
  const entries: Deno.DirEntry[] = [];
  try {
    for await (const entry of Deno.readDir(folder)) {
      if (entries.length >= countMax) break;
      entries.push(entry);
    }
  } catch {
    // If this program cannot read the folder, pipeline functions cannot either.
  }
  return entries;
}

function readable(secret: string, { what, path }: Root): LeatError {
  return new LeatError(
    "invalid_argument",
    `${secret} in the ${what} ${path}, where every function may read it: keep it elsewhere, or name ` +
      `only the folders of the data (${OPTIONS[what]})`,
  );
}
