/**
 * The records of the journal: all changes of the dispatcher's state. A record contains every id,
 * time and seed that the dispatcher chose for the change, so a replay gives the same state.
 */
import { LeatError, type LeatErrorCode, type WireError } from "../../../core/error.ts";
import { decodeMessage, encodeMessage, type MessageSlab } from "../../../transport/codec.ts";
import type { FencedRef } from "../../runtime/ref.ts";
import type { ElementSourceProtocol, WorkerProtocol } from "../../worker/protocol.ts";
import type { SavingStart } from "../modes/save/saving_state.ts";
import type { DatasetDefinition, JobParameters } from "../protocol.ts";
import type { PassStart } from "../modes/mode_state.ts";
import type { RunOfIteration } from "../state/entities.ts";

/** One change of the dispatcher's state. */
export type JournalRecord =
  | { readonly type: "cluster_created"; readonly clusterId: string }
  /** A dispatcher started on this journal. */
  | { readonly type: "dispatcher_started"; readonly incarnation: string; readonly wallMs: number }
  | ({
    readonly type: "dataset_registered";
    /** The identity that registered it. */
    readonly owner: string;
    /** Set if the dataset is forgotten after the last job that uses it. */
    readonly transient?: true;
  } & DatasetDefinition)
  /** A transient dataset was registered again as permanent. */
  | { readonly type: "dataset_kept"; readonly datasetId: string }
  /** A transient dataset without jobs is forgotten. */
  | { readonly type: "dataset_forgotten"; readonly datasetId: string }
  | {
    readonly type: "job_created";
    readonly jobId: number;
    /** Null: the job is private to its only client. */
    readonly name: string | null;
    /** The identity that created it. */
    readonly owner: string;
    readonly parameters: JobParameters;
    /** Static policies: the workers that share the dataset, by index. */
    readonly workers?: readonly string[];
  }
  | {
    readonly type: "iteration_created";
    readonly iterationId: number;
    readonly jobId: number;
    /** The number of the iteration within its job. */
    readonly repetition: number;
    readonly seed: string;
    /** DETERMINISTIC: the split that the reader starts at. */
    readonly startAt?: number;
    /**
     * Splits before `startAt`, ascending, of which the reader needs the last rows again: they wait
     * for the rest of their batch.
     */
    readonly behind?: readonly number[];
    /** One launch of the training program: only readers that it started may read the iteration. */
    readonly run?: RunOfIteration;
    /** DETERMINISTIC with consumers. `begun` is left out if the iteration begins a reading. */
    readonly pass?: PassStart;
  }
  /** No task will produce anything more. */
  | { readonly type: "iteration_finished"; readonly iterationId: number }
  /** The iteration and its tasks are forgotten, and its job if that has no other iteration. */
  | { readonly type: "iteration_collected"; readonly iterationId: number }
  | {
    readonly type: "worker_registered";
    readonly name: string;
    readonly worker: FencedRef<WorkerProtocol>;
    readonly tags: readonly string[];
    readonly process?: string;
    readonly isPrivate?: boolean;
    /** The identity that registered it. */
    readonly owner?: string;
  }
  /** The worker is considered dead. The records before this one have ended its tasks. */
  | {
    readonly type: "worker_lost";
    readonly name: string;
    readonly wallMs: number;
    /** It said that it leaves, so this incarnation must not come back. Default: it timed out. */
    readonly left?: true;
  }
  | {
    readonly type: "task_created";
    readonly taskId: number;
    readonly iterationId: number;
    readonly worker: string;
    readonly seed: string;
  }
  /** Clients can read the task at `source`. */
  | {
    readonly type: "task_ready";
    readonly taskId: number;
    readonly source: FencedRef<ElementSourceProtocol>;
  }
  | { readonly type: "task_completed"; readonly taskId: number }
  /** The task is fenced: it gets no splits and no clients. */
  | { readonly type: "task_ended"; readonly taskId: number; readonly why: TaskEnd }
  /** The process or thread that ran the task's pipeline has died. */
  | {
    readonly type: "runner_died";
    readonly taskId: number;
    /** Counts the task's dead runners, from 1. */
    readonly number: number;
    /** The piece of work that it ran, or null; see `Deaths`. */
    readonly place: number | null;
    readonly code: LeatErrorCode;
    readonly message: string;
  }
  /** The process that listed the iteration's splits, or began its save, has died. */
  | {
    readonly type: "lister_died";
    readonly iterationId: number;
    readonly worker: string;
    readonly code: LeatErrorCode;
    readonly message: string;
  }
  | {
    readonly type: "client_opened";
    readonly clientId: number;
    readonly iterationId: number;
    readonly requestId: string;
    readonly consumerIndex: number | null;
    /** A digest of the secret that its requests must present. */
    readonly secret?: string;
    readonly process?: string;
    /** The iteration whose task reads through the client. Left out: a program reads. */
    readonly readBy?: number;
    /** DETERMINISTIC: the stream it reads, which may consist of several jobs (chains). */
    readonly stream?: string;
    /**
     * The id of a restore, the same in all chains. Clients that this reader opened before the
     * restore are refused.
     */
    readonly restoration?: string;
    /** Names the readers that were started together. */
    readonly runId?: string;
    /** DETERMINISTIC with consumers: the split that this one starts at. */
    readonly startAt?: number;
    /** As in `iteration_created`. */
    readonly behind?: readonly number[];
  }
  | {
    readonly type: "client_released";
    readonly clientId: number;
    /** `ended`: its node reports that it has ended. Its own request may be lost. */
    readonly why: "released" | "ended" | "gone" | "timed_out";
    /** Coordinated reads: its next round, as last reported. */
    readonly nextRound: number | null;
    /**
     * Coordinated reads: how many rounds it may be ahead of all other consumers with requests since
     * its last report. Default 0.
     */
    readonly unreported?: number;
    /** DETERMINISTIC with consumers: it will read nothing more of its iterator. */
    readonly leaves?: true;
  }
  | {
    readonly type: "splits_listed";
    readonly iterationId: number;
    /** For each source: start and stop of its first split, then of its second, and so on. */
    readonly bounds: readonly Float64Array[];
    readonly digest: string;
  }
  /**
   * The iteration fails: its splits cannot be listed or saved, too many runners died at one piece
   * of work (`runnerDeathsMax`), or a client has cancelled the save.
   */
  | {
    readonly type: "iteration_failed";
    readonly iterationId: number;
    readonly error: WireError;
  }
  | {
    readonly type: "split_assigned";
    readonly taskId: number;
    readonly source: number;
    /** Which pass over the source, if a `repeat()` follows it. */
    readonly repetition: number;
    readonly index: number;
    /** Counts the task's requests for splits of this source. */
    readonly number: number;
  }
  /** DETERMINISTIC: one split is assigned to this task. */
  | {
    readonly type: "sequence_assigned";
    readonly taskId: number;
    /** The split's position in the order of splits. */
    readonly sequence: number;
    /** The request's number within its series. */
    readonly number: number;
    /**
     * 0: requests for any split; 1: requests for a lost split that comes before all splits at the
     * task (`spare`).
     */
    readonly series: number;
  }
  /**
   * DETERMINISTIC: the reader has all splits at positions before `mark`. Of the later ones it has
   * those in `done`, and those in `done` of earlier records.
   */
  | {
    readonly type: "sequences_received";
    readonly iterationId: number;
    readonly mark: number;
    readonly done: readonly number[];
    /** With several consumers: the one that reports. */
    readonly consumerIndex?: number;
  }
  /** A save starts or resumes; the record says what its folder contains. */
  | ({ readonly type: "save_begun"; readonly iterationId: number } & SavingStart)
  /** A task starts to write these consecutive splits. */
  | {
    readonly type: "save_run_assigned";
    readonly taskId: number;
    readonly first: number;
    readonly count: number;
  }
  /** The task has written its run. */
  | {
    readonly type: "save_run_written";
    readonly taskId: number;
    readonly attempt: string;
    readonly elements: number;
    readonly sizeBytes: number;
    /** Bytes of left-over rows; see `RunReport`. */
    readonly restBytes?: number;
  }
  /** A task starts to write the next entry of the folder's ledger, for the splits before `upTo`. */
  | { readonly type: "save_entry_assigned"; readonly taskId: number; readonly upTo: number }
  /** The task has written its entry. */
  | {
    readonly type: "save_entry_written";
    readonly taskId: number;
    readonly elements: number;
    readonly sizeBytes: number;
  }
  /**
   * A schedule is proposed; it is in force once it is committed. Each worker that joins or leaves
   * changes the schedule, and whole ones would fill the journal. So the record has only the
   * difference from the newest one, be that proposed or in force.
   */
  | {
    readonly type: "schedule_changed";
    readonly iterationId: number;
    readonly version: number;
    readonly fromRound: number;
    readonly added: readonly number[];
    readonly removed: readonly number[];
    /** `fromRound` minus the newest known round. */
    readonly distance: number;
  }
  | {
    readonly type: "schedule_accepted";
    readonly iterationId: number;
    readonly version: number;
    readonly clientId: number;
    /** The first round that its training loop has not received. */
    readonly deliveredRound?: number;
    /** Later rounds that this client already holds, from tasks outside the new schedule. */
    readonly heldRounds?: readonly number[];
  }
  | {
    readonly type: "schedule_committed";
    readonly iterationId: number;
    readonly version: number;
    /** No consumer needs a round of an older schedule. */
    readonly oldestVersion: number;
    /** See `RoundSchedule`. */
    readonly kept?: readonly number[];
  }
  /**
   * Written at intervals, so that a restarted dispatcher knows roughly which round the consumers
   * have reached.
   */
  | { readonly type: "rounds_reached"; readonly iterationId: number; readonly round: number }
  /** All consumers end at this round, also those that join later. */
  | { readonly type: "rounds_ended"; readonly iterationId: number; readonly round: number };

export type RecordOf<T extends JournalRecord["type"]> = Extract<
  JournalRecord,
  { readonly type: T }
>;

export type TaskEnd =
  /** Its worker's heartbeats timed out. */
  | "worker_lost"
  /** Its worker has restarted. */
  | "worker_restarted"
  /**
   * The task died on a live worker. Its position in the data is lost, and a new task replaces it.
   */
  | "task_failed"
  /** Its worker drains, and has not begun it or has nothing left of it. */
  | "drained"
  /** No remaining client may read it, or it was completed and made room for its owner's others. */
  | "unread"
  /** A client ended its save. */
  | "cancelled"
  | "iteration_failed"
  /** The consumers of a coordinated read cannot reach it. */
  | "unreachable";

/** The most frequent record, which is therefore journaled as its numbers alone. */
type SplitAssigned = RecordOf<"split_assigned">;
/** How many numbers encode one {@linkcode SplitAssigned}. */
const SPLIT_NUMBERS = 5;

/** Records that are journaled together: after a crash the journal has all of them or none. */
export class RecordBatch {
  /** Encoded records; consecutive `split_assigned` records are one list of numbers. */
  readonly #items: (Uint8Array | number[])[] = [];
  readonly #encoding: { readonly slab?: MessageSlab };

  /** @param slab The buffer to encode into. Default: a new buffer for each record. */
  constructor(slab?: MessageSlab) {
    this.#encoding = slab === undefined ? {} : { slab };
  }

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  /** @throws {LeatError} `invalid_argument` for a record that cannot be encoded. */
  add(record: JournalRecord): void {
    if (record.type === "split_assigned") this.#addSplit(record);
    else this.#items.push(encodeMessage(record, this.#encoding));
  }

  encode(): Uint8Array {
    return encodeMessage(this.#items, this.#encoding);
  }

  #addSplit({ taskId, source, repetition, index, number }: SplitAssigned): void {
    const last = this.#items.at(-1);
    if (Array.isArray(last)) last.push(taskId, source, repetition, index, number);
    else this.#items.push([taskId, source, repetition, index, number]);
  }
}

/** The records of an encoded {@linkcode RecordBatch}. @throws {LeatError} `data_loss` */
export function decodeRecords(bytes: Uint8Array): JournalRecord[] {
  try {
    const items = decodeMessage(bytes) as (Uint8Array | number[])[];
    return items.flatMap((item) => Array.isArray(item) ? splitsOf(item) : decodeRecord(item));
  } catch (error) {
    throw new LeatError("data_loss", "A record of the journal cannot be read", { cause: error });
  }
}

/** Copies the bytes first: payloads of the record are views of this copy. */
function decodeRecord(bytes: Uint8Array): JournalRecord {
  return decodeMessage(bytes.slice()) as JournalRecord;
}

function splitsOf(numbers: readonly number[]): SplitAssigned[] {
  const records: SplitAssigned[] = [];
  for (let at = 0; at < numbers.length; at += SPLIT_NUMBERS) {
    const [taskId = 0, source = 0, repetition = 0, index = 0, number = 0] = numbers.slice(
      at,
      at + SPLIT_NUMBERS,
    );
    records.push({ type: "split_assigned", taskId, source, repetition, index, number });
  }
  return records;
}
