/**
 * What workers and their tasks can be asked. A task, its sliding-window cache and its
 * coordinated-read scheduler all implement {@linkcode ElementSourceProtocol}.
 */
import { LeatError, type WireError } from "../../core/error.ts";
import type { ElementCompression } from "../../data/service/reading_choices.ts";
import type { SplitBounds } from "../../data/sharding/split_table.ts";
import type { Begun, DistributedSaveSettings } from "../../data/saved/distributed/work.ts";
import type { Payload } from "../../transport/payload.ts";
import type { DatasetDefinition } from "../dispatcher/protocol.ts";
import type { Reported } from "../dispatcher/protocol_metrics.ts";
import type { Ref } from "../runtime/ref.ts";

/** What the dispatcher asks of a worker. */
export interface WorkerProtocol {
  /**
   * Lists the splits of a pipeline's sources, on a runner thread. `owner` is the identity that owns the
   * job: concurrent listings per identity are limited.
   * @throws the listing's failure; see {@linkcode listerError} for the death of the runner.
   */
  listSplits(request: { readonly dataset: DatasetDefinition; readonly owner: string }): {
    readonly bounds: SplitBounds;
  };
  /**
   * Begins or resumes a save, on a runner, like `listSplits`. The folder records `saveName`.
   * @throws as `listSplits`.
   */
  beginSave(request: {
    readonly dataset: DatasetDefinition;
    readonly save: DistributedSaveSettings;
    readonly seed: string;
    readonly owner: string;
    readonly saveName: string;
  }): SaveStart;
  /** Takes no more work. Answers true when all is fetched, or false at the deadline. */
  drain(request: { readonly timeoutMs: number }): boolean;
  /** Leaves the dispatcher, which ends its tasks now. Usually called after `drain`. */
  leave(request: null): null;
  /** The dispatcher has changes for the worker, which then sends a heartbeat at once. */
  wake(request: null): null;
  /** Another worker, at that node, wants this name. A worker that answers keeps it. */
  nameWanted(request: { readonly by: string }): null;
}

/** The `details.reason` of a listing, or of the beginning of a save, that killed its runner. */
export const LISTER_DIED = "lister_died";

/**
 * The error with which a worker answers when a listing fails on a runner. If the runner died, it is
 * `aborted`: an ask repeats what is `unavailable`, but each death must reach the dispatcher's count.
 */
export function listerError(thrown: unknown): LeatError {
  const error = LeatError.from(thrown);
  if (error.details?.["reason"] !== "runner_died") return error;
  const details = { reason: LISTER_DIED };
  return new LeatError("aborted", error.message, { details, cause: error });
}

/** How far a save is. Its splits are arrays, which are sent as payloads. */
export type SaveStart = Omit<Begun, "table"> & { readonly bounds: SplitBounds };

/** DETERMINISTIC: a position in the stream. */
export interface StreamPosition {
  /** The split's position in the order of splits. */
  readonly sequence: number;
  /** The split's position in its table. */
  readonly split: number;
  /** Counts the items of the split, from 0. */
  readonly index: number;
}

/** How long an answer with bytes was delayed at its source. */
interface Held {
  /** How long the request waited at the source for the element, in ms; left out: not at all. */
  readonly heldMs?: number;
}

/** Whether an error concerns more than one element. */
interface Final {
  /** The task cannot continue: nothing follows, not even an end. Left out: one element failed. */
  readonly isFinal?: true;
}

/** Sharing: what the trainer missed. */
export interface Skipped {
  /** How many elements had left the window before the trainer read them; left out: none. */
  readonly skipped?: number;
}

/** How a client reads over a network: the basis for deciding on compression. */
export interface BandwidthFigures {
  /** Throughput of this source's answers, in bytes on the wire per second. */
  readonly bytesPerSecond: number;
  /** Decompression speed, in decompressed bytes per second; left out before the first. */
  readonly unpackBytesPerSecond?: number;
  /** The share of its time, 0 to 1, in which its training loop waits. */
  readonly waitingShare: number;
}

/** Whether a task's elements are compressed. */
export interface CompressionFigures extends Reported<"compression"> {
  /** The `compression` of the dataset. */
  readonly setting: ElementCompression;
  /** The current codec. */
  readonly active: Exclude<ElementCompression, "auto">;
  /** Why this codec was chosen. */
  readonly reason: string;
}

export type ElementAnswer =
  /** An encoded element (see the wire format), which may be compressed. */
  | (
    & { readonly kind: "element"; readonly element: Payload; readonly place?: StreamPosition }
    & Held
    & Skipped
  )
  /** This element failed; the next request gets the one after it. */
  | (
    & { readonly kind: "error"; readonly error: WireError; readonly place?: StreamPosition }
    & Final
    & Skipped
  )
  /** DETERMINISTIC: the last rows of a split, if they do not fill a batch. */
  | (
    & { readonly kind: "remainder"; readonly element: Payload; readonly place: StreamPosition }
    & Held
  )
  /** DETERMINISTIC: this many elements from this position on belong to other consumers. */
  | { readonly kind: "passed"; readonly place: StreamPosition; readonly count: number }
  /** DETERMINISTIC: the split ends here. `place.index` is the number of its items. */
  | { readonly kind: "split_end"; readonly place: StreamPosition }
  /**
   * Nothing was ready within `waitMs`. DETERMINISTIC: the task has no requested split, and gets none
   * before `from`, except splits that another task lost.
   */
  | { readonly kind: "later"; readonly from?: number }
  /** This client gets no more elements. */
  | { readonly kind: "end" }
  /** Coordinated reads: this round is skipped by all consumers. */
  | { readonly kind: "skip" };

/**
 * DETERMINISTIC: tells the task which elements of a split belong to the consumer: those whose
 * number in the stream, modulo the number of consumers, is its index. The consumer wants nothing of
 * earlier splits.
 */
export interface Own {
  /** The split's position in the order of splits. */
  readonly sequence: number;
  /** The number in the stream of the split's first element. */
  readonly number: number;
}

/** Whether nothing follows the answer: it is the end, or says why reading cannot continue. */
export function isLast(answer: ElementAnswer): boolean {
  return answer.kind === "end" || isFinal(answer);
}

/** Whether an answer says why reading cannot continue. */
export function isFinal(
  answer: ElementAnswer,
): answer is ElementAnswer & { readonly kind: "error"; readonly isFinal: true } {
  return answer.kind === "error" && answer.isFinal === true;
}

export interface GetElementRequest {
  readonly clientId: number;
  /** Numbers this client's requests to this source from 1; a repeated one gets the same answer. */
  readonly sequence: number;
  /** All answers up to this sequence number have arrived and need not be kept. */
  readonly acknowledged: number;
  /** The answer may be on its way. If it was given, it is not given again. */
  readonly patient?: boolean;
  /** Sharing: the trainer, which has its own position in the window. */
  readonly trainerId?: string;
  /** With consumers: the consumer's index. */
  readonly consumerIndex?: number;
  readonly round?: number;
  /** Coordinated reads: this consumer wants nothing more of rounds before this one. */
  readonly floor?: number;
  /** Coordinated reads: consumers that take no part in this round or any before it. */
  readonly absent?: readonly number[];
  /** DETERMINISTIC: no splits beyond this position are wanted now. */
  readonly upTo?: number;
  /** DETERMINISTIC with consumers: only this consumer's own elements of a split are wanted. */
  readonly own?: Own;
  /**
   * If no element is ready after this time, in ms, the answer is `later`. Sources that do not
   * support this let the request wait.
   */
  readonly waitMs?: number;
  /** For compression `auto`: the bandwidth that the client measured, and how it reads. */
  readonly bandwidth?: BandwidthFigures;
}

/** The client id in `leave` where one consumer reports the departure of others. Real ids start at 1. */
export const SOME_CLIENT = 0;

/** What clients ask of a task, a cache or a scheduler. */
export interface ElementSourceProtocol {
  /**
   * The next element for this client; answers when there is one.
   * @throws `failed_precondition` for a round that was served before, or a client that has left.
   */
  getElement(request: GetElementRequest): ElementAnswer;
  /** Forgets a client; idempotent. Consumers also report the departure of other consumers. */
  leave(request: { readonly clientId: number; readonly consumers?: readonly number[] }): null;
  stats(request: null): ElementSourceStats;
}

/** What a task asks of its readers: clients, a cache or a scheduler. */
export interface ElementReaderProtocol {
  /**
   * The task drains and has given everything: its reader repeats open requests at once, if it has
   * not done so within a second. The answer is like `GetElementRequest.acknowledged`; left out by a
   * reader that no longer reads the task.
   */
  askAgain(request: null): { readonly acknowledged?: number };
}

/** What a task asks of a reader whose elements it prepares. */
export interface ElementGiverProtocol {
  /**
   * Encoded `GivenElements` of a split, from element `from` on. A repeated request gets the
   * same answer.
   * @throws `failed_precondition` by a reader that sends none, or why it cannot read them.
   */
  readSource(request: { readonly split: number; readonly from: number }): {
    readonly given: Payload;
  };
}

/** A cache or scheduler in front of a task. */
export interface ProxyProtocol extends ElementSourceProtocol, ElementReaderProtocol {
  /**
   * The worker drains, and the task gives no more. Answers whether trainers have read all that the
   * proxy got of it. A cache does not wait for a trainer that has been silent for two minutes.
   */
  isRead(request: null): boolean;
  /**
   * Answers whether all trainers have left, so that the proxy takes nothing of the task. It waits for
   * its first one. A cache counts those as gone that have been silent for two minutes.
   */
  haveAllLeft(request: null): boolean;
}

/** Sharing: what the cache of a task can be asked. */
export interface CacheProtocol extends ProxyProtocol {
  /** Bounds the window to this many bytes; the oldest elements are dropped at once. Idempotent. */
  resize(request: { readonly windowBytesMax: number }): null;
}

/** Coordinated reads: what consumers ask of a task's scheduler. */
export interface RoundSourceProtocol extends ProxyProtocol {
  /**
   * Reports that this consumer holds its part of a round. The answer comes when all consumers that take
   * part have reported; only then does a training loop get the round. Idempotent.
   * @throws `failed_precondition` for a round that this scheduler has not begun, or is long over;
   * `cancelled` if the consumer has repeated the request.
   */
  confirm(request: {
    readonly consumerIndex: number;
    readonly round: number;
    readonly absent?: readonly number[];
  }): null;
}

/** Figures of an element source. */
export interface ElementSourceStats {
  /** `task`: runs a pipeline; `cache`: shares its elements; `reads`: schedules coordinated reads. */
  readonly role: "task" | "cache" | "reads";
  /** Elements received from the task, or (for a task) produced by the pipeline. */
  readonly produced: number;
  /** Elements given to clients, repetitions not counted. */
  readonly served: number;
  /** Bytes of elements held now. */
  readonly bufferedBytes: number;
  /** Bytes that the task's pipeline has read from files. */
  readonly bytesRead: number;
  /** Sharing: elements missed by trainers that fell behind. Coordinated reads: rounds skipped. */
  readonly skipped: number;
  /** Sharing: its window. */
  readonly sharing?: Reported<"sharing">;
}

export interface TaskStats extends Reported<"task"> {
  /** Left out by a task that sends no elements. */
  readonly compression?: CompressionFigures;
  /** Why its pipeline cannot run or continue; left out if it can. */
  readonly failure?: string;
}

/** A task's own figures. */
export type TaskSourceStats = ElementSourceStats & TaskStats;

/**
 * A consumer reads at most this many rounds ahead of its training loop. So it is at most twice as
 * many rounds ahead of another consumer.
 */
export const ROUNDS_AHEAD_MAX = 32;

const WORKER_PATH = "/worker";

export function workerAt(node: string): Ref<WorkerProtocol> {
  return { node, path: WORKER_PATH };
}
