/** A task's pipeline: its current runner, its compression, and the totals of all its runners. */
import type { LeatError } from "../../../core/error.ts";
import { isCompressed } from "../../../transport/compression.ts";
import { Payload } from "../../../transport/payload.ts";
import type { TaskDefinition } from "../../dispatcher/protocol.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import { Compressor } from "./compressor.ts";
import type { BandwidthFigures, ElementAnswer, TaskStats } from "../protocol.ts";
import type {
  OwnStep,
  Runner,
  RunnerFactory,
  RunnerOutcome,
  RunnerSettings,
  RunnerSplits,
} from "../runner/runner.ts";
import { TaskMeter } from "./task_meter.ts";

export interface TaskPipelineOptions {
  readonly context: ActorContext;
  readonly definition: TaskDefinition;
  readonly runners: RunnerFactory;
  /** The settings of its runners that depend on the kind of task. */
  readonly settings: Omit<RunnerSettings, "graph" | "name" | "seed" | "forTask">;
  /**
   * Makes the splits for a runner.
   * @param isCurrent Whether it is still the task's runner.
   */
  readonly splits: (isCurrent: () => boolean) => RunnerSplits;
}

export class TaskPipeline {
  readonly #options: TaskPipelineOptions;
  readonly #meter: TaskMeter;
  readonly #compressor: Compressor;
  readonly #recycle = (buffer: ArrayBuffer): void => this.#runner?.recycle?.(buffer);
  /** Resolves when somebody waits for an element. A task starts before that. */
  readonly #asked = Promise.withResolvers<void>();
  #runner: Runner | undefined;
  /** Bytes of the elements produced, before compression. */
  #producedBytes = 0;

  constructor(options: TaskPipelineOptions) {
    const { context, definition: { dataset, parameters } } = options;
    this.#options = options;
    this.#meter = new TaskMeter(() => context.world.nowMs());
    // A save sends no elements.
    this.#compressor = new Compressor(parameters.save === undefined ? dataset.compression : "none");
  }

  /** An element to send. Its runner uses the memory again, but compressed elements differ in size. */
  payloadOf(frame: Uint8Array): Payload {
    const recycle = isCompressed(frame) ? undefined : this.#recycle;
    return new Payload(frame, { isAlone: true, recycle });
  }

  /** The current runner of the task. Results of an earlier one are ignored. */
  get runner(): Runner | undefined {
    return this.#runner;
  }

  /** Begins the pipeline on a new runner. */
  start(): Runner {
    const { definition, runners, settings, splits } = this.#options;
    const { clusterId, taskId, jobId, owner, dataset, seed } = definition;
    const name = `task ${taskId} of job ${jobId} (dataset ${dataset.datasetId})`;
    const runner: Runner = this.#meter.watch(
      runners.start(
        { graph: dataset.graph, name, seed, forTask: { clusterId, taskId }, ...settings },
        splits(() => runner === this.#runner),
        { owner, asked: this.#asked.promise },
      ),
    );
    return this.#runner = runner;
  }

  /** Notes that somebody waits for an element: a runner that is not started yet starts earlier. */
  noteAsked(): void {
    this.#asked.resolve();
  }

  /** @throws LeatError see {@linkcode Runner.next}. */
  async step(runner: Runner, ownStep?: OwnStep): Promise<RunnerOutcome> {
    const wish = this.#compressor.takeWish();
    const outcome = await runner.next(ownStep, wish);
    if ("frame" in outcome && runner === this.#runner) {
      this.#producedBytes += this.#compressor.noteArrival(outcome.frame, outcome.trial, wish);
    }
    return outcome;
  }

  /** Drops a runner that died. Returns false if it was no longer the task's runner. */
  handleRunnerDeath(runner: Runner, error: LeatError): boolean {
    if (runner !== this.#runner) return false;
    this.retire();
    const { context, definition: { taskId } } = this.#options;
    context.world.log("error", `The runner of task ${taskId} died`, { error: error.message });
    return true;
  }

  /** Disposes the runner, which is no longer needed. */
  retire(): void {
    this.#runner?.dispose();
    this.#runner = undefined;
  }

  /** Notes what a client gets. */
  handOut(answer: ElementAnswer): void {
    this.#meter.handOut(answer);
  }

  /** Handles a client's report of how it reads, if there is one. */
  noteBandwidth(figures: BandwidthFigures | undefined): void {
    if (figures === undefined) return;
    this.#compressor.noteReport(figures, {
      busyMs: this.#meter.busyMs,
      bytes: this.#producedBytes,
    });
  }

  /** @param held What the task itself counts. */
  stats(held: Pick<TaskStats, "produced" | "bufferedBytes" | "waiting">): TaskStats {
    return { ...held, ...this.#meter.figures, compression: this.#compressor.figures };
  }
}
