/** What follows from a transaction's records: hints to clients and workers, reviews, clean-up. */
import type { ActorContext } from "../runtime/actor.ts";
import type { ClientHints } from "./members/client_hints.ts";
import type { MemberLinks } from "./liveness/member_links.ts";
import type { Consumers } from "./modes/consumers.ts";
import type { Figures } from "./report/figures.ts";
import { effectOf } from "./modes/mode_records.ts";
import type { ReachabilityProbe } from "./liveness/reachability_probe.ts";
import type { JournalRecord, RecordOf } from "./journal/records.ts";
import type { Liveness } from "./liveness/liveness.ts";
import type { DispatcherState } from "./state/state.ts";
import { workersText } from "./modes/listed_workers.ts";
import type { TaskLists } from "./jobs/task_lists.ts";
import type { TaskRequests } from "./jobs/task_requests.ts";
import type { Transaction } from "./transaction.ts";
import type { Transactions } from "./transactions.ts";

/** The parts of the dispatcher that keep soft state and react to changes. */
export interface Parts {
  readonly context: ActorContext;
  readonly transactions: Transactions;
  readonly consumers: Consumers;
  readonly taskLists: TaskLists;
  readonly figures: Figures;
  readonly reachability: ReachabilityProbe;
  readonly clientLinks: MemberLinks<number>;
  readonly workerLinks: MemberLinks<string>;
  readonly hints: ClientHints;
  readonly taskRequests: TaskRequests;
  readonly liveness: Liveness;
}

export class Effects {
  readonly #parts: Parts;
  readonly #state: DispatcherState;
  readonly #listedWorkers: readonly string[];
  /**
   * For the end of the transaction: workers to wake, iterations to review, and iterations whose
   * waiting requests to try again (settle).
   */
  readonly #toWake = new Set<string>();
  readonly #toReview = new Set<number>();
  readonly #toSettle = new Set<number>();

  constructor(parts: Parts, listedWorkers: readonly string[]) {
    this.#parts = parts;
    this.#state = parts.transactions.state;
    this.#listedWorkers = listedWorkers;
  }

  /** Effects that need the state before the record. */
  before(record: JournalRecord): void {
    const { consumers, taskLists, figures, clientLinks, hints, liveness } = this.#parts;
    if (record.type === "task_ended") {
      const task = this.#state.tasks.get(record.taskId);
      if (task === undefined) return;
      this.#toWake.add(task.worker);
      this.#toReview.add(task.iterationId);
      this.#toSettle.add(task.iterationId);
      this.#taskChanged(task.iterationId, task.taskId);
    } else if (record.type === "iteration_collected") {
      const { iterationId } = record;
      for (const { worker } of this.#state.tasksOfIteration(iterationId)) this.#toWake.add(worker);
      liveness.iterationGone(iterationId);
      taskLists.forget(iterationId);
      consumers.clearPassed(iterationId);
      this.#toSettle.add(iterationId);
    } else if (record.type === "client_released") {
      const { clientId } = record;
      const iterationId = this.#state.clients.get(clientId)?.iterationId;
      liveness.clientGone(clientId);
      figures.clientGone(clientId);
      consumers.forget(clientId);
      hints.forget(clientId);
      clientLinks.forget(clientId);
      if (iterationId === undefined) return;
      this.#toReview.add(iterationId);
      this.#noteOthers(iterationId, record);
      // Consumers may have been waiting for this client.
      hints.changed(iterationId);
      if (this.#state.clientsOfIteration(iterationId).size === 1) liveness.idle(iterationId);
    }
  }

  /** Effects that need the state after the record. */
  after(record: JournalRecord): void {
    const { figures, reachability, hints, taskRequests, liveness, workerLinks } = this.#parts;
    switch (record.type) {
      case "task_created":
        this.#toWake.add(record.worker);
        return;
      case "task_ready":
      case "task_completed": {
        const { iterationId } = this.#state.tasks.get(record.taskId)!;
        this.#toReview.add(iterationId);
        // No request for a split waits for a task to become readable.
        if (record.type === "task_ready") this.#taskChanged(iterationId, record.taskId);
        else this.#toSettle.add(iterationId);
        return;
      }
      case "client_opened":
        liveness.clientHeard(record.clientId);
        liveness.opened(this.#state, record);
        this.#toReview.add(record.iterationId);
        this.#toSettle.add(record.iterationId);
        this.#noteOthers(record.iterationId);
        return;
      case "iteration_failed":
        this.#noteFailure(record);
        hints.changed(record.iterationId);
        this.#toSettle.add(record.iterationId);
        return;
      case "splits_listed":
        hints.changed(record.iterationId);
        this.#toSettle.add(record.iterationId);
        return;
      case "iteration_finished":
        hints.changed(record.iterationId);
        return;
      case "iteration_created":
        this.#toSettle.add(record.iterationId);
        return;
      case "worker_registered":
        this.#noteUnlisted(record.name);
        taskRequests.workerRegistered(record.name);
        return;
      case "worker_lost":
        liveness.workerLost(record.name);
        workerLinks.forget(record.name);
        reachability.forget(record.name);
        figures.workerLost(record.name);
        taskRequests.workerLost(record.name);
        return;
      default:
        this.#afterMode(record);
    }
  }

  #afterMode(record: JournalRecord): void {
    const effect = effectOf(record);
    if (effect === undefined || effect === "nothing") return;
    const iterationId = "iterationId" in record
      ? record.iterationId
      : "taskId" in record
      ? this.#state.tasks.get(record.taskId)?.iterationId
      : undefined;
    if (iterationId === undefined) return;
    if (effect === "hint clients") this.#parts.hints.changed(iterationId);
    else this.#toSettle.add(iterationId);
  }

  /** Ends a transaction: reviews iterations, answers waiting requests, and wakes workers. */
  conclude(tx: Transaction): void {
    if (this.#toReview.size + this.#toSettle.size + this.#toWake.size === 0) return;
    const { consumers, taskRequests } = this.#parts;
    for (const iterationId of this.#toReview) {
      const iteration = this.#state.iterations.get(iterationId);
      if (iteration !== undefined) {
        this.#state.modeOf(iteration).review(tx, iteration, consumers);
      }
    }
    this.#toReview.clear();
    for (const iterationId of this.#toSettle) {
      this.#toSettle.delete(iterationId);
      taskRequests.settle(iterationId);
    }
    for (const name of this.#toWake) this.wake(name);
    this.#toWake.clear();
  }

  /** Asks a worker for a heartbeat, once all changes so far are durable. */
  wake(name: string): void {
    const { context, transactions } = this.#parts;
    const worker = this.#state.workers.get(name);
    if (worker?.alive) transactions.whenDurable(() => context.tell(worker.ref, "wake", null));
  }

  /** A heartbeat of this worker is being answered, so the worker need not be woken. */
  answered(name: string): void {
    this.#toWake.delete(name);
  }

  #taskChanged(iterationId: number, taskId: number): void {
    const { taskLists, hints } = this.#parts;
    taskLists.changed(iterationId, taskId, this.#state.tasksOfIteration(iterationId).size);
    hints.changed(iterationId);
  }

  /** In some modes, other iterations wait for the client that joins or leaves this one. */
  #noteOthers(iterationId: number, released?: RecordOf<"client_released">): void {
    const state = this.#state;
    const iteration = state.iterations.get(iterationId)!;
    for (const other of state.modeOf(iteration).othersWaiting({ state, iteration }, released)) {
      this.#toSettle.add(other.iterationId);
      this.#parts.hints.changed(other.iterationId);
    }
  }

  #noteFailure({ iterationId, error }: RecordOf<"iteration_failed">): void {
    const { jobId, repetition } = this.#state.iterations.get(iterationId)!;
    const name = this.#state.jobs.get(jobId)?.name ?? `${jobId} of one client`;
    this.#parts.context.world.log(
      "error",
      `Job "${name}" cannot continue repetition ${repetition}: ${error.message}`,
    );
  }

  #noteUnlisted(worker: string): void {
    const listed = this.#listedWorkers;
    if (listed.length === 0 || listed.includes(worker)) return;
    this.#parts.context.world.log(
      "info",
      `Worker "${worker}" is not among the listed workers (${
        workersText(listed)
      }): jobs of static ` +
        `policies (FILE, DATA, …) give it nothing to do`,
    );
  }
}
