/** A save by all workers (`distributedSave`). Its clients get only its progress. */
import { LeatError, type WireError } from "../../../../core/error.ts";
import { countText } from "../../../../data/amounts.ts";
import { ShardingPolicy } from "../../../../data/sharding/sharding_policy.ts";
import type { Dataset, Iteration, Job, Task, TaskOfIteration } from "../../state/entities.ts";
import { endTasksOf, parametersOf } from "../../jobs/iterations.ts";
import type { AskWorker, Listing, ListingFailure } from "../../jobs/split_listings.ts";
import { serveAllClients } from "../../jobs/targets.ts";
import type { SaveNews } from "../../protocol_heartbeats.ts";
import {
  assignSaveWork,
  hasSaveWork,
  isEndToWrite,
  SAVE_CANCELLED,
  type SaveAnswer,
  saveOwner,
  type SaveRequest,
} from "./saving.ts";
import { namedBySaveFolder } from "./save_folder.ts";
import { isSaveOver, loseWork, type SaveRun, type Saving } from "./saving_state.ts";
import { splitCount } from "../../../../data/sharding/split_table.ts";
import type { Transaction } from "../../transaction.ts";
import { checkOrder, checkPiece, eachElementOnce } from "../deterministic/deterministic.ts";
import {
  invalid,
  type IterationDescription,
  type IterationStart,
  type JoinDecision,
  type JoinFacts,
  Mode,
  type OpenRequest,
  type Subject,
} from "../mode.ts";

export class SaveMode extends Mode {
  override readonly needsSplits = true;
  override readonly preparation = "begin the save";
  override readonly endsFailedTasks = false;

  override withName(request: OpenRequest): OpenRequest {
    return namedBySaveFolder(request);
  }

  override check({ parameters }: OpenRequest, { cardinality }: JoinFacts): void {
    const { processingMode, numConsumers, sharing } = parameters;
    if (processingMode !== ShardingPolicy.DETERMINISTIC) {
      throw invalid(`A save goes with processingMode DETERMINISTIC, not ${processingMode}`);
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
      `Another save to ${parameters.save?.folder} is running, with other parameters: it has ${has}; ` +
        `this client asks for ${asked}. Wait until that save is done, or save to another folder`,
    );
  }

  /** The next save lists the folder again. */
  override isOver(iteration: Iteration): boolean {
    return isSaveOver(iteration);
  }

  override admit(): JoinDecision {
    return { replaced: [], client: {} };
  }

  override initialFields({ parameters }: OpenRequest): IterationStart {
    return { seed: parameters.ordered!.seed };
  }

  override async list(
    { state, iteration }: Subject,
    ask: AskWorker,
    dataset: Dataset,
  ): Promise<Listing> {
    const { iterationId } = iteration;
    const { save, ordered } = parametersOf(state, iteration);
    const { owner } = state.jobs.get(iteration.jobId)!;
    const saveName = saveOwner(state, iteration);
    const request = { dataset, save: save!, seed: ordered!.seed, owner, saveName };
    // Only these fields: a worker must not add others to the record.
    const { bounds, upTo, runs, id, entries, elements, sizeBytes } = await ask(
      "beginSave",
      request,
    );
    checkRuns(runs, { from: upTo, total: splitCount(bounds, 0) });
    const written = runs.map(({ first, count, attempt }) => ({ first, count, attempt }));
    const start = { id, entered: upTo, entries, written, elements, sizeBytes };
    const begun = (tx: Transaction) => {
      tx.append({ type: "save_begun", iterationId, ...start });
      if (isSaveOver(iteration)) serveAllClients(tx, iteration);
    };
    return { bounds, begun };
  }

  /** Retries only if the worker failed: every worker would find the same in the folder. */
  override listingFailed(
    subject: Subject,
    { failure, isOfWorker, worker }: ListingFailure,
  ): LeatError | undefined {
    const { code } = failure;
    if (isOfWorker && code !== "resource_exhausted") return undefined;
    if (code === "already_exists" || code === "failed_precondition") return failure;
    return LeatError.fromWire(this.failure(subject, worker, failure.toWire()));
  }

  override isWorkReady({ state, iteration }: Subject, request: SaveRequest): boolean {
    return hasSaveWork(state, iteration, request);
  }

  override assignWork(tx: Transaction, task: TaskOfIteration, request: SaveRequest): SaveAnswer {
    return assignSaveWork(tx, task, request);
  }

  override newsFor({ iteration }: Subject): SaveNews | undefined {
    const { saving, splits } = iteration;
    if (saving === null || splits === null) return undefined;
    const { splits: splitsDone, elements, sizeBytes } = saving;
    const splitsTotal = splitCount(splits.bounds, 0);
    return { kind: "save", progress: { splitsDone, splitsTotal, elements, sizeBytes } };
  }

  /** Once a save is over, only the end of a cancelled one is left to write. */
  override hasWorkFor({ iteration }: Subject): boolean {
    return !isSaveOver(iteration) || isEndToWrite(iteration);
  }

  /**
   * Ends the tasks, and gives the other clients an error. New tasks write the error into the folder,
   * because the old ones may hang in a function. Each worker gets one, as any may die or drain; if
   * the save is only beginning, they get it then. Written files stay, and the job is remembered as if
   * the save had failed: until then no other identity may replace them.
   */
  override cancel(tx: Transaction, iteration: Iteration): void {
    if (isSaveOver(iteration)) return;
    const { iterationId } = iteration;
    const { save } = parametersOf(tx.state, iteration);
    const error = {
      code: "aborted" as const,
      message:
        `distributedSave: saving to ${save?.folder} was ended by a client. Call it again to continue.`,
      details: { reason: SAVE_CANCELLED },
    };
    tx.append({ type: "iteration_failed", iterationId, error });
    endTasksOf(tx, iteration, "cancelled");
    // Other workers would lose their tasks with the client that leaves.
    serveAllClients(tx, iteration);
  }

  /** A save continues without clients. */
  override whenUnread(iteration: Iteration): "waits" | "continues" {
    return isSaveOver(iteration) ? "waits" : "continues";
  }

  override progress(subject: Subject): string | null {
    if (this.whenUnread(subject.iteration) === "waits") return null;
    const news = this.newsFor(subject);
    if (news === undefined) return "The save is beginning.";
    const { splitsDone, splitsTotal } = news.progress;
    return `The workers have saved ${splitsDone} of ${countText(splitsTotal, "split")}.`;
  }

  override describe(subject: Subject): Partial<IterationDescription> {
    const news = this.newsFor(subject);
    return news === undefined ? {} : { saving: news.progress };
  }

  override assignedCount({ saving }: Iteration): number | undefined {
    return saving?.next;
  }

  /** Completed tasks do not finish a save: its last entry does, even while tasks run. */
  override isDone(): boolean {
    return false;
  }

  override pieceOf(
    { iteration }: Subject,
    { taskId }: Task,
    place: number | undefined,
  ): number | null {
    if (place === undefined) return null;
    const piece = checkPiece(taskId, iteration, place);
    // A task can name any split. Those at which it writes no run count together as one piece.
    const isAt = (run: Saving["assigned"][number]) => run.first === piece && run.taskId === taskId;
    return iteration.saving?.assigned.some(isAt) ? piece : null;
  }

  /** Names the worker and its failure, and how to resume. */
  override failure(
    { state, iteration }: Subject,
    worker: string,
    { code, message }: WireError,
  ): WireError {
    const { save } = parametersOf(state, iteration);
    return {
      code,
      message:
        `Worker "${worker}" could not save to ${save?.folder}: ${message.replace(/\.?$/, ".")} ` +
        `What was written stays; call distributedSave() again to continue.`,
    };
  }

  override taskEnded({ saving }: Iteration, { taskId }: Task): void {
    if (saving !== null) loseWork(saving, taskId);
  }
}

/**
 * Checks the runs that a folder lists: other programs, or user functions, may have written the
 * list.
 * @throws {LeatError} `data_loss`
 */
function checkRuns(
  runs: readonly SaveRun[],
  { from, total }: { from: number; total: number },
): void {
  let next = from;
  for (const { first, count } of runs) next = first < next || count < 1 ? Infinity : first + count;
  if (next <= total) return;
  throw new LeatError(
    "data_loss",
    `The folder lists runs that are not in the ${total} splits of the dataset; save with ` +
      "{ overwrite: true }",
  );
}
