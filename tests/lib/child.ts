/**
 * Child Deno processes for tests: started, read line by line, killed with a signal, always reaped.
 *
 * @example
 * ```ts ignore
 * await using child = startChild("cli/worker.ts", { args: ["--dispatcher", address] });
 * await child.line(/listening on (\S+)/);
 * child.kill("SIGKILL");
 * assertEquals((await child.status).signal, "SIGKILL");
 * ```
 */

import { fileURLToPath } from "node:url";
import { PATIENCE_MS } from "./until.ts";

/** The repository root, the default folder of children. */
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const STOP_TIMEOUT_MS = 5_000;
/**
 * Maximum output kept of each stream; a child that writes more is broken, and the beginning shows
 * why.
 */
const OUTPUT_CHARS_MAX = 4 << 20;

/** How a child is started. */
export interface ChildOptions {
  readonly args?: readonly string[];
  /**
   * Whether `program` is a program (the default) or a task of `deno.json`, which takes no flags.
   */
  readonly command?: "run" | "task";
  /** Deno's own flags, before the program. Default: a permission set, `-P=server`. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The Linux network namespace (`ip netns`). Default: this process's. */
  readonly namespace?: string;
  /** Maximum open files and connections (`ulimit -n`). Default: that of this process. */
  readonly openFilesMax?: number;
  /** Time for a disposed child to end after `SIGTERM` before it is killed. Default: 5 s. */
  readonly stopTimeoutMs?: number;
}

/** A child process of a test. Disposing it ends it and waits for its end. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** Settles when the process has ended and its output was read. */
  readonly status: Promise<Deno.CommandStatus>;
  readonly stdout: ChildOutput;
  readonly stderr: ChildOutput;
  /** The next line of standard output that matches; each line is given once. */
  line(pattern: RegExp): Promise<RegExpExecArray>;
  /** Sends a signal; ignored if the process has ended. */
  kill(signal: Deno.Signal): void;
  /** Writes to standard input. */
  write(text: string): Promise<void>;
}

/**
 * Starts `deno run` on a program of the tree, by a path from its top.
 *
 * Deno is started by name, because that is what `--allow-run=deno` allows.
 */
export function startChild(program: string, options: ChildOptions = {}): Child {
  const {
    args = [],
    command: how = "run",
    flags = ["-P=server"],
    env = {},
    cwd = ROOT,
    namespace,
    openFilesMax,
    stopTimeoutMs = STOP_TIMEOUT_MS,
  } = options;
  const own = how === "run" ? ["--no-prompt", ...flags] : [];
  const command = ["deno", how, "--quiet", ...own, program, ...args];
  const limited = openFilesMax === undefined
    ? command
    : ["sh", "-c", `ulimit -n ${openFilesMax} && exec "$@"`, "sh", ...command];
  const [first, ...rest] = namespace === undefined
    ? limited
    : ["ip", "netns", "exec", namespace, ...limited];
  const process = new Deno.Command(first!, {
    args: rest,
    cwd,
    env: { NO_COLOR: "1", ...env },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  return new ChildProcess(process, `deno ${how} ${program}`, stopTimeoutMs);
}

class ChildProcess implements Child {
  readonly pid: number;
  readonly status: Promise<Deno.CommandStatus>;
  readonly stdout: ChildOutput;
  readonly stderr: ChildOutput;
  readonly #process: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #name: string;
  readonly #stopTimeoutMs: number;
  #ended = false;

  constructor(process: Deno.ChildProcess, name: string, stopTimeoutMs: number) {
    this.#process = process;
    this.#name = name;
    this.#stopTimeoutMs = stopTimeoutMs;
    this.#stdin = process.stdin.getWriter();
    this.pid = process.pid;
    this.stdout = new ChildOutput(process.stdout);
    this.stderr = new ChildOutput(process.stderr);
    this.status = this.#awaitEnd();
  }

  async #awaitEnd(): Promise<Deno.CommandStatus> {
    const status = await this.#process.status;
    this.#ended = true;
    await Promise.all([this.stdout.ended, this.stderr.ended]);
    // The pipe is broken by now, but must be closed to be freed.
    await this.#stdin.close().catch(() => {});
    return status;
  }

  async line(pattern: RegExp): Promise<RegExpExecArray> {
    const found = await within(PATIENCE_MS, this.stdout.match(pattern));
    if (found !== undefined) return found;
    throw new Error(
      `${this.#name} (process ${this.pid}) printed no line that matches ${pattern}.\n` +
        `stdout:\n${this.stdout.text}\nstderr:\n${this.stderr.text}`,
    );
  }

  kill(signal: Deno.Signal): void {
    if (this.#ended) return;
    try {
      this.#process.kill(signal);
    } catch (error) {
      // It may end between the check and the call.
      if (!(error instanceof TypeError) && !(error instanceof Deno.errors.NotFound)) throw error;
    }
  }

  async write(text: string): Promise<void> {
    await this.#stdin.write(new TextEncoder().encode(text));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill("SIGTERM");
    if (await within(this.#stopTimeoutMs, this.status) === undefined) this.kill("SIGKILL");
    await this.status;
  }
}

/** What a child writes to one of its streams. */
export class ChildOutput {
  /** Settles when the stream has ended. */
  readonly ended: Promise<void>;
  #text = "";
  #lines: string[] = [];
  #rest = "";
  #closed = false;
  #wake: (() => void)[] = [];

  constructor(stream: ReadableStream<Uint8Array>) {
    this.ended = this.#read(stream);
  }

  /** Everything so far, up to a limit. */
  get text(): string {
    return this.#text;
  }

  /** The next line that matches, or `undefined` if the stream ended without one. */
  async match(pattern: RegExp): Promise<RegExpExecArray | undefined> {
    while (true) {
      for (let line = this.#lines.shift(); line !== undefined; line = this.#lines.shift()) {
        const found = pattern.exec(line);
        if (found !== null) return found;
      }
      if (this.#closed) return undefined;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of stream) this.#take(decoder.decode(bytes, { stream: true }));
    this.#take(decoder.decode());
    if (this.#rest !== "") this.#lines.push(this.#rest);
    this.#closed = true;
    this.#wakeAll();
  }

  #take(text: string): void {
    if (this.#text.length < OUTPUT_CHARS_MAX) this.#text += text;
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (lines.length === 0) return;
    this.#lines.push(...lines);
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}

/** The result of a promise, or `undefined` after `timeoutMs`. */
async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T | undefined> {
  const { promise: expired, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), timeoutMs);
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}
