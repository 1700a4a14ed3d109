/** Requests of tasks for splits or save work. They wait until they can be answered. */
import { LeatError } from "../../../core/error.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { Settings } from "../config.ts";
import { bytesOfSplits } from "../held_bytes.ts";
import { existingTask } from "./iterations.ts";
import { listerDied } from "./runner_deaths.ts";
import { type Listing, SplitListings } from "./split_listings.ts";
import type { Mode, Subject } from "../modes/mode.ts";
import { checkSplitBytes, type Quotas } from "./quotas.ts";
import type { SaveAnswer, SaveRequest } from "../modes/save/saving.ts";
import { digestOfSplits } from "../../../data/sharding/split_table.ts";
import { assignSplit, type SplitAnswer, type SplitRequest } from "../modes/splits.ts";
import type { Iteration } from "../state/entities.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Transaction } from "../transaction.ts";
import type { Transactions } from "../transactions.ts";
import { WaitingRequests } from "./waiting_requests.ts";

/** Limit of the waiting requests per iteration. More are refused with `resource_exhausted`. */
const WAITING_MAX = 100_000;

export class TaskRequests {
  readonly #transactions: Transactions;
  readonly #state: DispatcherState;
  readonly #windowSplits: number;
  readonly #quotas: Quotas;
  readonly #waiting: WaitingRequests;
  readonly #listings: SplitListings;

  constructor(
    context: ActorContext,
    { windowSplits, quotas, runnerDeathsMax }: Settings,
    transactions: Transactions,
  ) {
    this.#transactions = transactions;
    this.#state = transactions.state;
    this.#windowSplits = windowSplits;
    this.#quotas = quotas;
    this.#waiting = new WaitingRequests(WAITING_MAX, () => context.world.nowMs());
    this.#listings = new SplitListings({
      context,
      state: transactions.state,
      unheard: transactions.unheard,
      durable: () => transactions.durable(),
      onListed: (iterationId, listing) => this.#listed(iterationId, listing),
      onDeath: (iterationId, worker, failure) =>
        transactions.runUnrequested((tx) =>
          listerDied(tx, { iterationId, worker, failure }, runnerDeathsMax)
        ),
    });
  }

  getSplit(request: SplitRequest, deadlineMs: number): SplitAnswer | Promise<SplitAnswer> {
    return this.#answerOrWait(
      request.taskId,
      deadlineMs,
      (mode, subject) => mode.isSplitReady(subject, request, this.#windowSplits),
      (tx) => assignSplit(tx, request, this.#windowSplits),
    );
  }

  getSaveWork(request: SaveRequest, deadlineMs: number): SaveAnswer | Promise<SaveAnswer> {
    return this.#answerOrWait(
      request.taskId,
      deadlineMs,
      (mode, subject) => mode.isWorkReady(subject, request),
      (tx) => {
        const [task, iteration] = existingTask(tx.state, request.taskId, "it saves nothing more");
        return tx.state.modeOf(iteration).assignWork(tx, { task, iteration }, request);
      },
    );
  }

  /**
   * Lists the iteration's splits if needed, and answers the waiting requests that can be answered
   * now.
   */
  settle(iterationId: number): void {
    this.list(iterationId);
    this.#waiting.settle(iterationId);
  }

  /** Lists the iteration's splits if its mode needs them and they are not listed. */
  list(iterationId: number): void {
    if (this.#lacksSplits(iterationId)) this.#listings.ensure(iterationId);
  }

  /** A worker has registered: a listing may have waited for one. */
  workerRegistered(name: string): void {
    // If the worker has restarted, it does not answer earlier requests.
    this.#listings.workerLost(name);
    for (const { iterationId } of this.#state.iterationsFor(this.#state.workers.get(name)!)) {
      this.list(iterationId);
    }
  }

  workerLost(name: string): void {
    this.#listings.workerLost(name);
  }

  /** Rejects requests whose deadline has passed. */
  expire(): void {
    this.#waiting.expire();
  }

  /** Rejects all waiting requests. */
  rejectAll(error: LeatError): void {
    this.#waiting.rejectAll(error);
  }

  /** Answers a request if that is possible; otherwise it waits, and the splits get listed. */
  #answerOrWait<A>(
    taskId: number,
    deadlineMs: number,
    isReady: (mode: Mode, subject: Subject) => boolean,
    decide: (tx: Transaction) => A,
  ): A | Promise<A> {
    const isAnswerable = () => {
      const state = this.#state;
      const iteration = state.iterations.get(state.tasks.get(taskId)?.iterationId ?? -1);
      return iteration === undefined || isReady(state.modeOf(iteration), { state, iteration });
    };
    const iterationId = this.#transactions.look(({ tasks }) =>
      isAnswerable() ? undefined : tasks.get(taskId)?.iterationId
    );
    if (iterationId === undefined) return this.#transactions.run(decide);
    const answer = this.#waiting.wait(iterationId, {
      deadlineMs,
      isAnswerable,
      answer: () => this.#transactions.run(decide),
    });
    this.#listings.ensure(iterationId);
    return answer;
  }

  /** Whether the iteration's splits must be listed before its tasks can continue. */
  #lacksSplits(iterationId: number): boolean {
    const iteration = this.#state.iterations.get(iterationId);
    return iteration?.splits === null && iteration.error === null &&
      this.#state.modeOf(iteration).needsSplits;
  }

  #listed(iterationId: number, listing: Listing): void {
    this.#transactions.runUnrequested((tx) => {
      const iteration = tx.state.iterations.get(iterationId);
      if (iteration === undefined) return;
      // It may have failed meanwhile. Then the splits are not needed, but a save has still begun.
      const isWanted = iteration.error === null;
      const result = isWanted ? this.#withinQuotas(iteration, listing) : listing;
      if ("bounds" in result) {
        const { bounds, begun } = result;
        if (isWanted) {
          tx.append({ type: "splits_listed", iterationId, bounds, digest: digestOfSplits(bounds) });
        }
        begun?.(tx);
      } else if (isWanted) {
        tx.append({ type: "iteration_failed", iterationId, error: result.error.toWire() });
      }
    });
  }

  /** The listing, or the error if its table of splits exceeds a quota. */
  #withinQuotas({ jobId }: Iteration, listing: Listing): Listing {
    if ("error" in listing) return listing;
    const { owner } = this.#state.jobs.get(jobId)!;
    try {
      checkSplitBytes(this.#state, owner, bytesOfSplits(listing.bounds), this.#quotas);
      return listing;
    } catch (error) {
      return { error: LeatError.from(error) };
    }
  }
}
