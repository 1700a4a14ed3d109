/**
 * The records of the dispatcher's journal: everything that ever changed its state. A record holds
 * every id, time and seed that was drawn, so that applying it again gives the same state.
 *
 * @module
 */
import { LeatError, type WireError } from "../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import type { FencedRef } from "../runtime/ref.ts";
import type { ElementSourceProtocol, WorkerProtocol } from "../worker/protocol.ts";
import type { DatasetDefinition, JobParameters } from "./protocol.ts";

/** One change of the dispatcher's state. */
export type JournalRecord =
  | { readonly type: "cluster_created"; readonly clusterId: string }
  /** A dispatcher began to work on this journal. */
  | { readonly type: "dispatcher_started"; readonly incarnation: string; readonly wallMs: number }
  | ({ readonly type: "dataset_registered" } & DatasetDefinition)
  | {
    readonly type: "job_created";
    readonly jobId: number;
    /** Null: the job is its only client's own. */
    readonly name: string | null;
    readonly parameters: JobParameters;
  }
  | {
    readonly type: "iteration_created";
    readonly iterationId: number;
    readonly jobId: number;
    readonly repetition: number;
    readonly seed: string;
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
  | {
    readonly type: "client_opened";
    readonly clientId: number;
    readonly iterationId: number;
    readonly requestId: string;
    readonly consumerIndex: number | null;
  }
  | {
    readonly type: "client_released";
    readonly clientId: number;
    readonly why: "released" | "timed_out";
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
  | {
    readonly type: "splits_failed";
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
  | {
    readonly type: "schedule_proposed";
    readonly iterationId: number;
    readonly version: number;
    readonly fromRound: number;
    readonly taskIds: readonly number[];
    /** How far beyond the newest round known `fromRound` is. */
    readonly distance: number;
  }
  | {
    readonly type: "schedule_accepted";
    readonly iterationId: number;
    readonly version: number;
    readonly clientId: number;
  }
  | {
    readonly type: "schedule_committed";
    readonly iterationId: number;
    readonly version: number;
    /** Schedules older than this serve no round that anybody still wants. */
    readonly oldestVersion: number;
  }
  /** Written now and then, so that a restarted dispatcher knows about where the consumers are. */
  | { readonly type: "rounds_reached"; readonly iterationId: number; readonly round: number };

/** Why a task ended. */
export type TaskEnd =
  /** Its worker was not heard of for too long. */
  | "worker_lost"
  /** Its worker has begun a new life. */
  | "worker_restarted"
  /** The consumers of a coordinated read cannot reach it. */
  | "unreachable";

/** The one kind of record there are many of. */
export type SplitAssigned = Extract<JournalRecord, { readonly type: "split_assigned" }>;

/** Numbers that stand for one {@linkcode SplitAssigned} in a run of them. */
const SPLIT_NUMBERS = 5;

/**
 * A record as it is journaled.
 *
 * @throws {LeatError} `invalid_argument` when it holds what cannot be written.
 */
export function encodeRecord(record: Exclude<JournalRecord, SplitAssigned>): Uint8Array {
  return encodeMessage(record);
}

/** A run of splits as it is journaled: nothing but their numbers, one after the other. */
export function encodeSplits(run: readonly SplitAssigned[]): Uint8Array {
  const numbers: number[] = [];
  for (const { taskId, source, repetition, index, number } of run) {
    numbers.push(taskId, source, repetition, index, number);
  }
  return encodeMessage(numbers);
}

/**
 * What {@linkcode encodeRecord} or {@linkcode encodeSplits} wrote.
 *
 * @throws {LeatError} `data_loss` for bytes that are neither.
 */
export function decodeRecords(bytes: Uint8Array): JournalRecord[] {
  const decoded = decodeJournaled(bytes);
  if (!Array.isArray(decoded)) return [decoded as JournalRecord];
  const records: JournalRecord[] = [];
  for (let at = 0; at + SPLIT_NUMBERS <= decoded.length; at += SPLIT_NUMBERS) {
    const [taskId, source, repetition, index, number] = decoded.slice(at, at + SPLIT_NUMBERS);
    records.push({ type: "split_assigned", taskId, source, repetition, index, number });
  }
  return records;
}

function decodeJournaled(bytes: Uint8Array): unknown {
  try {
    return decodeMessage(bytes);
  } catch (error) {
    throw new LeatError("data_loss", "A record of the journal cannot be read", { cause: error });
  }
}
