/**
 * The journals in `journals.json`: those of dispatchers in simulated clusters, as they were on disk
 * when they were compacted or when the run ended, and the state that each gives.
 */
import {
  decodeRecords,
  type JournalRecord,
  RecordBatch,
} from "../../actors/dispatcher/journal/records.ts";
import { decodeSnapshot, encodeSnapshot } from "../../actors/dispatcher/journal/snapshot.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import type { LogContents } from "../../actors/runtime/durable_log.ts";
import { SimDisk } from "../../sim/engine/disk.ts";
import { drawOptions } from "../../sim/workloads/swarm.ts";
import { WORKLOADS } from "../../sim/workloads/workloads.ts";

/** Runs whose journals are considered, for each workload. */
const SEEDS = 12;
/** Longer journals are skipped to keep the fixtures small. */
const BYTES_MAX = 16 << 10;

/** Records that no short run writes: a kept dataset, consumers' positions, and a lister's death. */
const BY_HAND: readonly JournalRecord[] = [
  { type: "cluster_created", clusterId: "c" },
  {
    ...{ type: "dataset_registered", owner: "anyone", transient: true, datasetId: "d" },
    ...{ fingerprint: "f", graph: new Uint8Array([1, 2]), cardinality: -2 },
  },
  { type: "dataset_kept", datasetId: "d" },
  {
    ...{ type: "job_created", jobId: 1, name: "job", owner: "anyone" },
    parameters: { datasetId: "d", processingMode: "OFF", sharing: false, numConsumers: 2 },
  },
  { type: "iteration_created", iterationId: 2, jobId: 1, repetition: 0, seed: "7" },
  { type: "rounds_reached", iterationId: 2, round: 17 },
  {
    ...{ type: "lister_died", iterationId: 2, worker: "a", code: "aborted" },
    message: "out of memory",
  },
];

/** One journal. */
export interface JournalFixture {
  /** The name of its run. */
  name: string;
  /** In Base64, like all bytes here; null if the log was never compacted. */
  snapshot: string | null;
  records: string[];
  /** A snapshot of the state that it gives. */
  state: string;
}

/** The types of the records of a journal. */
export function typesOf({ records }: LogContents): Set<JournalRecord["type"]> {
  return new Set(records.flatMap(decodeRecords).map(({ type }) => type));
}

/** The state that a journal gives. */
export function replayed({ snapshot, records }: LogContents): DispatcherState {
  const state = snapshot === undefined
    ? new DispatcherState()
    : DispatcherState.restore(decodeSnapshot(snapshot));
  for (const record of records.flatMap(decodeRecords)) state.apply(record);
  return state;
}

/** Records as they are written together. */
export function encodeRecords(records: readonly JournalRecord[]): Uint8Array {
  const batch = new RecordBatch();
  for (const record of records) batch.add(record);
  return batch.encode();
}

/** `journals.json` as the current code would write it: journals with every type of record. */
export async function makeJournals(): Promise<JournalFixture[]> {
  const byHand = { snapshot: undefined, records: [encodeRecords(BY_HAND)] };
  const chosen = [fixtureOf("records written by hand", byHand)];
  const seen = new Set<JournalRecord["type"]>();
  for (const [workload, run] of Object.entries(WORKLOADS)) {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const journals = await journalsOf(() => run(drawOptions(BigInt(seed))));
      for (const [i, journal] of journals.entries()) {
        const fresh = [...typesOf(journal)].filter((type) => !seen.has(type));
        if (fresh.length === 0 || bytesOf(journal) > BYTES_MAX) continue;
        for (const type of fresh) seen.add(type);
        chosen.push(fixtureOf(`${workload} ${seed}, log ${i + 1}`, journal));
      }
    }
  }
  return chosen;
}

function bytesOf({ snapshot, records }: LogContents): number {
  return records.reduce((sum, { byteLength }) => sum + byteLength, snapshot?.byteLength ?? 0);
}

function fixtureOf(name: string, journal: LogContents): JournalFixture {
  return {
    name,
    snapshot: journal.snapshot?.toBase64() ?? null,
    records: journal.records.map((record) => record.toBase64()),
    state: encodeSnapshot(replayed(journal).snapshot()).toBase64(),
  };
}

/** The contents of every log opened during a run, before each compaction and at the end. */
async function journalsOf(run: () => Promise<unknown>): Promise<LogContents[]> {
  const whole: LogContents[] = [];
  const open = SimDisk.prototype.open;
  const ends: (() => void)[] = [];
  SimDisk.prototype.open = async function (name, life) {
    const log = await open.call(this, name, life);
    let contents = await log.read();
    const add = () => void whole.push(contents);
    ends.push(add);
    const { append, compact } = log;
    log.append = (record) => {
      contents = { ...contents, records: [...contents.records, record.slice()] };
      append.call(log, record);
    };
    log.compact = (snapshot) => {
      add();
      contents = { snapshot: snapshot.slice(), records: [] };
      return compact.call(log, snapshot);
    };
    return log;
  };
  try {
    await run();
  } finally {
    SimDisk.prototype.open = open;
  }
  for (const end of ends) end();
  return whole;
}
