/**
 * What is left of `Deno` on a confined thread. Names are allowed one by one, since a later Deno may
 * bring any; permissions are asked for by Deno itself, as everywhere.
 *
 * @module
 */
import type { Folders } from "./folders.ts";
import { shutOff } from "./shut_off.ts";

/** Members that are harmless, or that a thread without the permission is denied. */
const MEMBERS = [
  ...["build", "version", "errors", "inspect", "SeekMode", "FsFile", "memoryUsage"] as const,
  ...["cwd", "lstat", "lstatSync", "realPath", "realPathSync"] as const,
  ...["connect", "connectTls", "resolveDns", "env", "hostname", "Command", "dlopen"] as const,
];

/** Members whose first argument is a path that they follow, and read. */
const READING = [
  ...["readFile", "readFileSync", "readTextFile", "readTextFileSync"] as const,
  ...["readDir", "readDirSync", "stat", "statSync"] as const,
];

/** The same of those that write there. */
const WRITING = [
  ...["writeFile", "writeFileSync", "writeTextFile", "writeTextFileSync"] as const,
  ...["mkdir", "mkdirSync", "remove", "removeSync"] as const,
];

/** Members that Deno gives to everybody, but that reach the whole process. */
const SHUT = ["exit", "kill", "chdir", "addSignalListener", "listen", "serve"];

type PathFunction = (path: string | URL, ...rest: unknown[]) => unknown;

/** `Deno` for user functions. */
export function confinedDeno(
  readable: Folders,
  writable: Folders,
): Readonly<Record<string, unknown>> {
  const confined: Record<string, unknown> = {};
  for (const name of MEMBERS) confined[name] = Deno[name];
  for (const name of READING) {
    const read = Deno[name] as PathFunction;
    confined[name] = settledAs(name, (path, ...rest) => read(readable.checked(path), ...rest));
  }
  for (const name of WRITING) {
    const write = Deno[name] as PathFunction;
    confined[name] = settledAs(name, (path, ...rest) => write(writable.checked(path), ...rest));
  }
  for (const name of ["open", "openSync"] as const) {
    const open = Deno[name] as PathFunction;
    confined[name] = settledAs(name, (path, options) => {
      const fixed = { read: options === undefined, ...options as Deno.OpenOptions };
      const { write, append, create, createNew, truncate } = fixed;
      const folders = write || append || create || createNew || truncate ? writable : readable;
      return open(folders.checked(path), fixed);
    });
  }
  for (const name of ["rename", "renameSync"] as const) {
    const rename = Deno[name];
    confined[name] = settledAs(name, (from, to) => {
      return rename(writable.checked(from), writable.checked(to as string | URL));
    });
  }
  for (const name of SHUT) confined[name] = shutOff(`Deno.${name}`);
  return Object.freeze(confined);
}

/** What fails at once fails as the named member would: some give promises. */
function settledAs(name: string, call: PathFunction): PathFunction {
  const throws = name.endsWith("Sync") || name === "readDir";
  return throws ? call : async (path, ...rest) => await call(path, ...rest);
}
