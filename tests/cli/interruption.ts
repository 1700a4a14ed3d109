/** Programs that interrupt themselves, because a signal of the test could come too late. */

/** Where a program is interrupted. */
interface Interruption {
  /** At a line that matches. */
  readonly line?: string;
  /** When it has started a process. */
  readonly spawn?: string;
  /** When its temporary folder with this prefix has contents. */
  readonly contents?: string;
}

/** Deno's flags for a program that is interrupted once, as Ctrl-C does. */
export function interruptedAt(where: Interruption): string[] {
  const fixture = new URL(import.meta.resolve("./fixture_interrupt.ts"));
  fixture.search = new URLSearchParams({ ...where }).toString();
  return ["--allow-run", "--preload", fixture.href];
}
