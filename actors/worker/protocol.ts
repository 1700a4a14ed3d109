/**
 * What workers and their tasks can be asked. A task, the sliding-window cache before it and the
 * coordinated-read scheduler before it all speak the same {@linkcode ElementSourceProtocol}.
 *
 * @module
 */
import type { WireError } from "../../core/error.ts";
import type { SplitTable } from "../../data/splits.ts";
import type { Payload } from "../../transport/payload.ts";
import type { DatasetDefinition } from "../dispatcher/protocol.ts";
import type { Ref } from "../runtime/ref.ts";

/** What the dispatcher asks of a worker. */
export interface WorkerProtocol {
  /** Lists the splits of a pipeline's sources, on a runner thread. @throws what the listing failed with. */
  listSplits(request: { readonly dataset: DatasetDefinition }): { readonly table: SplitTable };
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

/** One answer to a request for an element. */
export type ElementAnswer =
  /** An encoded element (see the wire format). */
  | { readonly kind: "element"; readonly element: Payload; readonly place?: Place }
  /** This element failed; the next request gets the one after it. */
  | { readonly kind: "error"; readonly error: WireError; readonly place?: Place }
  /** DETERMINISTIC: the last rows of a split, as a batch, where they do not fill one. */
  | { readonly kind: "remainder"; readonly element: Payload; readonly place: Place }
  /** DETERMINISTIC: nothing more comes of the split. `place.index` counts what came. */
  | { readonly kind: "split_end"; readonly place: Place }
  /** DETERMINISTIC: there is nothing yet of the splits that were asked for. */
  | { readonly kind: "later" }
  /** There will be no more for this client. */
  | { readonly kind: "end" }
  /** Coordinated reads: this round is skipped by all consumers. */
  | { readonly kind: "skip" };

/** Asks for one element. */
export interface GetElementRequest {
  readonly clientId: number;
  /** Counts this client's requests to this source from 1; a repeated one gets the same answer. */
  readonly sequence: number;
  /** All answers up to this sequence have arrived: they need not be kept. */
  readonly acknowledged: number;
  /** Sharing: whose pointer to move. */
  readonly trainerId?: string;
  /** Coordinated reads. */
  readonly consumerIndex?: number;
  readonly round?: number;
  /** DETERMINISTIC: nothing is wanted now of splits beyond this place in their order. */
  readonly upTo?: number;
}

/** What clients ask of a task, a cache or a scheduler. */
export interface ElementSourceProtocol {
  /**
   * The next element for this client; answers when there is one.
   *
   * @throws `failed_precondition` for a round that was served before, or a client that has left.
   */
  getElement(request: GetElementRequest): ElementAnswer;
  /** Forgets a client and what is kept for it; idempotent. */
  leave(request: { readonly clientId: number }): null;
  /** Figures for people. */
  stats(request: null): ElementSourceStats;
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
  /** Sharing: elements skipped by trainers that fell behind the window. */
  readonly skipped: number;
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
}

/** Where a worker lives on its node. */
export const WORKER_PATH = "/worker";

/** A reference to the worker of a node. */
export function workerAt(node: string): Ref<WorkerProtocol> {
  return { node, path: WORKER_PATH };
}
