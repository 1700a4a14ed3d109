/**
 * Lists an iteration's splits on a worker: to list millions of files would block the dispatcher.
 */
import { LeatError } from "../../../core/error.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import { isUnknownNode } from "../../runtime/link.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import { formatRef } from "../../runtime/ref.ts";
import { sleep } from "../../runtime/timers.ts";
import { LISTER_DIED, type WorkerProtocol } from "../../worker/protocol.ts";
import type { Worker } from "../state/entities.ts";
import { parametersOf } from "./iterations.ts";
import { isServedBy } from "./targets.ts";
import { datasetOf } from "./datasets.ts";
import { HeldBytes } from "../held_bytes.ts";
import { areBounds, type SplitBounds } from "../../../data/sharding/split_table.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Transaction } from "../transaction.ts";
import { count, list, name, object, passing } from "../../runtime/checks.ts";
import { guardOf } from "../../runtime/guard.ts";

/**
 * Time limit of one listing, in ms. It doubles, up to the maximum, each time a worker exceeds it. So
 * the exceeded limits add up to at most twice the time that a listing takes.
 */
const TIMEOUT_MIN_MS = 10_000;
const TIMEOUT_MAX_MS = 600_000;
/** A request without an answer is repeated after this time, in ms; the worker handles it once. */
const ATTEMPT_MS = 2_000;
/**
 * A worker that was unavailable this many times is given up, and the next one is asked. More than one,
 * because a listing survives the loss of a link: the repeated request gets its result.
 */
const UNAVAILABLE_MAX = 3;
/**
 * Limit of the bytes of the pipelines in one identity's open requests, unless there is only one: a
 * client may leave its job and open another one faster than pipelines are sent. Others wait.
 */
const ASKED_BYTES_MAX = 128 * 2 ** 20;
/** Pause after all workers have failed, in ms. */
const PAUSE_MS = 1_000;

/** Failures of the worker, not of the listing: another worker may succeed. */
const WORKER_FAILURES: ReadonlySet<string> = new Set([
  "unavailable",
  "deadline_exceeded",
  "cancelled",
  "aborted",
  "resource_exhausted",
]);

export type Listing =
  /** `begun`: journals that the listing has begun a save, also if that was cancelled meanwhile. */
  | { readonly bounds: SplitBounds; readonly begun?: (tx: Transaction) => void }
  | { readonly error: LeatError };

/** Asks a worker; rejects at once when that worker ends or restarts. */
export type AskWorker = <M extends keyof WorkerProtocol & string>(
  method: M,
  request: RequestOf<WorkerProtocol, M>,
) => Promise<AnswerOf<WorkerProtocol, M>>;

/** Why a worker could not list the splits. */
export interface ListingFailure {
  readonly worker: string;
  readonly failure: LeatError;
  /** Whether the worker failed, not the listing. Another worker may then succeed. */
  readonly isOfWorker: boolean;
}

interface SplitListingsOptions {
  readonly context: ActorContext;
  readonly state: DispatcherState;
  /** See `Transaction.unheard`. */
  readonly unheard: ReadonlySet<string>;
  /** See `Transactions.durable`. */
  readonly durable: () => Promise<void> | undefined;
  readonly onListed: (iterationId: number, listing: Listing) => void;
  /** A listing has killed its runner. The next one begins when this is durable, if at all. */
  readonly onDeath: (iterationId: number, worker: string, failure: LeatError) => void;
}

/** An open request to a worker. */
interface Asked {
  readonly worker: Worker;
  readonly reject: (error: LeatError) => void;
}

export class SplitListings {
  readonly #options: SplitListingsOptions;
  readonly #running = new Set<number>();
  readonly #asked = new Set<Asked>();
  readonly #askedBytes = new HeldBytes();
  /** Settles when a request has ended. */
  #ended = Promise.withResolvers<void>();
  /** Workers that exceeded the time limit of their last listing, by name. They are asked last. */
  readonly #late = new Set<string>();

  constructor(options: SplitListingsOptions) {
    this.#options = options;
  }

  /** Lists the iteration's splits, unless a listing runs, is done, or has failed for good. */
  ensure(iterationId: number): void {
    if (this.#running.has(iterationId) || !this.#isWanted(iterationId)) return;
    this.#running.add(iterationId);
    this.#options.context.run(async () => {
      try {
        await this.#list(iterationId);
      } finally {
        this.#running.delete(iterationId);
      }
    });
  }

  #isWanted(iterationId: number): boolean {
    const iteration = this.#options.state.iterations.get(iterationId);
    return iteration?.splits === null && iteration.error === null;
  }

  /** A worker has ended or restarted: stops waiting for its answers. */
  workerLost(name: string): void {
    this.#late.delete(name);
    for (const { worker, reject } of this.#asked) {
      if (worker.name === name) {
        reject(new LeatError("unavailable", "the worker ended or restarted"));
      }
    }
  }

  /** Retries until the listing has a result, the iteration is forgotten, or no worker is left. */
  async #list(iterationId: number): Promise<void> {
    const tried = new Set<string>();
    let timeoutMs = TIMEOUT_MIN_MS;
    for (;;) {
      await this.#options.durable();
      if (!this.#isWanted(iterationId)) return;
      // Found anew each time, because workers join and leave.
      const workers = this.#workersFor(iterationId);
      if (workers.length === 0) return;
      if (!this.#hasRoomFor(iterationId)) {
        await this.#ended.promise;
        continue;
      }
      const worker = workers.find(({ ref }) => !tried.has(formatRef(ref)));
      if (worker === undefined) {
        await sleep(this.#options.context, PAUSE_MS);
        tried.clear();
        continue;
      }
      tried.add(formatRef(worker.ref));
      const { world } = this.#options.context;
      const startedMs = world.nowMs();
      const outcome = await this.#ask(worker, iterationId, timeoutMs);
      if (outcome instanceof LeatError) {
        const tookMs = world.nowMs() - startedMs;
        // A worker whose link was lost meanwhile fails as unavailable, but also after the limit.
        if (outcome.code === "deadline_exceeded" || tookMs >= timeoutMs) {
          this.#late.add(worker.name);
          timeoutMs = Math.min(2 * timeoutMs, TIMEOUT_MAX_MS);
        }
        continue;
      }
      this.#late.delete(worker.name);
      this.#options.onListed(iterationId, outcome);
      return;
    }
  }

  /**
   * Live workers that serve the iteration, rotated so that different iterations try different ones.
   * Those that were late, or were not heard since the dispatcher started, come last: one that never
   * answers must not delay each new job.
   */
  #workersFor(iterationId: number): Worker[] {
    const { state } = this.#options;
    const iteration = state.iterations.get(iterationId);
    if (iteration === undefined) return [];
    const workers = [...state.workersFor(parametersOf(state, iteration))].filter((worker) =>
      worker.alive && isServedBy(state, iteration, worker)
    );
    const first = iterationId % Math.max(1, workers.length);
    const rotated = [...workers.slice(first), ...workers.slice(0, first)];
    const { unheard } = this.#options;
    const isLate = ({ name }: Worker) => this.#late.has(name) || unheard.has(name);
    return [...rotated.filter((worker) => !isLate(worker)), ...rotated.filter(isLate)];
  }

  #hasRoomFor(iterationId: number): boolean {
    const { owner, dataset } = this.#subjectOf(iterationId);
    const bytes = this.#askedBytes.bytesOf(owner);
    return bytes === 0 || bytes + dataset.graph.byteLength <= ASKED_BYTES_MAX;
  }

  #subjectOf(iterationId: number) {
    const { state } = this.#options;
    const iteration = state.iterations.get(iterationId)!;
    const { owner, parameters } = state.jobs.get(iteration.jobId)!;
    return { iteration, owner, dataset: datasetOf(state, parameters.datasetId) };
  }

  /** Lists on one worker. Resolves to the worker's failure if another worker must be tried. */
  async #ask(worker: Worker, iterationId: number, timeoutMs: number): Promise<Listing | LeatError> {
    const { context, state } = this.#options;
    const limits = { timeoutMs, attemptMs: ATTEMPT_MS, unavailableMax: UNAVAILABLE_MAX };
    const { iteration, owner, dataset } = this.#subjectOf(iterationId);
    const mode = state.modeOf(iteration);
    const askWorker: AskWorker = async (method, request) => {
      const asking = context.ask(worker.ref, method, request, limits);
      const answer = await this.#unlessLost(worker, asking);
      checkPreparation(method, answer);
      return answer;
    };
    const request = {};
    this.#askedBytes.add(owner, request, dataset.graph.byteLength);
    try {
      return await mode.list({ state, iteration }, askWorker, dataset);
    } catch (error) {
      const failure = LeatError.from(error);
      if (context.signal.aborted) throw failure;
      // Its job may be gone, too: `#list` ends when it looks next.
      if (!this.#isWanted(iterationId)) return failure;
      const isOfWorker = isWorkerFailure(failure);
      const failed = { failure, isOfWorker, worker: worker.name };
      const end = mode.listingFailed({ state, iteration }, failed);
      if (end !== undefined) return { error: end };
      if (failure.details?.["reason"] === LISTER_DIED) {
        this.#options.onDeath(iterationId, worker.name, failure);
      }
      context.world.log(
        "warn",
        `Worker "${worker.name}" could not ${mode.preparation}: ${failure.message}`,
      );
      return failure;
    } finally {
      this.#askedBytes.remove(request);
      this.#ended.resolve();
      this.#ended = Promise.withResolvers();
    }
  }

  /** Settles as the answer does, or rejects earlier when the worker ends or restarts. */
  async #unlessLost<A>(worker: Worker, answer: Promise<A>): Promise<A> {
    const { promise: lost, reject } = Promise.withResolvers<never>();
    const asked = { worker, reject };
    this.#asked.add(asked);
    try {
      return await Promise.race([answer, lost]);
    } finally {
      this.#asked.delete(asked);
    }
  }
}

/** Whether the worker failed, for example because it has restarted or lost its connection. */
function isWorkerFailure(failure: LeatError): boolean {
  const reason = failure.details?.["reason"];
  const isGone = reason === "stale_incarnation" || reason === "no_such_actor" ||
    isUnknownNode(failure);
  return WORKER_FAILURES.has(failure.code) || isGone;
}

/** Limit of the length of lists in answers: an iteration cannot have more splits. */
const LENGTH_MAX = 2 ** 24;

const bounds = list(passing<Float64Array>(areBounds, "bounds of splits"), LENGTH_MAX);

/**
 * The shapes of the answers that prepare a job. They are checked because the journal keeps them.
 */
const ANSWERS = {
  listSplits: guardOf(object({ bounds })),
  beginSave: guardOf(object({
    ...{ id: name, bounds, entries: count, upTo: count, elements: count, sizeBytes: count },
    runs: list(object({ first: count, count, attempt: name }), LENGTH_MAX),
  })),
} satisfies { readonly [M in keyof WorkerProtocol]?: unknown };

/** @throws LeatError `invalid_argument` for an answer that does not have the shape of `method`. */
function checkPreparation(method: keyof WorkerProtocol, answer: unknown): void {
  if (!Object.hasOwn(ANSWERS, method) || ANSWERS[method as keyof typeof ANSWERS](answer)) return;
  throw new LeatError("invalid_argument", `The worker's answer to ${method} is malformed`);
}
