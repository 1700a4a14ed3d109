/** A task of a save: its runner does one piece of work after another. It has no readers. */
import { LeatError } from "../../../core/error.ts";
import { definedFields } from "../../../core/tree.ts";
import type { SaveWork, Written } from "../../../data/saved/distributed/work.ts";
import { type DispatcherProtocol, TASK_ENDED } from "../../dispatcher/protocol.ts";
import type { Actor, ActorContext } from "../../runtime/actor.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import type { TaskStats } from "../protocol.ts";
import { NO_SPLITS, type RunnerOutcome } from "../runner/runner.ts";
import { sourceStats, type TaskOptions, type TaskProtocol } from "./task.ts";
import { RunnerDeaths } from "../runner/runner_deaths.ts";
import { reportOf } from "./save_answers.ts";
import { TaskPipeline } from "./task_pipeline.ts";

type SaveRequest = RequestOf<DispatcherProtocol, "getSaveWork">;
type SaveReport = Omit<SaveRequest, "taskId">;

/** How long a request may go unanswered before it is repeated, in ms. */
const ATTEMPT_MS = 2_000;

export function createSaveTask(
  context: ActorContext<TaskProtocol>,
  options: TaskOptions,
): Actor<TaskProtocol> {
  const task = new SaveTask(context, options);
  return {
    handlers: {
      getElement: () => ({ kind: "end" }),
      leave: () => null,
      stats: () => sourceStats(task.stats()),
      drain: () => task.drain().then(() => true),
    },
    start: () => task.start(),
    stop: () => task.stop(),
  };
}

class SaveTask {
  readonly #context: ActorContext;
  readonly #options: TaskOptions;
  readonly #pipeline: TaskPipeline;
  readonly #deaths: RunnerDeaths;
  #written: Written = { elements: 0, sizeBytes: 0 };
  #isDraining = false;
  /** Whether the task has nothing to do or to report, and waits for work. */
  #isIdle = true;
  #ended = false;
  readonly #over = Promise.withResolvers<void>();

  constructor(context: ActorContext, options: TaskOptions) {
    this.#context = context;
    this.#options = options;
    const { definition, runners } = options;
    this.#deaths = new RunnerDeaths({ context, ...options });
    this.#pipeline = new TaskPipeline({
      context,
      definition,
      runners,
      settings: { epoch: 0, splits: false, shared: false, save: definition.parameters.save! },
      splits: () => NO_SPLITS,
    });
    // It has no readers: those who wait for the save wait for each piece of work.
    this.#pipeline.noteAsked();
  }

  start(): void {
    this.#context.run(async () => {
      try {
        await this.#work();
      } finally {
        this.#end();
      }
    });
  }

  stop(): void {
    this.#end();
  }

  /**
   * Finishes the current work, and reports it. A task that waits for work is done at once, as it may
   * wait for long: if its open request still gets a piece, and the worker leaves before that is
   * written, the dispatcher assigns the piece again.
   */
  drain(): Promise<void> {
    this.#isDraining = true;
    return this.#isIdle ? Promise.resolve() : this.#over.promise;
  }

  stats(): TaskStats {
    const { elements, sizeBytes } = this.#written;
    return {
      ...this.#pipeline.stats({ produced: elements, bufferedBytes: 0, waiting: 1 }),
      served: elements,
      servedBytes: sizeBytes,
    };
  }

  async #work(): Promise<void> {
    let report: SaveReport = {};
    let last: SaveWork | undefined;
    while (!this.#ended) {
      this.#isIdle = last === undefined;
      const work = await this.#ask(report);
      if (work === null) return this.#options.onCompleted();
      if (work === undefined) return this.#isDraining ? undefined : this.#options.onFenced();
      last = work === "later" ? undefined : work;
      this.#isIdle = false;
      if (last?.work === "failure") {
        // If this fails, the readers of the folder time out.
        await this.#run(last);
        return this.#options.onCompleted();
      }
      report = last === undefined ? {} : await this.#do(last);
    }
  }

  /** Requests the next piece of work; `undefined` if this task must take none. */
  async #ask(report: SaveReport): Promise<SaveWork | "later" | null | undefined> {
    const { dispatcher, definition: { taskId }, dispatcherTimeoutMs } = this.#options;
    while (!this.#ended && !(this.#isDraining && Object.keys(report).length === 0)) {
      const request = { taskId, ...report, ...(this.#isDraining ? { isLast: true } : {}) };
      try {
        const { work } = await this.#context.ask(dispatcher, "getSaveWork", request, {
          timeoutMs: dispatcherTimeoutMs,
          attemptMs: ATTEMPT_MS,
          isIdempotent: true,
        });
        return work;
      } catch (error) {
        const { code, details } = LeatError.from(error);
        if (details?.["reason"] === TASK_ENDED) return undefined;
        if (code !== "deadline_exceeded" && code !== "unavailable") throw error;
      }
    }
    return undefined;
  }

  async #do(work: SaveWork): Promise<SaveReport> {
    const outcome = await this.#run(work);
    if (outcome.kind !== "element") {
      return outcome.kind === "error" ? { failed: outcome.error } : {};
    }
    let report: ReturnType<typeof reportOf>;
    try {
      report = reportOf(outcome.frame);
    } catch (error) {
      return { failed: LeatError.from(error).toWire() };
    }
    const { attempt, elements, sizeBytes, restBytes } = report;
    const { elements: before, sizeBytes: bytesBefore } = this.#written;
    this.#written = { elements: before + elements, sizeBytes: bytesBefore + sizeBytes };
    const amount = { elements, sizeBytes, ...definedFields({ attempt, restBytes }) };
    if (work.work === "run") return { done: { work: "run", place: work.first, ...amount } };
    if (work.work === "entry") return { done: { work: "entry", place: work.number, ...amount } };
    throw new LeatError("internal", `A task is not asked to ${work.work} a save`);
  }

  /**
   * Runs the work on a runner. If that dies, runs it again if the dispatcher permits another
   * runner.
   */
  async #run(work: SaveWork): Promise<RunnerOutcome> {
    for (;;) {
      const runner = this.#pipeline.runner ?? this.#pipeline.start();
      try {
        return await this.#pipeline.step(runner, work);
      } catch (error) {
        const failure = LeatError.from(error, "unavailable");
        if (!this.#pipeline.handleRunnerDeath(runner, failure)) return { kind: "end" };
        // Writing a failure is not tried again.
        const mayStart = work.work !== "failure" &&
          await this.#deaths.mayStartAfter(failure, work.work === "run" ? work.first : undefined);
        if (!mayStart) return { kind: "error", error: failure.toWire() };
      }
    }
  }

  #end(): void {
    this.#ended = true;
    this.#pipeline.retire();
    this.#over.resolve();
  }
}
