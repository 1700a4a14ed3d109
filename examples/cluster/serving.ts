/**
 * The life of a program that serves: until it is told to stop, or cannot go on.
 *
 * @module
 */
import type { LeatError } from "../../mod.ts";

/** The signals that ask a program to stop. Windows knows the first alone. */
const SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows"
  ? ["SIGINT"]
  : ["SIGINT", "SIGTERM"];
/** What a shell expects of a program that a second Ctrl-C has ended. */
export const INTERRUPTED_EXIT_STATUS = 130;

/** Listens to those who may ask a program to stop. */
export class StopRequests implements Disposable {
  /** Resolves at the first request, with who made it. */
  readonly first: Promise<string>;
  readonly #ask: (by: string) => void;
  readonly #listeners: [Deno.Signal, () => void][] = [];
  #asked = false;

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
    this.#asked = true;
    this.#ask("the end of standard input");
  }

  [Symbol.dispose](): void {
    for (const [signal, listener] of this.#listeners) Deno.removeSignalListener(signal, listener);
  }

  /** The second time at once: whoever asks again does not want to wait. */
  #signalled(signal: Deno.Signal): void {
    if (this.#asked) Deno.exit(INTERRUPTED_EXIT_STATUS);
    this.#asked = true;
    this.#ask(signal);
  }
}

/** A server, as far as its life goes. */
export interface Serving {
  readonly failed: Promise<LeatError>;
  close(): Promise<void>;
}

/**
 * Keeps a server up until the program is asked to stop, and closes it.
 *
 * @throws The error that the server fails with.
 */
export async function serveUntilStopped(
  server: Serving,
  requests: StopRequests,
  onStopping: (by: string) => void,
): Promise<void> {
  const end = await Promise.race([requests.first, server.failed]);
  if (typeof end === "string") onStopping(end);
  await server.close();
  if (typeof end !== "string") throw end;
}
