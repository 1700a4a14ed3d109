/**
 * A save by all workers (`distributedSave`): they write runs of splits to files of a folder. Its clients
 * read nothing: they are told how far it is.
 *
 * @module
 */
import { LeatError, type WireError } from "../../../core/error.ts";
import { ShardingPolicy } from "../../../data/sharding_policy.ts";
import type {
  Client,
  Dataset,
  Iteration,
  Job,
  SaveEnd,
  Task,
  TaskOfIteration,
} from "../entities.ts";
import type { AskWorker, Listing, ListingFailure } from "../listing.ts";
import {
  assignSaveWork,
  beginFailure,
  cancelSave,
  failureOf,
  hasSaveWork,
  isSaveOver,
  type SaveAnswer,
  saveOwner,
  type SaveRequest,
  savingNews,
} from "../saving.ts";
import { loseWork } from "../saving_state.ts";
import { packSplits } from "../split_table.ts";
import type { DispatcherState } from "../state.ts";
import type { Turn } from "../turn.ts";
import { checkOrder, checkPiece, eachElementOnce } from "./deterministic.ts";
import {
  type Admission,
  type Beginning,
  type ClientNews,
  invalid,
  type IterationDescription,
  type JoinFacts,
  Mode,
  type OpenRequest,
} from "./mode.ts";

/** See the module. */
export class SaveMode extends Mode {
  override readonly needsSplits = true;
  override readonly endsFailedTasks = false;

  override check({ jobName, parameters }: OpenRequest, { cardinality }: JoinFacts): void {
    const { processingMode, numConsumers, sharing } = parameters;
    if (processingMode !== ShardingPolicy.DETERMINISTIC) {
      throw invalid(`A save goes with processingMode DETERMINISTIC, not ${processingMode}`);
    }
    if (jobName === undefined) {
      throw invalid("A save needs a jobName: all that save there give the same");
    }
    if (cardinality === -1) {
      throw invalid("distributedSave: an endless dataset cannot be saved; take(n) of it");
    }
    if (sharing || numConsumers !== undefined) throw eachElementOnce();
    checkOrder(parameters);
  }

  override disagreement({ parameters }: Job, has: string, asked: string): LeatError {
    return new LeatError(
      "failed_precondition",
      `${parameters.save?.folder} is being saved to with another dataset or other options: it is ` +
        `${has}; asked for was ${asked}. Wait until that is done, or save to another folder`,
    );
  }

  /** One that is over is no matter of those who come next: they look at the folder again. */
  override isOver(iteration: Iteration): boolean {
    return isSaveOver(iteration);
  }

  override admit(): Admission {
    return { replaced: [], client: {} };
  }

  override beginning({ parameters }: OpenRequest): Beginning {
    return { seed: parameters.ordered!.seed };
  }

  override async list(
    ask: AskWorker,
    dataset: Dataset,
    state: DispatcherState,
    iteration: Iteration,
  ): Promise<Listing> {
    const { save, ordered } = state.jobs.get(iteration.jobId)!.parameters;
    const owner = saveOwner(state, iteration);
    const { table, upTo, runs, ...begun } = await ask("beginSave", {
      dataset,
      save: save!,
      seed: ordered!.seed,
      owner,
    });
    return {
      bounds: packSplits(table),
      begun: {
        type: "save_begun",
        iterationId: iteration.iterationId,
        ...begun,
        entered: upTo,
        written: runs,
      },
    };
  }

  /** Another worker tries only where nothing was heard of what came of it. */
  override listingFailed(
    { failure, isOfWorker, worker }: ListingFailure,
    state: DispatcherState,
    iteration: Iteration,
  ): LeatError | undefined {
    const isUnheard = isOfWorker && failure.code !== "resource_exhausted";
    return isUnheard ? undefined : beginFailure({ state }, iteration, worker, failure);
  }

  override isWorkReady(
    state: DispatcherState,
    iteration: Iteration,
    request: SaveRequest,
  ): boolean {
    return hasSaveWork(state, iteration, request);
  }

  override assignWork(turn: Turn, of: TaskOfIteration, request: SaveRequest): SaveAnswer {
    return assignSaveWork(turn, of, request);
  }

  override newsFor(state: DispatcherState, { iterationId }: Client): Partial<ClientNews> {
    return savingNews(state.iterations.get(iterationId)!);
  }

  override cancel(turn: Turn, iteration: Iteration, client: Client): void {
    cancelSave(turn, iteration, client);
  }

  /** Nobody need wait for a save. */
  override whenUnread(iteration: Iteration): "waits" | "goes on" {
    return isSaveOver(iteration) ? "waits" : "goes on";
  }

  override describe(_state: DispatcherState, iteration: Iteration): Partial<IterationDescription> {
    return savingNews(iteration);
  }

  override handedOut({ saving }: Iteration): number | undefined {
    return saving?.next;
  }

  /** It is finished with its last entry, whatever its tasks are at. */
  override isDone(): boolean {
    return false;
  }

  override pieceOf(
    _state: DispatcherState,
    { taskId }: Task,
    iteration: Iteration,
    place: number | undefined,
  ): number | null {
    return place === undefined ? null : checkPiece(taskId, iteration, place);
  }

  override failure(
    state: DispatcherState,
    iteration: Iteration,
    worker: string,
    error: WireError,
  ): WireError {
    return failureOf({ state }, iteration, worker, error);
  }

  override endOf(iteration: Iteration): SaveEnd | undefined {
    return isSaveOver(iteration) ? { error: iteration.error } : undefined;
  }

  override taskEnded({ saving }: Iteration, { taskId }: Task): void {
    if (saving !== null) loseWork(saving, taskId);
  }
}
