/**
 * One side of a comparison: a process that runs a pipeline for a window of time whenever it is told
 * to, and waits otherwise. It reads the length of a window in ms from standard input, a line each,
 * and answers with a line of JSON, `{ "rate": … }`.
 */
import { LineStream } from "../../cli/lib/line_stream.ts";

/** A side that takes longer than its window and this has failed, in ms. It covers the start. */
const ANSWER_MS = 120_000;
/** How long a process may take to end, in ms. */
const CLOSE_MS = 10_000;
/** The end of its output that is kept to explain a failure, in characters. */
const SAID_CHARS = 4_096;

/** How to start a side. */
export interface SideCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Runs on one core. */
  readonly pinned: boolean;
}

/** One window. */
export interface Window {
  /** Units per second. */
  readonly rate: number;
  /** What else was measured, by what it is, such as the bytes of a checkpoint. */
  readonly also?: Readonly<Record<string, number>>;
}

/** The process of one side. Disposing it ends the process. */
export class Side implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #errors: ReadableStreamDefaultReader<string>;
  #said = "";
  readonly #allSaid: Promise<void>;

  constructor({ command, args, pinned }: SideCommand) {
    const [program, ...rest] = pinned
      ? ["taskset", "-c", "0", command, ...args]
      : [command, ...args];
    this.#process = new Deno.Command(program!, {
      args: rest,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#input = this.#process.stdin.getWriter();
    this.#lines = this.#process.stdout.pipeThrough(new LineStream()).getReader();
    this.#errors = this.#process.stderr.pipeThrough(new TextDecoderStream()).getReader();
    this.#allSaid = this.#listen();
  }

  /**
   * Runs the pipeline for about `ms` milliseconds. Rejects with what the process wrote if it ends,
   * or does not answer in time.
   */
  async window(ms: number): Promise<Window> {
    using _deadline = this.#killAfter(ms + ANSWER_MS);
    await this.#input.write(new TextEncoder().encode(`${ms}\n`)).catch(() => {});
    const { value, done } = await this.#lines.read();
    if (!done) return JSON.parse(value) as Window;
    await this.#allSaid;
    const lines = this.#said.trim().split("\n");
    throw new Error(`its process ended: ${lines.slice(-3).join(" | ")}`);
  }

  async #listen(): Promise<void> {
    for (let read; !(read = await this.#errors.read()).done;) {
      this.#said = (this.#said + read.value).slice(-SAID_CHARS);
    }
  }

  #killAfter(ms: number): Disposable {
    const timer = setTimeout(() => {
      this.#process.kill("SIGKILL");
      // Processes that it started may still hold its output.
      this.#lines.cancel();
      this.#errors.cancel();
    }, ms);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    using _deadline = this.#killAfter(CLOSE_MS);
    await this.#input.close().catch(() => {});
    await this.#lines.cancel();
    await this.#allSaid;
    await this.#process.status;
  }
}
