/** The programs of a cluster as child processes. They end when this process does, for any reason. */
import { startDespiteLoader } from "../../platform/process/loader_variables.ts";
import { fileURLToPath } from "node:url";
import { LeatError } from "../../core/error.ts";
import { LineStream } from "../lib/line_stream.ts";

/** The root of the repository. Deno finds the permissions of the programs in its `deno.json`. */
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Time limit for a child to listen, in ms: the first start compiles. */
const START_TIMEOUT_MS = 60_000;
/** Time limit for a child to stop before it is killed, in ms. */
const STOP_TIMEOUT_MS = 3_000;
/** The description of the end of a program whose command line is invalid. */
const USAGE_END = "exit code 2";
/** Limit of the characters of a child's log that are kept, to explain its end. */
const LOG_CHARS_MAX = 4_096;

interface ChildOptions {
  /** Deno's own flags. */
  readonly flags?: readonly string[];
  /** The Linux network namespace (`ip netns`). Default: this process's. */
  readonly namespace?: string;
  /** The CPUs that the program may use, as `taskset -c` takes them. Default: this process's. */
  readonly cpus?: string | undefined;
  /** Receives the lines of its log, which is its standard error. */
  readonly onLog: (line: string) => void;
  /** Receives the lines of its standard output. */
  readonly onOutput?: (line: string) => void;
}

/** A program that listens, in a process of its own. */
export class ChildProcess {
  readonly name: string;
  readonly pid: number;
  /** Resolves with the reason when the process has ended. */
  readonly ended: Promise<string>;
  /** The program's address; empty until it listens. */
  address = "";
  /** Why the process ended, if it has. */
  end: string | undefined;
  readonly #process: Deno.ChildProcess;
  readonly #options: ChildOptions;
  #log = "";

  private constructor(name: string, process: Deno.ChildProcess, options: ChildOptions) {
    this.name = name;
    this.pid = process.pid;
    this.#process = process;
    this.#options = options;
    this.ended = this.#awaitEnd();
  }

  /**
   * Starts a program; resolves when it listens.
   * @throws LeatError with the end of the log if the program ends instead: `invalid_argument` for an
   * invalid command line, else `unavailable`.
   */
  static async start(
    name: string,
    program: string,
    args: readonly string[],
    options: ChildOptions,
  ): Promise<ChildProcess> {
    const child = new ChildProcess(name, spawn(program, args, options), options);
    try {
      child.address = await child.#listening();
      return child;
    } catch (error) {
      await child.stop();
      throw error;
    }
  }

  /** Ends the process like a crash. */
  kill(): void {
    this.signal("SIGKILL");
  }

  /** Sends a signal. Has no effect after the process's end. */
  signal(signal: Deno.Signal): void {
    try {
      if (this.end === undefined) this.#process.kill(signal);
    } catch (error) {
      // Deno may know of the end before `status` has settled.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  /** Asks the program to stop, and kills it after `timeoutMs`. */
  async stop(timeoutMs: number = STOP_TIMEOUT_MS): Promise<void> {
    // The program stops when its standard input ends. That also happens if this process is killed.
    await this.#process.stdin.close().catch(() => {});
    const timer = setTimeout(() => this.kill(), timeoutMs);
    await this.ended;
    clearTimeout(timer);
  }

  /** The error of a program that has ended, with the end of its log; see {@linkcode ChildProcess.start}. */
  get failure(): LeatError {
    return this.#failed(`ended with ${this.end}`);
  }

  async #awaitEnd(): Promise<string> {
    const logged = this.#readLog();
    const { code, signal } = await this.#process.status;
    this.end = signal ?? `exit code ${code}`;
    // Otherwise this process's end of the pipe would leak after a crash.
    await this.#process.stdin.close().catch(() => {});
    await logged;
    return this.end;
  }

  async #listening(): Promise<string> {
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(this.#failed("did not listen in time")),
      START_TIMEOUT_MS,
    );
    try {
      return await Promise.race([this.#readAddress(), timeout]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Reads standard output to its end. Resolves with the address as soon as it is printed. */
  async #readAddress(): Promise<string> {
    const listening = Promise.withResolvers<string>();
    forEachLine(this.#process.stdout, (line) => {
      const [, address] = /listening on (\S+)/.exec(line) ?? [];
      if (address !== undefined) listening.resolve(address);
      this.#options.onOutput?.(line);
    }).then(async () => {
      await this.ended;
      listening.reject(this.failure);
    });
    return await listening.promise;
  }

  #readLog(): Promise<void> {
    return forEachLine(this.#process.stderr, (line) => {
      this.#log = `${this.#log}${line}\n`.slice(-LOG_CHARS_MAX);
      this.#options.onLog(line);
    });
  }

  #failed(how: string): LeatError {
    const code = this.end === USAGE_END ? "invalid_argument" : "unavailable";
    return new LeatError(code, `${this.name} ${how}:\n${this.#log.trimEnd()}`);
  }
}

/** Starts a program. It starts Deno by name, which `--allow-run=deno` permits. */
function spawn(
  program: string,
  args: readonly string[],
  { flags = [], namespace, cpus }: ChildOptions,
): Deno.ChildProcess {
  const [command, ...before] = [
    ...(namespace === undefined ? [] : ["ip", "netns", "exec", namespace]),
    ...(cpus === undefined ? [] : ["taskset", "-c", cpus]),
    "deno",
  ];
  const options: Deno.CommandOptions = {
    args: [
      ...before,
      "run",
      "--quiet",
      "--no-prompt",
      "-P=server",
      ...flags,
      `${ROOT}${program}`,
      ...args,
      "--stop-at-eof",
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  };
  try {
    return startDespiteLoader((added) =>
      new Deno.Command(command!, { ...options, env: { NO_COLOR: "1", ...added } }).spawn()
    );
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw cause;
    throw new LeatError(
      "not_found",
      "There is no `deno` on the PATH to start the parts of the cluster with: put it there, or run " +
        "this as a task (deno task cluster, npx deno task cluster)",
      { cause },
    );
  }
}

async function forEachLine(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  onLine: (line: string) => void,
): Promise<void> {
  for await (const line of stream.pipeThrough(new LineStream({ givesRest: true }))) onLine(line);
}
