/** A process of Python that calls functions of pipelines, with all permissions of this user. */
import { AbortRace } from "../../core/abort_race.ts";
import { LeatError } from "../../core/error.ts";
import { Payload } from "../../transport/payload.ts";
import { type ChildEnd, ChildProcess } from "../process/child_process.ts";
import { Edge } from "../sandbox/edge.ts";
import { PYTHON_DIED, type PythonBatch } from "./python_pool.ts";

/** What untrusted pipelines may do with the functions. */
export interface PythonLimits {
  /** Whether only functions that the file itself defines are called, none that it imports. */
  readonly onlyOwn?: boolean;
  /** Longest time for calls that are sent together, in ms; then the process ends. Default: any. */
  readonly callTimeoutMs?: number;
}

/** Imports no modules from the current folder, to which user functions may write. */
const PROGRAM = "import sys; sys.path = [path for path in sys.path if path]; " +
  "from leat._functions import main; main()";

export class PythonProcess {
  readonly #interpreter: string;
  readonly #limits: PythonLimits;
  readonly #child: ChildProcess;
  readonly #edge: Edge;
  readonly #death = new AbortRace();
  /** Settles when it is ready for requests. */
  readonly #loaded: Promise<unknown>;
  #hasLoaded = false;

  /** @throws {LeatError} `permission_denied`, or `not_found` for no such interpreter. */
  constructor(interpreter: string, limits: PythonLimits) {
    this.#interpreter = interpreter;
    this.#limits = limits;
    requirePermission(interpreter);
    this.#child = new ChildProcess({
      name: "python",
      program: { command: interpreter, args: ["-c", PROGRAM] },
      prints: "python",
      hasEnvironment: true,
    });
    this.#edge = new Edge(this.#child.link, this.#child.local, {});
    this.#edge.closed.then(() => this.#child.kill());
    this.#child.ended.then((end) => {
      this.#death.abort(this.#errorOf(end));
      this.#edge.close();
    });
    this.#loaded = this.#edge.askUntil(this.#death, "ping", null).then(() =>
      this.#hasLoaded = true
    );
    this.#loaded.catch(() => {});
  }

  get isAlive(): boolean {
    return !this.#death.isAborted;
  }

  /**
   * Resolves to the encoded outcomes. The process keeps this program alive until then.
   * @throws {LeatError} that says how the process has ended, if it ends first.
   */
  async call({ file, name, calls }: PythonBatch): Promise<Uint8Array> {
    this.#child.ref();
    const { onlyOwn = false, callTimeoutMs } = this.#limits;
    let late: ReturnType<typeof setTimeout> | undefined;
    try {
      await this.#loaded;
      if (callTimeoutMs !== undefined) {
        late = setTimeout(() => this.#endLate(name, callTimeoutMs), callTimeoutMs);
      }
      const asked = { file, name, onlyOwn, calls: new Payload(calls) };
      return await this.#edge.askUntil(this.#death, "call", asked) as Uint8Array;
    } finally {
      clearTimeout(late);
      if (this.isAlive) this.#child.unref();
    }
  }

  /** Ends it, whatever it is doing. */
  kill(): void {
    this.#child.kill();
  }

  #endLate(name: string, afterMs: number): void {
    this.#death.abort(
      new LeatError(
        "deadline_exceeded",
        `The Python function "${name}" ran for more than ${afterMs / 1_000} s; a worker with a ` +
          "larger --function-timeout-ms allows more",
        { details: { reason: PYTHON_DIED } },
      ),
    );
    this.kill();
  }

  #errorOf({ code, signal, stderrTail }: ChildEnd): LeatError {
    const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
    const why = stderrTail.trim() === "" ? "" : `: ${stderrTail.trim()}`;
    if (this.#hasLoaded) {
      // A worker's processes are shared: their output may belong to another pipeline's calls.
      const { onlyOwn = false } = this.#limits;
      return new LeatError(
        "internal",
        `The Python process that called it has ended ${how}${onlyOwn ? "" : why}`,
        { details: { reason: PYTHON_DIED } },
      );
    }
    return new LeatError(
      "failed_precondition",
      `${this.#interpreter} calls no functions of pipelines: it has ended ${how}${why}. It needs the package ` +
        "leat: pip install ./python in Leat's folder",
    );
  }
}

function requirePermission(command: string): void {
  if (Deno.permissions.querySync({ name: "run", command }).state === "granted") return;
  throw new LeatError(
    "permission_denied",
    `Python functions have all permissions of their user, and this program may not run ${command}: grant it with ` +
      `--allow-run=${command} (leat.load: allow=["python"]; \`python -m leat worker\`: --allow-python FOLDER, or ` +
      "--no-sandbox)",
  );
}
