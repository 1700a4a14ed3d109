/** Variables of the environment that choose native libraries, which machines with a GPU often set. */

/**
 * Empties the dynamic loader's variables for a program to start. Deno starts no program with these
 * variables, unless this program may run all programs.
 */
export function loaderVariables(): Readonly<Record<string, string>> {
  const { state } = Deno.permissions.querySync({ name: "run" });
  return state === "granted" ? {} : { LD_LIBRARY_PATH: "", LD_PRELOAD: "" };
}
