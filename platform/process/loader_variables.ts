/** Environment variables that select native libraries. Machines with a GPU often set them. */

/** Deno's reason for not starting a program. */
const REFUSAL = / to spawn subprocess with (.+) environment variables?\./;

/**
 * Starts a program, without the dynamic loader's variables if they prevent this. While one is set, such
 * as `LD_LIBRARY_PATH`, Deno starts programs only for a program that may run all. `start` must throw
 * what `Deno.Command` throws, not reject with it.
 *
 * @param start Starts the program, with these variables added to its environment.
 */
export function startDespiteLoader<T>(
  start: (added: Readonly<Record<string, string>>) => T,
): T {
  try {
    return start({});
  } catch (error) {
    const [, names] = REFUSAL.exec(error instanceof Error ? error.message : "") ?? [];
    if (names === undefined) throw error;
    return start(Object.fromEntries(names.split(", ").map((name) => [name, ""])));
  }
}
