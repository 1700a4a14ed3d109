/**
 * Ctrl-C and its kin: who asks a program to stop, and how a program ends that was asked in the middle of
 * its work.
 *
 * @module
 */
import { EXIT_INTERRUPTED } from "./args.ts";

/** The signals that ask a program to stop. Windows knows the first alone. */
const SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows"
  ? ["SIGINT"]
  : ["SIGINT", "SIGTERM"];
/**
 * A terminal sends Ctrl-C to all processes of a task, and `deno task` hands its own on to the program,
 * which so hears one Ctrl-C twice: so soon after the first, in ms, a request is the same one.
 */
export const ECHO_MS = 500;

/** Listens to those who may ask a program to stop. Who asks once more does not want to wait: it exits at once. */
export class StopRequests implements Disposable {
  /** Resolves at the first request, with who made it. */
  readonly first: Promise<string>;
  readonly #ask: (by: string) => void;
  readonly #listeners: [Deno.Signal, () => void][] = [];
  #askedAtMs: number | undefined;

  constructor() {
    const first = Promise.withResolvers<string>();
    this.first = first.promise;
    this.#ask = first.resolve;
    for (const signal of SIGNALS) {
      const listener = () => this.#signalled(signal);
      Deno.addSignalListener(signal, listener);
      this.#listeners.push([signal, listener]);
    }
  }

  /** Takes the end of standard input for a request too. */
  async watchStdin(): Promise<void> {
    const bytes = new Uint8Array(1_024);
    while (await Deno.stdin.read(bytes) !== null);
    this.#first("the end of standard input");
  }

  /**
   * What `work` gives, unless somebody asks for a stop before that: then the program says what was done
   * and what is lost, cleans up, and exits with {@linkcode EXIT_INTERRUPTED}.
   *
   * @param onStop Lets go of what has to be gone when the program is. Answers the line that is said.
   */
  async interrupting<T>(work: Promise<T>, onStop: () => string | Promise<string>): Promise<T> {
    const stopped = this.first.then(() => undefined);
    try {
      const end = await Promise.race([work.then((value) => ({ value })), stopped]);
      if (end !== undefined) return end.value;
    } catch (error) {
      // Ctrl-C reaches the program's children, too: that they end may be seen before it is heard.
      if (this.#askedAtMs === undefined) throw error;
    }
    work.catch(() => {});
    console.error(await onStop());
    Deno.exit(EXIT_INTERRUPTED);
  }

  [Symbol.dispose](): void {
    for (const [signal, listener] of this.#listeners) Deno.removeSignalListener(signal, listener);
  }

  #signalled(signal: Deno.Signal): void {
    const isAgain = this.#askedAtMs !== undefined &&
      performance.now() - this.#askedAtMs >= ECHO_MS;
    if (isAgain) Deno.exit(EXIT_INTERRUPTED);
    this.#first(signal);
  }

  #first(by: string): void {
    this.#askedAtMs ??= performance.now();
    this.#ask(by);
  }
}
