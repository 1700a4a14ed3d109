/** Removes files that no saved dataset needs. */
import { LeatError } from "../../core/error.ts";
import type { Host } from "../host.ts";

/**
 * Removes a file that nobody needs any more. If that fails, warns: the file only takes space, and the
 * next save to its folder removes it.
 */
export function removeLeftover(host: Host, path: string): void {
  try {
    host.newFiles.remove(path);
  } catch (error) {
    const { message } = LeatError.from(error);
    host.warn(`A file is left over: ${message}. The next save to its folder removes it`);
  }
}
