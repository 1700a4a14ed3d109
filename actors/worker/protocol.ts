/**
 * What workers and their tasks can be asked. A task, the sliding-window cache before it and the
 * coordinated-read scheduler before it all speak the same {@linkcode ElementSourceProtocol}.
 *
 * @module
 */
import type { WireError } from "../../core/error.ts";
import type { ElementCompression } from "../../data/element_compression.ts";
import type { SplitTable } from "../../data/splits.ts";
import type { FrameCodec } from "../../transport/compression.ts";
import type { Begun, JointSaveSettings } from "../../data/stored/joint/work.ts";
import type { Payload } from "../../transport/payload.ts";
import type { DatasetDefinition } from "../dispatcher/protocol.ts";
import type { Ref } from "../runtime/ref.ts";

/** What the dispatcher asks of a worker. */
export interface WorkerProtocol {
  /** Lists the splits of a pipeline's sources, on a runner thread. @throws what the listing failed with. */
  listSplits(request: { readonly dataset: DatasetDefinition }): { readonly table: SplitTable };
  /** Looks at the folder of a save, on a runner, and begins it or goes on. @throws why it cannot. */
  beginSave(request: {
    readonly dataset: DatasetDefinition;
    readonly save: JointSaveSettings;
    readonly seed: string;
    readonly owner: string;
  }): Begun;
  /**
   * Takes no more work, and answers when clients have fetched what was produced, or at the deadline.
   * True: nothing was left.
   */
  drain(request: { readonly timeoutMs: number }): boolean;
  /**
   * Says good-bye to the dispatcher, which ends what is left of the worker's tasks at once instead of
   * when it misses the worker. Usually after `drain`.
   */
  leave(request: null): null;
  /** Says that the dispatcher has news: the worker sends a heartbeat at once. */
  wake(request: null): null;
  /** Says that a worker on that node asks for this one's name. Who answers lives, and keeps it. */
  nameWanted(request: { readonly by: string }): null;
}

/** DETERMINISTIC: where something stands in the stream. */
export interface Place {
  /** The split's place in the order of splits. */
  readonly sequence: number;
  /** The split's place in its table. */
  readonly split: number;
  /** Counts what comes of the split, from 0. */
  readonly index: number;
}

/** What an answer with bytes says of its request. */
export interface Held {
  /** How long it has waited here for the element, in ms; left out: not at all. */
  readonly heldMs?: number;
}

/** What an error says beyond one element. */
export interface Final {
  /** The task cannot read on: nothing comes after it, nor the end. Left out: it is an element's error. */
  readonly isFinal?: true;
}

/** Sharing: what an answer says of the trainer's place in the stream. */
export interface Skipped {
  /** Elements before this one that the trainer has missed, as they had left the window; left out: none. */
  readonly skipped?: number;
}

/** How a client reads over a network: what compressing for it depends on. */
export interface WayFigures {
  /** How fast this source's answers come over, in bytes on the wire per second. */
  readonly bytesPerSecond: number;
  /** How fast it unpacks compressed elements, in their size after it; left out before the first. */
  readonly unpackBytesPerSecond?: number;
  /** The share of its time, 0 to 1, in which its training loop waits. */
  readonly waitingShare: number;
}

/** Whether a task's elements are compressed. */
export interface CompressionFigures {
  readonly setting: ElementCompression;
  /** What they are compressed with now. */
  readonly active: "none" | FrameCodec;
  /** Why. */
  readonly reason: string;
  /** Bytes of elements that it was done to, before and after. */
  readonly bytes: number;
  readonly compressedBytes: number;
  /** What it took, trials included, in ms. */
  readonly ms: number;
}

/** One answer to a request for an element. */
export type ElementAnswer =
  /** An encoded element (see the wire format), which may be compressed. */
  | (
    & { readonly kind: "element"; readonly element: Payload; readonly place?: Place }
    & Held
    & Skipped
  )
  /** This element failed; the next request gets the one after it. */
  | (
    & { readonly kind: "error"; readonly error: WireError; readonly place?: Place }
    & Final
    & Skipped
  )
  /** DETERMINISTIC: the last rows of a split, as a batch, where they do not fill one. */
  | ({ readonly kind: "remainder"; readonly element: Payload; readonly place: Place } & Held)
  /** DETERMINISTIC: so many elements from this place on are other consumers' own. */
  | { readonly kind: "passed"; readonly place: Place; readonly count: number }
  /** DETERMINISTIC: nothing more comes of the split. `place.index` counts what came. */
  | { readonly kind: "split_end"; readonly place: Place }
  /**
   * There is nothing in `waitMs`; DETERMINISTIC: or nothing of the splits that were asked for, and of
   * none before `from`, unless one that was lost elsewhere comes.
   */
  | { readonly kind: "later"; readonly from?: number }
  /** There will be no more for this client. */
  | { readonly kind: "end" }
  /** Coordinated reads: this round is skipped by all consumers. */
  | { readonly kind: "skip" };

/**
 * DETERMINISTIC: which elements of a split are a consumer's own: of n consumers, those whose number in
 * the stream leaves its index when divided by n. Of splits before this one it wants nothing.
 */
export interface Own {
  /** The split, by its place in the order of splits. */
  readonly sequence: number;
  /** The number in the stream of the first element of it. */
  readonly number: number;
}

/** Whether an answer says that there will be nothing more: the end, or why reading cannot go on. */
export function isLast(answer: ElementAnswer): boolean {
  return answer.kind === "end" || isFinal(answer);
}

/** Whether an answer says why reading cannot go on. */
export function isFinal(
  answer: ElementAnswer,
): answer is ElementAnswer & { readonly kind: "error"; readonly isFinal: true } {
  return answer.kind === "error" && answer.isFinal === true;
}

/** Asks for one element. */
export interface GetElementRequest {
  readonly clientId: number;
  /** Counts this client's requests to this source from 1; a repeated one gets the same answer. */
  readonly sequence: number;
  /** All answers up to this sequence have arrived: they need not be kept. */
  readonly acknowledged: number;
  /** Sharing: whose pointer to move. */
  readonly trainerId?: string;
  /** With consumers: which of them this is. */
  readonly consumerIndex?: number;
  readonly round?: number;
  /** Coordinated reads: this consumer wants nothing of rounds before this one any more. */
  readonly floor?: number;
  /** Coordinated reads: consumers that take no part in this round, nor in any before it. */
  readonly absent?: readonly number[];
  /** DETERMINISTIC: nothing is wanted now of splits beyond this place in their order. */
  readonly upTo?: number;
  /** DETERMINISTIC with consumers: only this consumer's own elements are wanted of a split. */
  readonly own?: Own;
  /**
   * The client would rather ask another source than wait for longer, in ms: if there is no element by
   * then, the answer is `later`. A source may not know it, and let it wait.
   */
  readonly waitMs?: number;
  /** Where elements are compressed when it pays: news of how the client reads. */
  readonly way?: WayFigures;
}

/** Who leaves, where one consumer says it of another: clients count from 1. */
export const SOME_CLIENT = 0;

/** What clients ask of a task, a cache or a scheduler. */
export interface ElementSourceProtocol {
  /**
   * The next element for this client; answers when there is one.
   *
   * @throws `failed_precondition` for a round that was served before, or a client that has left.
   */
  getElement(request: GetElementRequest): ElementAnswer;
  /**
   * Forgets a client and what is kept for it; idempotent. Of a consumer that has left others say so, too.
   */
  leave(request: { readonly clientId: number; readonly consumerIndex?: number }): null;
  /** Figures for people. */
  stats(request: null): ElementSourceStats;
}

/** What a task asks of those who read it: clients, or what stands before it. */
export interface ElementReaderProtocol {
  /**
   * Says that the task drains and has given all that it will: what its reader still waits for was lost on
   * its way, and is asked for once more at once. Answers as `GetElementRequest.acknowledged` does, and
   * without it when it reads the task no more.
   */
  askAgain(request: null): { readonly acknowledged?: number };
}

/** Sharing: what the cache before a task can be asked. */
export interface CacheProtocol extends ElementSourceProtocol, ElementReaderProtocol {
  /** From now on the window holds so many bytes at most; its oldest elements go at once. Idempotent. */
  resize(request: { readonly windowBytesMax: number }): null;
}

/** Coordinated reads: what consumers ask of the scheduler before a task. */
export interface RoundSourceProtocol extends ElementSourceProtocol, ElementReaderProtocol {
  /**
   * Says that this consumer holds what it was given of a round; answers when all of them have said so,
   * but for those that take no part in it. Only then does a training loop get it. Idempotent.
   *
   * @throws `failed_precondition` for a round that was not begun here, or is long over; `cancelled` where
   * the consumer has said so anew since.
   */
  confirm(request: {
    readonly consumerIndex: number;
    readonly round: number;
    readonly absent?: readonly number[];
  }): null;
}

/** Figures of an element source. */
export interface ElementSourceStats {
  readonly role: "task" | "cache" | "reads";
  /** Elements asked of what is behind it (for a task: produced by the pipeline). */
  readonly produced: number;
  /** Elements handed to clients, repetitions not counted. */
  readonly served: number;
  readonly bufferedBytes: number;
  /** Bytes that the task's pipeline has read from files. */
  readonly bytesRead: number;
  /**
   * Sharing: elements skipped by trainers that fell behind the window. Coordinated reads: rounds that
   * all consumers have skipped because they were late.
   */
  readonly skipped: number;
  readonly sharing?: SharingStats;
}

/** Figures of a sliding window. */
export interface SharingStats {
  readonly windowBytesMax: number;
  /** In the window now. */
  readonly elements: number;
  /** Trainers that it has pointers of. */
  readonly trainers: number;
  /** Elements that were in the window when a trainer asked. */
  readonly hits: number;
  /** Elements that a trainer had to wait for until they were produced. */
  readonly misses: number;
}

/** Figures of a task: counts that only grow, and what there is now. */
export interface TaskStats extends ElementSourceStats {
  /** Bytes of the elements handed to clients. */
  readonly servedBytes: number;
  /** Requests that wait for an element now. */
  readonly waiting: number;
  /** How long its pipeline had something to do, in ms. */
  readonly busyMs: number;
  /** How often its runner died and was started again. */
  readonly runnerRestarts: number;
  /** Left out by a task that sends no elements. */
  readonly compression?: CompressionFigures;
  /** Why its pipeline cannot be run, or read on; left out: it can. */
  readonly failure?: string;
}

/**
 * How many rounds ahead of its training loop a consumer reads at most (coordinated reads), whatever its
 * user says. No consumer is then more than twice as many rounds ahead of another.
 */
export const ROUNDS_AHEAD_MAX = 32;

/** Where a worker lives on its node. */
export const WORKER_PATH = "/worker";

/** A reference to the worker of a node. */
export function workerAt(node: string): Ref<WorkerProtocol> {
  return { node, path: WORKER_PATH };
}
