/**
 * The system's own codes of errors, `ENOENT` and so on.
 *
 * @module
 */

/** The number of EDQUOT. Neither Deno nor its `node:fs` has a name for it. */
const EDQUOT = Deno.build.os === "darwin" ? 69 : 122;

/** The system's code of an error of Deno's or of `node:fs`; `undefined` where it is none of a system's. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, errno, message } = error as Error & { readonly code?: unknown; errno?: unknown };
  if (errno === -EDQUOT || message.includes(`(os error ${EDQUOT})`)) return "EDQUOT";
  return typeof code === "string" ? code : undefined;
}

/** Whether the system has no room for what was written: its disk is full, or a quota is used up. */
export function isDiskFull(error: unknown): boolean {
  const code = systemCode(error);
  return code === "ENOSPC" || code === "EDQUOT";
}
