/** A Python process that calls functions of pipelines, with all permissions of this user. */
import { AbortRace } from "../../core/abort_race.ts";
import { LeatError } from "../../core/error.ts";
import { Payload } from "../../transport/payload.ts";
import { type ChildEnd, ChildProcess } from "../process/child_process.ts";
import { Edge, explainsEnd } from "../sandbox/edge.ts";
import type { PythonBatch } from "./python_pool.ts";

/** Limits for calls that untrusted pipelines make. */
export interface PythonLimits {
  /** Whether to call only functions that the file itself defines, and none that it imports. */
  readonly onlyOwn?: boolean;
  /** Time limit for calls that are sent together, in ms; then the process is killed. Default: none. */
  readonly callTimeoutMs?: number;
}

/** What a {@linkcode PythonProcess} uses of its process. */
export type PythonChild = Pick<
  ChildProcess,
  "link" | "local" | "ended" | "kill" | "ref" | "unref"
>;

/** Limit of the time that an interpreter may take to start, in ms. */
const LOAD_TIMEOUT_MS = 120_000;

/** Imports no modules from the current folder, because user functions may write to it. */
const PROGRAM = "import sys; sys.path = [path for path in sys.path if path]; " +
  "from leat._functions import main; main()";

const PACKAGE = "It needs the package leat: pip install ./python in Leat's folder";
const LIBRARIES =
  "It gets LD_LIBRARY_PATH only if this program may run all programs: --allow-run " +
  '(leat.load: allow=["python", "run"])';

export class PythonProcess {
  readonly #interpreter: string;
  readonly #limits: PythonLimits;
  readonly #child: PythonChild;
  readonly #edge: Edge;
  readonly #death = new AbortRace();
  /** Resolves when the process is ready for requests. */
  readonly #ready: Promise<unknown>;
  #isReady = false;

  /** @throws {LeatError} `permission_denied`, or `not_found` if the interpreter does not exist. */
  constructor(
    interpreter: string,
    limits: PythonLimits,
    child = startChild(interpreter),
    loadTimeoutMs: number = LOAD_TIMEOUT_MS,
  ) {
    this.#interpreter = interpreter;
    this.#limits = limits;
    this.#child = child;
    this.#edge = new Edge(child.link, child.local, {});
    // Without such a reason, how the process exits says more than the end of its pipes.
    this.#edge.closed.then((why) => explainsEnd(why) ? this.#die(why) : child.kill());
    child.ended.then((end) => this.#die(this.#errorOf(end)));
    this.#ready = this.#load(loadTimeoutMs);
    this.#ready.catch(() => {});
  }

  async #load(timeoutMs: number): Promise<void> {
    // With this code the calls of a request are not repeated, each with a time limit of its own.
    const late = new LeatError(
      "failed_precondition",
      `${this.#interpreter} has not started within ${
        timeoutMs / 1_000
      } s: check that it starts on ` +
        "this machine, and that the disk of its packages responds",
    );
    const timer = setTimeout(() => this.#die(late), timeoutMs);
    try {
      await this.#edge.askUntil(this.#death, "ping", null);
      this.#isReady = true;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whether the process accepts calls. */
  get isAlive(): boolean {
    return !this.#edge.isClosed;
  }

  /**
   * Resolves to the encoded outcomes. Until then the process keeps this program alive.
   * @throws {LeatError} if the process ends first; the message says how.
   */
  async call({ file, name, calls }: PythonBatch): Promise<Uint8Array> {
    this.#child.ref();
    const { onlyOwn = false, callTimeoutMs } = this.#limits;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      await this.#ready;
      if (callTimeoutMs !== undefined) {
        timer = setTimeout(() => this.#timeOut(name, callTimeoutMs), callTimeoutMs);
      }
      const request = { file, name, onlyOwn, calls: new Payload(calls) };
      return await this.#edge.askUntil(this.#death, "call", request) as Uint8Array;
    } finally {
      clearTimeout(timer);
      if (this.isAlive) this.#child.unref();
    }
  }

  /** Ends the process, whatever it is doing, and rejects its calls at once. */
  kill(): void {
    this.#die(new LeatError("cancelled", "The Python process was ended before it answered"));
  }

  #die(error: LeatError): void {
    this.#death.abort(error);
    this.#child.kill();
    this.#edge.close();
  }

  #timeOut(name: string, afterMs: number): void {
    this.#die(
      new LeatError(
        "deadline_exceeded",
        `The Python function "${name}" ran for more than ${afterMs / 1_000} s; a worker with a ` +
          "larger --function-timeout-ms allows more",
      ),
    );
  }

  #errorOf({ code, signal, stderrTail }: ChildEnd): LeatError {
    const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
    const why = stderrTail.trim() === "" ? "" : `: ${stderrTail.trim()}`;
    if (this.#isReady) {
      // A worker's processes are shared: their output may belong to another pipeline's calls.
      const { onlyOwn = false } = this.#limits;
      return new LeatError(
        "internal",
        `The Python process that called the function has ended ${how}${onlyOwn ? "" : why}`,
      );
    }
    const remedy = why.includes("shared libraries") ? LIBRARIES : PACKAGE;
    return new LeatError(
      "failed_precondition",
      `${this.#interpreter} cannot call functions of pipelines: it has ended ${how}${why}. ${remedy}`,
    );
  }
}

function startChild(interpreter: string): PythonChild {
  requirePermission(interpreter);
  return new ChildProcess({
    name: "python",
    // Unbuffered, because the process ends without writing what it has buffered.
    program: { command: interpreter, args: ["-u", "-c", PROGRAM] },
    prints: "python",
    hasEnvironment: true,
  });
}

function requirePermission(command: string): void {
  if (Deno.permissions.querySync({ name: "run", command }).state === "granted") return;
  throw new LeatError(
    "permission_denied",
    `This program may not run ${command}, which calls Python functions with all permissions of the user: ` +
      `grant it with --allow-run=${command} (leat.load: allow=["python"]; \`python -m leat worker\`: ` +
      "--allow-python FOLDER, or --no-sandbox)",
  );
}
