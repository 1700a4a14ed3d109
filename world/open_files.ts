/**
 * How many files this process may open yet.
 *
 * @module
 */

/** What is opened to find out: it takes a handle and nothing else. */
const NOTHING = "/dev/null";

/**
 * Whether this process may open so many more files and connections. Where it cannot be found out (on
 * Windows, which has no such limit, or without permission to read {@linkcode NOTHING}) they count as there.
 */
export function hasSpareFiles(count: number): boolean {
  if (Deno.build.os === "windows") return true;
  if (Deno.permissions.querySync({ name: "read", path: NOTHING }).state !== "granted") return true;
  const opened: Deno.FsFile[] = [];
  try {
    for (let i = 0; i < count; i++) opened.push(Deno.openSync(NOTHING));
    return true;
  } catch {
    return false;
  } finally {
    for (const file of opened) file.close();
  }
}
