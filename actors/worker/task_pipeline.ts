/**
 * A task's pipeline: the runner that it has now, how that is to compress what it makes, and what all its
 * runners have done.
 *
 * @module
 */
import type { LeatError } from "../../core/error.ts";
import type { TaskDefinition } from "../dispatcher/protocol.ts";
import type { ActorContext } from "../runtime/actor.ts";
import { Compressor } from "./compressor.ts";
import type { ElementAnswer, TaskStats, WayFigures } from "./protocol.ts";
import type {
  OwnStep,
  Runner,
  RunnerFactory,
  RunnerOutcome,
  RunnerSettings,
  RunnerSplits,
} from "./runner.ts";
import { TaskMeter } from "./task_meter.ts";

/** What {@linkcode TaskPipeline} needs. */
export interface TaskPipelineOptions {
  readonly context: ActorContext;
  readonly definition: TaskDefinition;
  readonly runners: RunnerFactory;
  /** What its runners are told beside what every task's are. */
  readonly settings: Omit<RunnerSettings, "graph" | "name" | "seed">;
  readonly splits: RunnerSplits;
}

export class TaskPipeline {
  readonly #options: TaskPipelineOptions;
  readonly #meter: TaskMeter;
  readonly #compressor: Compressor;
  #runner: Runner | undefined;
  /** Before they were compressed. */
  #producedBytes = 0;

  constructor(options: TaskPipelineOptions) {
    const { context, definition: { dataset, parameters } } = options;
    this.#options = options;
    this.#meter = new TaskMeter(() => context.world.nowMs());
    // A save sends no elements.
    this.#compressor = new Compressor(parameters.save === undefined ? dataset.compression : "none");
  }

  /** The runner that works for the task now: what comes of another counts no more. */
  get runner(): Runner | undefined {
    return this.#runner;
  }

  /** Begins the pipeline on a runner of its own. */
  start(): Runner {
    const { definition, runners, settings, splits } = this.#options;
    const { taskId, jobId, dataset, seed } = definition;
    const name = `task ${taskId} of job ${jobId} (dataset ${dataset.datasetId})`;
    const runner = runners.start({ graph: dataset.graph, name, seed, ...settings }, splits);
    return this.#runner = this.#meter.watch(runner);
  }

  /** @throws LeatError see {@linkcode Runner.next}. */
  async step(runner: Runner, only?: OwnStep): Promise<RunnerOutcome> {
    const outcome = await runner.next(only, this.#compressor.wish);
    if ("frame" in outcome && runner === this.#runner) {
      this.#producedBytes += this.#compressor.came(outcome.frame, outcome.trial);
    }
    return outcome;
  }

  /** A runner has died, and with it its place in the data. False: it was the task's no more. */
  died(runner: Runner, error: LeatError): boolean {
    if (runner !== this.#runner) return false;
    this.retire();
    const { context, definition: { taskId } } = this.#options;
    context.world.log("error", `The runner of task ${taskId} died`, { error: error.message });
    return true;
  }

  /** Nothing more is wanted of the runner. */
  retire(): void {
    this.#runner?.dispose();
    this.#runner = undefined;
  }

  /** Notes what a client gets. */
  handOut(answer: ElementAnswer): void {
    this.#meter.handOut(answer);
  }

  /** A client has said how it reads, if it has. */
  heard(way: WayFigures | undefined): void {
    if (way === undefined) return;
    this.#compressor.heard(way, { busyMs: this.#meter.busyMs, bytes: this.#producedBytes });
  }

  /** @param held What the task itself knows. */
  stats(held: Pick<TaskStats, "produced" | "bufferedBytes" | "waiting">): TaskStats {
    const { served, servedBytes, bytesRead, busyMs, runnerRestarts } = this.#meter;
    return {
      role: "task",
      produced: held.produced,
      served,
      servedBytes,
      bufferedBytes: held.bufferedBytes,
      bytesRead,
      skipped: 0,
      waiting: held.waiting,
      busyMs,
      runnerRestarts,
      compression: this.#compressor.figures,
    };
  }
}
