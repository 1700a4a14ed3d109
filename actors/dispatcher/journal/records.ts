/**
 * The records of the dispatcher's journal: everything that ever changed its state. A record holds
 * every id, time and seed that was drawn, so that applying it again gives the same state.
 *
 * @module
 */
import { LeatError, type LeatErrorCode, type WireError } from "../../../core/error.ts";
import { decodeMessage, encodeMessage, type MessageSlab } from "../../../transport/codec.ts";
import type { WrittenRun } from "../../../data/saved/distributed/work.ts";
import type { FencedRef } from "../../runtime/ref.ts";
import type { ElementSourceProtocol, WorkerProtocol } from "../../worker/protocol.ts";
import type { DatasetDefinition, JobParameters } from "../protocol.ts";

/** One change of the dispatcher's state. */
export type JournalRecord =
  | { readonly type: "cluster_created"; readonly clusterId: string }
  /** A dispatcher began to work on this journal. */
  | { readonly type: "dispatcher_started"; readonly incarnation: string; readonly wallMs: number }
  | ({
    readonly type: "dataset_registered";
    /** The name of the identity that registered it. */
    readonly owner: string;
    readonly transient?: true;
  } & DatasetDefinition)
  /** One that was transient is so no more. */
  | { readonly type: "dataset_kept"; readonly datasetId: string }
  /** A transient one that no job uses. */
  | { readonly type: "dataset_forgotten"; readonly datasetId: string }
  | {
    readonly type: "job_created";
    readonly jobId: number;
    /** Null: the job is its only client's own. */
    readonly name: string | null;
    /** The name of the identity that began it. */
    readonly owner: string;
    readonly parameters: JobParameters;
    /** Static policies: the workers that share it. */
    readonly workers?: readonly string[];
  }
  | {
    readonly type: "iteration_created";
    readonly iterationId: number;
    readonly jobId: number;
    readonly repetition: number;
    readonly seed: string;
    /** DETERMINISTIC: the split that the reader begins with. */
    readonly startAt?: number;
    /** Splits before it of which the reader needs rows once more, ascending. */
    readonly behind?: readonly number[];
    /** Who alone reads it. */
    readonly run?: { readonly stream: string; readonly runId: string };
  }
  /** No task will produce anything more. */
  | { readonly type: "iteration_finished"; readonly iterationId: number }
  /** The iteration, its tasks and, when it was its last, its job are forgotten. */
  | { readonly type: "iteration_collected"; readonly iterationId: number }
  | {
    readonly type: "worker_registered";
    readonly name: string;
    readonly worker: FencedRef<WorkerProtocol>;
    readonly tags: readonly string[];
    readonly process?: string;
    readonly isPrivate?: boolean;
    /** The name of the identity that has registered it. */
    readonly owner?: string;
  }
  /** Its tasks have ended by records of their own. */
  | { readonly type: "worker_lost"; readonly name: string; readonly wallMs: number }
  | {
    readonly type: "task_created";
    readonly taskId: number;
    readonly iterationId: number;
    readonly worker: string;
    readonly seed: string;
  }
  /** Clients can read it there. */
  | {
    readonly type: "task_ready";
    readonly taskId: number;
    readonly source: FencedRef<ElementSourceProtocol>;
  }
  /** It has produced everything. */
  | { readonly type: "task_completed"; readonly taskId: number }
  /** It is fenced: no split for it, no client at it. */
  | { readonly type: "task_ended"; readonly taskId: number; readonly why: TaskEnd }
  /** The process or thread that ran the task's pipeline has died. */
  | {
    readonly type: "runner_died";
    readonly taskId: number;
    /** Counts the task's runners that died. */
    readonly number: number;
    /** What it ran; see `Deaths`. */
    readonly place: number | null;
    readonly code: LeatErrorCode;
    /** How it ended. */
    readonly message: string;
  }
  | {
    readonly type: "client_opened";
    readonly clientId: number;
    readonly iterationId: number;
    readonly requestId: string;
    readonly consumerIndex: number | null;
    /** A digest of what has to be presented with its requests. */
    readonly secret?: string;
    readonly process?: string;
    /** DETERMINISTIC: what it reads, of which its job may be a chain. */
    readonly stream?: string;
    /** It was restored: what that is named by, the same for all chains. Who was it before reads no more. */
    readonly restoration?: string;
    /** With which others it was started. */
    readonly runId?: string;
    /** DETERMINISTIC with consumers: where it begins. */
    readonly startAt?: number;
    readonly behind?: readonly number[];
  }
  | {
    readonly type: "client_released";
    readonly clientId: number;
    readonly why: "released" | "gone" | "timed_out";
    /** Coordinated reads: its next round, as last heard. */
    readonly nextRound: number | null;
  }
  | {
    readonly type: "splits_listed";
    readonly iterationId: number;
    /** Per source, start and stop of each split in turn. */
    readonly bounds: readonly Float64Array[];
    readonly digest: string;
  }
  /** The iteration cannot go on: its splits cannot be listed or saved, or its runners keep dying. */
  | {
    readonly type: "iteration_failed";
    readonly iterationId: number;
    readonly error: WireError;
  }
  | {
    readonly type: "split_assigned";
    readonly taskId: number;
    readonly source: number;
    readonly repetition: number;
    readonly index: number;
    /** Counts the task's requests for this source. */
    readonly number: number;
  }
  /** DETERMINISTIC: a split is produced by this task from now on. */
  | {
    readonly type: "sequence_assigned";
    readonly taskId: number;
    readonly sequence: number;
    /** Counts the task's requests of this series. */
    readonly number: number;
    readonly series: number;
  }
  /** DETERMINISTIC: what the reader has whole: all before `mark`, and these. */
  | {
    readonly type: "sequences_received";
    readonly iterationId: number;
    readonly mark: number;
    readonly done: readonly number[];
    /** With consumers: which of them has it. */
    readonly consumerIndex?: number;
  }
  /** A save has begun, or goes on: what its folder holds. */
  | {
    readonly type: "save_begun";
    readonly iterationId: number;
    readonly id: string;
    /** How many splits the ledger's entries have, and how many those are. */
    readonly entered: number;
    readonly entries: number;
    readonly written: readonly WrittenRun[];
    readonly elements: number;
    readonly sizeBytes: number;
  }
  /** A task writes these splits from now on. */
  | {
    readonly type: "save_run_assigned";
    readonly taskId: number;
    readonly first: number;
    readonly count: number;
  }
  /** It has. */
  | {
    readonly type: "save_run_written";
    readonly taskId: number;
    readonly attempt: string;
    readonly elements: number;
    readonly sizeBytes: number;
  }
  /** A task makes the next entry of the folder's ledger from now on, up to this split. */
  | { readonly type: "save_entry_assigned"; readonly taskId: number; readonly upTo: number }
  /** It has, and has written so much itself. */
  | {
    readonly type: "save_entry_written";
    readonly taskId: number;
    readonly elements: number;
    readonly sizeBytes: number;
  }
  /** What older versions wrote in the place of the next: all tasks of a schedule. */
  | {
    readonly type: "schedule_proposed";
    readonly iterationId: number;
    readonly version: number;
    readonly fromRound: number;
    readonly taskIds: readonly number[];
    /** How far beyond the newest round known `fromRound` is. */
    readonly distance: number;
  }
  /**
   * A schedule is proposed. Only how its tasks differ from those of the newest one, proposed or in force,
   * is written: each worker that comes or goes changes it.
   */
  | {
    readonly type: "schedule_changed";
    readonly iterationId: number;
    readonly version: number;
    readonly fromRound: number;
    readonly added: readonly number[];
    readonly removed: readonly number[];
    readonly distance: number;
  }
  | {
    readonly type: "schedule_accepted";
    readonly iterationId: number;
    readonly version: number;
    readonly clientId: number;
    /** The first round that its training loop was not given. */
    readonly deliveredRound?: number;
    /** What it holds beyond that of tasks that the schedule leaves out. */
    readonly heldRounds?: readonly number[];
  }
  | {
    readonly type: "schedule_committed";
    readonly iterationId: number;
    readonly version: number;
    /** Schedules older than this serve no round that anybody still wants. */
    readonly oldestVersion: number;
    /** See `RoundSchedule`. */
    readonly kept?: readonly number[];
  }
  /** Written now and then, so that a restarted dispatcher knows about where the consumers are. */
  | { readonly type: "rounds_reached"; readonly iterationId: number; readonly round: number }
  /** All consumers end at this round, those too that are yet to come. */
  | { readonly type: "rounds_ended"; readonly iterationId: number; readonly round: number };

/** Records of a kind, or of several. */
export type RecordOf<T extends JournalRecord["type"]> = Extract<
  JournalRecord,
  { readonly type: T }
>;

/** Why a task ended. */
export type TaskEnd =
  /** Its worker was not heard of for too long. */
  | "worker_lost"
  /** Its worker has begun a new life. */
  | "worker_restarted"
  /** It died on a worker that lives: its place in the data is lost, and another takes it from here. */
  | "task_failed"
  /** The clients that could read it have left, and no other can. */
  | "unread"
  /** Its save was ended by a client. */
  | "cancelled"
  /** Its iteration has failed. */
  | "iteration_failed"
  /** The consumers of a coordinated read cannot reach it. */
  | "unreachable";

/** The one kind of record there are many of: journaled as its numbers alone. */
type SplitAssigned = RecordOf<"split_assigned">;
/** How many numbers stand for one {@linkcode SplitAssigned}. */
const SPLIT_NUMBERS = 5;

/**
 * Records that are journaled together: a crash leaves all of them or none, as it must what one turn
 * has decided.
 */
export class RecordBatch {
  /** Encoded records, and runs of splits as numbers one after the other. */
  readonly #items: (Uint8Array | number[])[] = [];
  readonly #encoding: { readonly slab?: MessageSlab };

  /** @param slab Where records and batch are written. Default: each has a buffer of its own. */
  constructor(slab?: MessageSlab) {
    this.#encoding = slab === undefined ? {} : { slab };
  }

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  /** @throws {LeatError} `invalid_argument` for a record that cannot be written; the batch stays as it was. */
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

/**
 * The records of an encoded {@linkcode RecordBatch}.
 *
 * @throws {LeatError} `data_loss` for bytes that are none.
 */
export function decodeRecords(bytes: Uint8Array): JournalRecord[] {
  try {
    const items = decodeMessage(bytes) as (Uint8Array | number[])[];
    return items.flatMap((item) => Array.isArray(item) ? splitsOf(item) : decodeRecord(item));
  } catch (error) {
    throw new LeatError("data_loss", "A record of the journal cannot be read", { cause: error });
  }
}

/** From a buffer of its own, which the record's payloads go on using. */
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
