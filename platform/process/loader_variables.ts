/** Environment variables that select native libraries. Machines with a GPU often set them. */

/**
 * Empties the dynamic loader's variables for a child process. If they are set, Deno refuses to start a
 * program, unless this program may run all programs.
 */
export function loaderVariables(): Readonly<Record<string, string>> {
  const { state } = Deno.permissions.querySync({ name: "run" });
  return state === "granted" ? {} : { LD_LIBRARY_PATH: "", LD_PRELOAD: "" };
}
