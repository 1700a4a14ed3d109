/**
 * One side of a comparison: a process that runs a pipeline for a window of time on request, and waits
 * otherwise. A request is a line on its standard input with the length of the window in ms. The answer
 * is a line of JSON on standard output, `{ "rate": … }`. The request `sample` is answered with an image.
 */
import { LineStream } from "../../cli/lib/line_stream.ts";

/** A side has failed if its answer is later than the window's end by this, in ms. It covers the start. */
const ANSWER_MS = 120_000;
/** How long a process may take to end, in ms. */
const CLOSE_MS = 10_000;
/** How much of the end of standard error is retained to explain a failure, in characters. */
const ERROR_CHARS = 4_096;

/** How to start a side. */
export interface SideCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Whether the side runs on one core. */
  readonly pinned: boolean;
}

/** The result of one window. */
export interface Window {
  /** Units per second. */
  readonly rate: number;
  /** Other measurements by name, such as the bytes of a checkpoint. */
  readonly also?: Readonly<Record<string, number>>;
}

/** The next image of a pipeline. */
export interface Sample {
  /** Height, width and channels. */
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

/** The process of one side. Disposing it ends the process. */
export class Side implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #errors: ReadableStreamDefaultReader<string>;
  #errorText = "";
  readonly #errorsRead: Promise<void>;

  /** The process's id. */
  get pid(): number {
    return this.#process.pid;
  }

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
    this.#errorsRead = this.#readErrors();
  }

  /**
   * Runs the pipeline for about `ms` milliseconds. If the process ends or does not answer in time,
   * rejects with the end of its standard error.
   */
  async window(ms: number): Promise<Window> {
    return await this.#ask(String(ms), ms) as Window;
  }

  /** Returns the next image of the pipeline. Rejects as {@linkcode window} does. */
  async sample(): Promise<Sample> {
    return await this.#ask("sample", 0) as Sample;
  }

  async #ask(request: string, ms: number): Promise<unknown> {
    using _deadline = this.#killAfter(ms + ANSWER_MS);
    await this.#input.write(new TextEncoder().encode(`${request}\n`)).catch(() => {});
    const { value, done } = await this.#lines.read();
    if (!done) return JSON.parse(value);
    await this.#errorsRead;
    const lines = this.#errorText.trim().split("\n");
    throw new Error(`its process ended: ${lines.slice(-3).join(" | ")}`);
  }

  async #readErrors(): Promise<void> {
    for (let read; !(read = await this.#errors.read()).done;) {
      this.#errorText = (this.#errorText + read.value).slice(-ERROR_CHARS);
    }
  }

  #killAfter(ms: number): Disposable {
    const timer = setTimeout(() => {
      this.#process.kill("SIGKILL");
      // Its child processes may still keep its output open.
      this.#lines.cancel();
      this.#errors.cancel();
    }, ms);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    using _deadline = this.#killAfter(CLOSE_MS);
    await this.#input.close().catch(() => {});
    await this.#lines.cancel();
    await this.#errorsRead;
    await this.#process.status;
  }
}
