/** Checks how many more files this process may open. */

/** The file that is opened to find out: it takes only a handle. */
const NOTHING = "/dev/null";

/**
 * Whether this process may open `count` more files and connections. Yes if unknown: on Windows,
 * which has no such limit, or without permission to read {@linkcode NOTHING}.
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
