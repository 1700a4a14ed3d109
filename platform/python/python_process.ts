/** A process of Python that calls functions of pipelines, with all permissions of this user. */
import { AbortRace } from "../../core/abort_race.ts";
import { LeatError } from "../../core/error.ts";
import { type ChildEnd, ChildProcess } from "../process/child_process.ts";
import { Edge } from "../sandbox/edge.ts";

export class PythonProcess {
  readonly #interpreter: string;
  readonly #child: ChildProcess;
  readonly #edge: Edge;
  readonly #death = new AbortRace();
  /** Settles when it is ready for requests. */
  readonly #loaded: Promise<unknown>;
  #hasLoaded = false;

  /**
   * @param onEnded Called when it has ended.
   * @throws {LeatError} `permission_denied`, or `not_found` for no such interpreter.
   */
  constructor(interpreter: string, onEnded: () => void) {
    this.#interpreter = interpreter;
    requirePermission(interpreter);
    this.#child = new ChildProcess({
      name: "python",
      program: { command: interpreter, args: ["-m", "leat._functions"] },
      prints: "python",
      hasEnvironment: true,
    });
    this.#edge = new Edge(this.#child.link, this.#child.local, {});
    this.#edge.closed.then(() => this.#child.kill());
    this.#child.ended.then((end) => {
      this.#death.come(this.#errorOf(end));
      this.#edge.close();
      onEnded();
    });
    this.#loaded = this.#answerOf("ping", null).then(() => this.#hasLoaded = true);
    this.#loaded.catch(() => {});
  }

  get isAlive(): boolean {
    return !this.#death.hasCome;
  }

  /** Whether it can call functions: another one that is started cannot, either. */
  get hasLoaded(): boolean {
    return this.#hasLoaded;
  }

  /**
   * Sends a request. The process keeps this program alive until the answer.
   * @throws {LeatError} the error of the answer, or how the process has ended.
   */
  async ask(method: string, args: unknown): Promise<unknown> {
    this.#child.ref();
    try {
      await this.#loaded;
      return await this.#answerOf(method, args);
    } finally {
      if (this.isAlive) this.#child.unref();
    }
  }

  /** Ends it, whatever it is doing. */
  kill(): void {
    this.#child.kill();
  }

  #answerOf(method: string, args: unknown): Promise<unknown> {
    const answer = this.#edge.ask(method, args).catch((error) => {
      // The exit of the process explains more than the end of its pipes.
      if (this.#edge.isClosed) return new Promise(() => {});
      throw error;
    });
    return this.#death.before(answer);
  }

  #errorOf({ code, signal, said }: ChildEnd): LeatError {
    const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
    const why = said.trim() === "" ? "" : `: ${said.trim()}`;
    if (this.#hasLoaded) {
      return new LeatError("internal", `The Python process that called it has ended ${how}${why}`);
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
      `--allow-run=${command} (leat.load: allow=["python"]; a worker: --no-sandbox, and --allow-python of ` +
      "python -m leat)",
  );
}
