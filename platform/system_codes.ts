/** The system's own error codes, such as `ENOENT`. */

/** The number of EDQUOT. Neither Deno nor its `node:fs` has a name for it. */
const EDQUOT = Deno.build.os === "darwin" ? 69 : 122;

/** The system's code of an error of Deno or `node:fs`; `undefined` for other errors. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, errno, message } = error as Error & { readonly code?: unknown; errno?: unknown };
  if (errno === -EDQUOT || message.includes(`(os error ${EDQUOT})`)) return "EDQUOT";
  return typeof code === "string" ? code : undefined;
}

/** Whether the system has no space for a write: its disk is full, or a quota is exhausted. */
export function isDiskFull(error: unknown): boolean {
  const code = systemCode(error);
  return code === "ENOSPC" || code === "EDQUOT";
}
