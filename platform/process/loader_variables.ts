/** Variables of the environment that choose native libraries, which machines with a GPU often set. */

/**
 * The part of an environment that lets a program be started. Deno starts none with variables of the
 * dynamic loader, unless this program may run all programs.
 */
export function loaderVariables(): Readonly<Record<string, string>> {
  const { state } = Deno.permissions.querySync({ name: "run" });
  return state === "granted" ? {} : { LD_LIBRARY_PATH: "", LD_PRELOAD: "" };
}
