/** Makes and removes temporary folders. */

import { LeatError } from "../../core/error.ts";

/** How many times to try to remove a folder that another thread writes to. */
const REMOVALS_MAX = 100;

/**
 * Makes a folder for temporary files, which only this user may read.
 * @throws {LeatError} if this program may not write to the system's folder for them.
 */
export function makeTemporaryFolder(prefix: string): string {
  try {
    return Deno.makeTempDirSync({ prefix });
  } catch (cause) {
    const { code, message } = LeatError.from(cause);
    throw new LeatError(
      code,
      `Cannot make a folder for temporary files: ${message}. Set TMPDIR to an existing folder that ` +
        `this program may write to, such as /tmp`,
      { cause },
    );
  }
}

/**
 * Removes a folder into which a thread that is still stopping may just have written. If that fails, it
 * only prints a warning: an error would hide the program's results, or the error that matters.
 */
export function removeInUse(folder: string): void {
  for (let triesLeft = REMOVALS_MAX; triesLeft > 0; triesLeft--) {
    try {
      return Deno.removeSync(folder, { recursive: true });
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return;
      if (triesLeft === 1) console.error(`The folder ${folder} is left over:`, error);
    }
  }
}
