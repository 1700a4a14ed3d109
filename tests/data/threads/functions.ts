/** Functions that tests call on other threads. */
import { existsSync } from "node:fs";
import { join } from "node:path";

interface Folder {
  readonly folder: string;
}

/** Adds an empty file to a folder; its name does not exist yet. */
function addFile(folder: string): string {
  const path = join(folder, crypto.randomUUID());
  Deno.writeTextFileSync(path, "");
  return path;
}

function count(folder: string): number {
  return [...Deno.readDirSync(folder)].length;
}

/** The most calls that ran at once, as seen from this one and those before it. */
export function countRunning(
  { x, most }: { x: number; most: number },
  { folder }: Folder,
): { x: number; most: number } {
  const running = join(folder, "running");
  const path = addFile(running);
  for (let i = 0; i < 5; i++) most = Math.max(most, count(running));
  Deno.removeSync(path);
  return { x, most };
}

/** Leaves a file for each call. */
export function leaveFile(x: number, { folder }: Folder): number {
  addFile(folder);
  return x;
}

/** Ends its thread by an error that nobody can catch, if `x` is one of `fatal`. */
export async function endThread(x: number, { fatal }: { fatal: number[] }): Promise<number> {
  if (!fatal.includes(x)) return x;
  setTimeout(() => {
    throw new Error(`fatal ${x}`);
  });
  return await new Promise(() => {});
}

/** Like `endThread`, but its other calls take some turns, in which overlapping calls may end the thread. */
export async function endThreadOfOthers(x: number, captures: { fatal: number[] }): Promise<number> {
  if (captures.fatal.includes(x)) return await endThread(x, captures);
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve));
  return x;
}

/** Throws an error with a cause at every third call. */
export function fail(x: number): number {
  if (x % 3 === 1) throw new TypeError(`no ${x}`, { cause: new RangeError("too deep") });
  return x;
}

/** Tries to end the program. */
export function exit(x: number): number {
  if (x === 1) Deno.exit(3);
  return x;
}

/**
 * Blocks its thread until the folder has a file `free`. Leaves `blocked` when it begins; `late` if it
 * gives up, so that a test without the file fails instead of hanging.
 */
export function block(x: number, { folder }: Folder): number {
  Deno.writeTextFileSync(join(folder, "blocked"), "");
  for (let looks = 0; !existsSync(join(folder, "free")); looks++) {
    if (looks < 1_000_000) continue;
    Deno.writeTextFileSync(join(folder, "late"), "");
    break;
  }
  return x;
}
