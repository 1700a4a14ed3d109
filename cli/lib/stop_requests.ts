/** Requests to stop a program, such as Ctrl-C, and how they interrupt its work. */
import { EXIT_INTERRUPTED } from "./args.ts";

/** The signals that ask a program to stop. Windows supports only the first. */
const SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows"
  ? ["SIGINT"]
  : ["SIGINT", "SIGTERM"];
/**
 * A second signal within this time, in ms, belongs to the same request. A terminal sends Ctrl-C to
 * all processes of a task, and `deno task` also forwards it: the program receives one Ctrl-C twice.
 */
export const ECHO_MS = 500;

/** Listens for requests to stop. A signal that follows an earlier request exits at once. */
export class StopRequests implements Disposable {
  /** Resolves at the first request, with its source. */
  readonly first: Promise<string>;
  readonly #resolveFirst: (by: string) => void;
  readonly #listeners: [Deno.Signal, () => void][] = [];
  readonly #onExit: () => void;
  #requestedAtMs: number | undefined;

  /** @param onExit Called before a signal exits at once: ends what would outlive the program. */
  constructor(onExit = () => {}) {
    this.#onExit = onExit;
    const first = Promise.withResolvers<string>();
    this.first = first.promise;
    this.#resolveFirst = first.resolve;
    for (const signal of SIGNALS) {
      const listener = () => this.#signalled(signal);
      Deno.addSignalListener(signal, listener);
      this.#listeners.push([signal, listener]);
    }
  }

  /** Treats the end of standard input as a request, too. */
  async watchStdin(): Promise<void> {
    const bytes = new Uint8Array(1_024);
    while (await Deno.stdin.read(bytes) !== null);
    this.#first("the end of standard input");
  }

  /**
   * Returns the result of `work`. If a request to stop comes first, calls `onStop`, prints its line,
   * and exits with {@linkcode EXIT_INTERRUPTED}.
   * @param onStop Releases what must not outlive the program. Returns the line to print.
   */
  async interrupting<T>(work: Promise<T>, onStop: () => string | Promise<string>): Promise<T> {
    const stopped = this.first.then(() => undefined);
    try {
      const end = await Promise.race([work.then((value) => ({ value })), stopped]);
      if (end !== undefined) return end.value;
    } catch (error) {
      // Ctrl-C also ends child processes, and `work` may fail because of that. It is an interruption, too.
      if (this.#requestedAtMs === undefined) throw error;
    }
    work.catch(() => {});
    console.error(await onStop());
    Deno.exit(EXIT_INTERRUPTED);
  }

  [Symbol.dispose](): void {
    for (const [signal, listener] of this.#listeners) Deno.removeSignalListener(signal, listener);
  }

  #signalled(signal: Deno.Signal): void {
    const isAgain = this.#requestedAtMs !== undefined &&
      performance.now() - this.#requestedAtMs >= ECHO_MS;
    if (isAgain) {
      this.#onExit();
      Deno.exit(EXIT_INTERRUPTED);
    }
    this.#first(signal);
  }

  #first(by: string): void {
    this.#requestedAtMs ??= performance.now();
    this.#resolveFirst(by);
  }
}
