/**
 * What the mode of a job decides: which requests to join it are served, who is given which work, when
 * an iteration is done, and what its clients and people are told. The rest of the dispatcher asks the mode
 * of a job, and never which one that is.
 *
 * A mode keeps nothing itself. What it has to remember is in the state, which records alone change.
 * docs/adding-a-mode.md says what a new mode needs.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import type { Shard } from "../../../data/sharding_policy.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import type { Iteration, Task } from "../entities.ts";
import type { DispatcherDescription, DispatcherProtocol } from "../protocol.ts";
import type { TaskDescription } from "../protocol_figures.ts";
import type { DispatcherState } from "../state.ts";

/** A request to join an iteration. */
export type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** What is known when a request to join is checked. */
export interface JoinFacts {
  /** The dispatcher's list of workers, by name; empty: it has none. */
  readonly listedWorkers: readonly string[];
}

/** What people are told of an iteration. */
export type IterationDescription = DispatcherDescription["jobs"][number]["iterations"][number];

/** See the module. What a mode does not override is what most modes do. */
export abstract class Mode {
  /** Whether only the dispatcher's list of workers serves its jobs, each worker with a share of its own. */
  readonly hasFixedWorkers: boolean = false;

  /** Whether a job of it says by a policy of its own which share is whose. */
  readonly takesPolicy: boolean = false;

  /** @throws {LeatError} for a request to join that the mode does not serve. */
  check({ parameters: { policy } }: OpenRequest, _facts: JoinFacts): void {
    if ((policy !== undefined) === this.takesPolicy) return;
    throw invalid("A policy goes with processingMode CUSTOM, and with no other");
  }

  /** Whether there is something in the iteration for the worker to produce. */
  hasWorkFor(_state: DispatcherState, _iteration: Iteration, _worker: string): boolean {
    return true;
  }

  /** The worker's share of the iteration; undefined where workers have none of their own. */
  shardOf(_state: DispatcherState, _iteration: Iteration, _worker: string): Shard | undefined {
    return undefined;
  }

  /** Whether nothing more will come of the iteration. */
  isDone(state: DispatcherState, { iterationId, anyCompleted }: Iteration): boolean {
    return anyCompleted && state.tasksToComplete(iterationId) === 0;
  }

  /**
   * The piece of the iteration that a task's runner ran when it died: deaths are counted by piece. Null:
   * the pipeline as a whole.
   */
  pieceOf(state: DispatcherState, { worker }: Task, iteration: Iteration): number | null {
    return this.shardOf(state, iteration, worker)?.index ?? null;
  }

  /** Such a piece in words, as the beginning of `… "name of the job" was ended`. */
  namePiece(_piece: number | null): string {
    return "Job";
  }

  /** Why it gives a worker nothing, as a sentence; undefined where it does not leave that worker out. */
  whyNothingFor(
    _state: DispatcherState,
    _iteration: Iteration,
    _worker: string,
  ): string | undefined {
    return undefined;
  }

  /** Records change the state: a task has produced everything. */
  taskCompleted(_iteration: Iteration, _task: Task, _workers: readonly string[] | null): void {}

  /** What the description of the iteration has beside what all have. */
  describe(
    _state: DispatcherState,
    _iteration: Iteration,
    _tasks: readonly TaskDescription[],
  ): Partial<IterationDescription> {
    return {};
  }
}

/** The error for a request that means nothing in its mode. */
export function invalid(message: string): LeatError {
  return new LeatError("invalid_argument", message);
}
