/**
 * Timeouts of workers and clients, and of unused iterations and datasets. The times are not
 * journaled: after a restart, the timeouts of all workers and clients start again.
 */
import type { ActorContext } from "../../runtime/actor.ts";
import { iterationsInUse } from "./iterations_in_use.ts";
import type { MemberLinks } from "./member_links.ts";
import { endClient } from "../members/clients.ts";
import type { Settings } from "../config.ts";
import type { Consumers } from "../modes/consumers.ts";
import { unusedDatasets } from "../jobs/datasets.ts";
import { forgetIteration } from "../jobs/iterations.ts";
import type { TaskRequests } from "../jobs/task_requests.ts";
import type { RecordOf } from "../journal/records.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Transaction } from "../transaction.ts";
import type { Transactions } from "../transactions.ts";
import { loseWorker } from "../members/workers.ts";

/** How many checks the shortest timeout contains, within the limits of the interval below. */
const SWEEP_FRACTION = 4;
const SWEEP_MIN_MS = 10;
const SWEEP_MAX_MS = 5_000;
/** A client has at least this time, in ms, to open a job after it has registered a dataset. */
const DATASET_UNUSED_MIN_MS = 60_000;

interface LivenessOptions {
  readonly context: ActorContext;
  readonly settings: Settings;
  readonly transactions: Transactions;
  readonly clientLinks: MemberLinks<number>;
  readonly workerLinks: MemberLinks<string>;
  readonly consumers: Consumers;
  readonly taskRequests: TaskRequests;
}

/** Tracks heartbeats and ends what timed out. Times are monotonic. */
export class Liveness {
  readonly #options: LivenessOptions;
  readonly #workersHeardMs = new Map<string, number>();
  readonly #clientsHeardMs = new Map<number, number>();
  /** Since when iterations have not been in use. */
  readonly #idleSinceMs = new Map<number, number>();
  /** When a check first saw a transient dataset without jobs. */
  readonly #unusedSinceMs = new Map<string, number>();

  constructor(options: LivenessOptions) {
    this.#options = options;
  }

  /** Starts the timeouts of all live workers, clients and idle iterations in the journal. */
  begin({ state }: Transaction): void {
    for (const { name, alive } of state.workers.values()) if (alive) this.workerHeard(name);
    for (const clientId of state.clients.keys()) this.clientHeard(clientId);
    for (const iterationId of state.iterations.keys()) {
      if (state.clientsOfIteration(iterationId).size === 0) this.idle(iterationId);
    }
  }

  /** When each worker sent its last heartbeat. */
  get workersHeardMs(): ReadonlyMap<string, number> {
    return this.#workersHeardMs;
  }

  workerHeard(name: string): void {
    this.#workersHeardMs.set(name, this.#nowMs);
  }

  workerLost(name: string): void {
    this.#workersHeardMs.delete(name);
  }

  clientHeard(clientId: number): void {
    this.#clientsHeardMs.set(clientId, this.#nowMs);
  }

  clientGone(clientId: number): void {
    this.#clientsHeardMs.delete(clientId);
  }

  /** An iteration has lost its last client. */
  idle(iterationId: number): void {
    this.#idleSinceMs.getOrInsert(iterationId, this.#nowMs);
  }

  /**
   * An iteration has a new client. If a task of an idle iteration reads through it, the iteration is
   * as idle as that one: otherwise jobs that create each other would last for ever.
   */
  opened(state: DispatcherState, { iterationId, readBy }: RecordOf<"client_opened">): void {
    const sinceMs = readBy === undefined ? undefined : this.#idlenessOf(state, readBy);
    if (sinceMs === undefined) this.#idleSinceMs.delete(iterationId);
    else if (state.clientsOfIteration(iterationId).size === 1) {
      this.#idleSinceMs.getOrInsert(iterationId, sinceMs);
    }
  }

  iterationGone(iterationId: number): void {
    this.#idleSinceMs.delete(iterationId);
  }

  /** Restarts the dataset's timeout: the client that registers it is about to use it. */
  datasetRegistered(datasetId: string): void {
    this.#unusedSinceMs.delete(datasetId);
  }

  /** Starts the periodic checks. */
  watch(): void {
    const { context, settings, transactions } = this.#options;
    const { workerTimeoutMs, workerGraceMs, clientGraceMs, jobGcTimeoutMs } = settings;
    const timeouts = [
      Math.min(workerTimeoutMs, workerGraceMs),
      clientGraceMs,
      ...(jobGcTimeoutMs < 0 ? [] : [jobGcTimeoutMs]),
    ];
    const fractionMs = Math.min(...timeouts) / SWEEP_FRACTION;
    const delayMs = Math.max(SWEEP_MIN_MS, Math.min(SWEEP_MAX_MS, fractionMs));
    const dueMs = this.#nowMs + delayMs;
    context.timer(delayMs, () => {
      this.#forgive(this.#nowMs - dueMs);
      transactions.runUnrequested((tx) => this.#sweep(tx));
      this.watch();
    });
  }

  get #nowMs(): number {
    return this.#options.context.world.nowMs();
  }

  /**
   * Since when the iteration of a reading task is idle: for ever, if the task's client has just
   * replaced it.
   */
  #idlenessOf(state: DispatcherState, iterationId: number): number | undefined {
    return state.iterations.has(iterationId) ? this.#idleSinceMs.get(iterationId) : -Infinity;
  }

  /** Extends all timeouts by a pause of this thread, in which it could receive no heartbeat. */
  #forgive(lateMs: number): void {
    if (lateMs <= 0) return;
    const nowMs = this.#nowMs;
    const { clientLinks, workerLinks } = this.#options;
    const since: Map<unknown, number>[] = [
      this.#workersHeardMs,
      this.#clientsHeardMs,
      clientLinks.closedAtMs,
      workerLinks.closedAtMs,
    ];
    for (const times of since) {
      for (const [who, ms] of times) times.set(who, Math.min(nowMs, ms + lateMs));
    }
  }

  /** Ends what timed out. */
  #sweep(tx: Transaction): void {
    const { settings, clientLinks, consumers, taskRequests } = this.#options;
    const { workerTimeoutMs, clientTimeoutMs, clientGraceMs, jobGcTimeoutMs } = settings;
    const { nowMs, state } = tx;
    taskRequests.expire();
    for (const [name, heardMs] of this.#workersHeardMs) {
      if (nowMs - heardMs >= workerTimeoutMs && state.workers.get(name)?.alive) {
        loseWorker(tx, name);
      }
    }
    this.#sweepClosedWorkers(tx);
    for (const [clientId, heardMs] of this.#clientsHeardMs) {
      if (nowMs - heardMs >= clientTimeoutMs) endClient(tx, clientId, "timed_out", consumers);
    }
    for (const [clientId, sinceMs] of clientLinks.closedAtMs) {
      if (nowMs - sinceMs >= clientGraceMs) endClient(tx, clientId, "gone", consumers);
    }
    if (jobGcTimeoutMs < 0) return;
    this.#noteIdle(tx);
    for (const [iterationId, sinceMs] of this.#idleSinceMs) {
      if (nowMs - sinceMs < jobGcTimeoutMs) continue;
      forgetIteration(tx, state.iterations.get(iterationId)!);
    }
    this.#forgetDatasets(tx, Math.max(jobGcTimeoutMs, DATASET_UNUSED_MIN_MS));
  }

  /** Loses workers whose grace time is over, and dials the others with a closed connection. */
  #sweepClosedWorkers(tx: Transaction): void {
    const { context, settings, workerLinks } = this.#options;
    for (const [name, sinceMs] of workerLinks.closedAtMs) {
      const worker = tx.state.workers.get(name)!;
      if (tx.nowMs - sinceMs >= settings.workerGraceMs) loseWorker(tx, name);
      // Its next heartbeat, for which it would connect again, may be due after the grace time.
      else context.tell(worker.ref, "wake", null);
    }
  }

  /** Finds iterations that only tasks of idle iterations read, and those that are in use again. */
  #noteIdle({ state, nowMs }: Transaction): void {
    const inUse = iterationsInUse(state);
    for (const iterationId of state.iterations.keys()) {
      if (inUse.has(iterationId)) this.#idleSinceMs.delete(iterationId);
      else this.#idleSinceMs.getOrInsert(iterationId, nowMs);
    }
  }

  #forgetDatasets({ state, nowMs, append }: Transaction, afterMs: number): void {
    const unused = new Set(unusedDatasets(state));
    for (const datasetId of this.#unusedSinceMs.keys()) {
      if (!unused.has(datasetId)) this.#unusedSinceMs.delete(datasetId);
    }
    for (const datasetId of unused) {
      const sinceMs = this.#unusedSinceMs.getOrInsert(datasetId, nowMs);
      if (nowMs - sinceMs >= afterMs) append({ type: "dataset_forgotten", datasetId });
    }
  }
}
