/** What the checkers of the dispatcher's journal detect. */
import type { Journal } from "../../../actors/dispatcher/journal/journal.ts";
import type { JournalRecord } from "../../../actors/dispatcher/journal/records.ts";
import { DispatcherState } from "../../../actors/dispatcher/state/state.ts";
import { JournalChecker } from "../../../sim/checkers/journal.ts";
import { SplitOwners } from "../../../sim/checkers/splits/split_owners.ts";
import { NO_FAULTS } from "../../../sim/faults/options.ts";
import { runDynamic } from "../../../sim/workloads/workload_dynamic.ts";
import { assertEquals, assertMatch } from "../../assert.ts";

const CREATED: JournalRecord = { type: "cluster_created", clusterId: "c" };
const STARTED: JournalRecord = { type: "dispatcher_started", incarnation: "1-1", wallMs: 0 };

/** A journal without a disk, whose commits complete immediately, or never. */
function journal(isDurable: boolean): Journal {
  return {
    append: () => {},
    committed: () => isDurable ? undefined : new Promise(() => {}),
    close: () => Promise.resolve(),
  };
}

/** One life that journals these records, and applies `applied` to its state. */
function live(
  checker: JournalChecker,
  isDurable: boolean,
  records: readonly JournalRecord[],
  applied = records,
): void {
  const state = new DispatcherState();
  const watched = checker.begin(journal(isDurable), state);
  for (const record of records) watched.append(record);
  watched.committed();
  for (const record of applied) state.apply(record);
}

/** The state that these records give. */
function stateOf(...records: JournalRecord[]): DispatcherState {
  const state = new DispatcherState();
  for (const record of records) state.apply(record);
  return state;
}

Deno.test("JournalChecker accepts a life that continues from the durable records, and a prefix of the others", () => {
  for (const [isDurable, left] of [[true, 2], [false, 2], [false, 1], [false, 0]] as const) {
    const checker = new JournalChecker();
    live(checker, isDurable, [CREATED, STARTED]);
    checker.begin(journal(true), stateOf(...[CREATED, STARTED].slice(0, left)));
    checker.end();
    assertEquals(checker.found, []);
  }
});

Deno.test("JournalChecker detects a life that starts without records that were reported durable", () => {
  const checker = new JournalChecker();
  live(checker, true, [CREATED, STARTED]);
  checker.begin(journal(true), stateOf(CREATED));
  assertEquals(checker.found.length, 1);
  assertMatch(checker.found[0]!, /no journal of the one before gives, of which 2 of 2/);
});

Deno.test("JournalChecker detects a state that differs from its journal", () => {
  const checker = new JournalChecker();
  live(checker, true, [CREATED, STARTED], [CREATED]);
  checker.end();
  assertEquals(checker.found, ["after 2 records the state is not what the journal gives"]);
});

Deno.test("every simulated run reveals a dispatcher that applies what it does not journal", async () => {
  const dropping = (): (journal: Journal) => Journal => {
    let count = 0;
    return (inner) => ({
      append: (record) => ++count === 10 ? undefined : inner.append(record),
      committed: () => inner.committed(),
      close: () => inner.close(),
    });
  };
  const { checkers } = await runDynamic({ seed: 1n, faults: NO_FAULTS, wrapJournal: dropping });
  assertEquals(checkers.includes("journal"), true);
});

/** Two tasks of one iteration. */
function owners(): SplitOwners {
  const found = new SplitOwners();
  for (const taskId of [1, 2]) {
    found.note({ type: "task_created", taskId, iterationId: 7, worker: `w${taskId}`, seed: "0" });
  }
  return found;
}

Deno.test("SplitOwners detects a DYNAMIC split that is assigned twice, whatever happened to its first task", () => {
  const found = owners();
  const split = { type: "split_assigned", source: 0, repetition: 0, index: 3, number: 1 } as const;
  assertEquals(found.note({ ...split, taskId: 1 }), undefined);
  assertEquals(found.note({ ...split, taskId: 1, index: 4 }), undefined);
  found.note({ type: "task_ended", taskId: 1, why: "worker_lost" });
  assertMatch(
    found.note({ ...split, taskId: 2 })!,
    /split 0\/0\/3 .* task 2, though task 1 has it/,
  );
});

const ASSIGNED = { type: "sequence_assigned", number: 1, series: 0 } as const;
const OPENED = { type: "client_opened", iterationId: 7, requestId: "r" } as const;

Deno.test("SplitOwners detects a DETERMINISTIC split with two tasks, but accepts the reassignment of a lost one", () => {
  const split = { type: "sequence_assigned", sequence: 5, number: 1, series: 0 } as const;
  const twice = owners();
  assertEquals(twice.note({ ...split, taskId: 1 }), undefined);
  assertMatch(twice.note({ ...split, taskId: 2 })!, /split 5 of iteration 7/);
  const lost = owners();
  lost.note({ ...split, taskId: 1 });
  lost.note({ type: "task_ended", taskId: 1, why: "worker_lost" });
  assertEquals(lost.note({ ...split, taskId: 2 }), undefined);
});

/** Two tasks of a stream that starts at a split; no consumer has joined. */
function ownersOfStream(numConsumers: number, startAt: number, ...behind: number[]): SplitOwners {
  const found = owners();
  const parameters = {
    datasetId: "1",
    processingMode: "DETERMINISTIC",
    sharing: false,
    numConsumers,
  } as const;
  found.note({ type: "job_created", owner: "anyone", jobId: 3, name: "j", parameters });
  const iteration = { type: "iteration_created", iterationId: 7, jobId: 3 } as const;
  found.note({ ...iteration, repetition: 0, seed: "0", startAt, behind });
  return found;
}

/**
 * One of the consumers joins. Returns a function that reports all splits before one as received.
 */
function come(found: SplitOwners, consumerIndex: number, startAt?: number, ...behind: number[]) {
  const beginning = startAt === undefined ? {} : { startAt, behind };
  found.note({ ...OPENED, clientId: 10 + consumerIndex, consumerIndex, ...beginning });
  const received = { type: "sequences_received", iterationId: 7, consumerIndex, done: [] } as const;
  return (mark: number) => found.note({ ...received, mark });
}

/** Assigns splits to task 1. */
function give(found: SplitOwners, ...sequences: number[]): void {
  for (const sequence of sequences) {
    assertEquals(found.note({ ...ASSIGNED, taskId: 1, sequence }), undefined);
  }
}

Deno.test("SplitOwners accepts splits repeated for a consumer that starts before the others", () => {
  for (const [startAt, ...behind] of [[0], [1], [4, 1], [undefined]]) {
    const found = ownersOfStream(3, 2);
    come(found, 0, 2);
    // Of the splits before the others' positions it has received these.
    const received = come(found, 1, 0);
    give(found, 0, 1);
    received(2);
    come(found, 2, startAt, ...behind as number[]);
    assertEquals(found.note({ ...ASSIGNED, taskId: 2, sequence: 1 }), undefined);
    assertMatch(found.note({ ...ASSIGNED, taskId: 1, sequence: 1 })!, /split 1 .* task 2 has it/);
  }
});

Deno.test("SplitOwners detects a split repeated for a consumer that was expected", () => {
  for (const [startAt, ...behind] of [[0], [1], [4, 1], [undefined]]) {
    const found = ownersOfStream(2, 0);
    const received = come(found, 0, 0);
    give(found, 0, 1, 2);
    received(2);
    // Nobody has the splits that consumer 1 may need, so their tasks keep them until it joins.
    come(found, 1, startAt, ...behind as number[]);
    assertMatch(found.note({ ...ASSIGNED, taskId: 2, sequence: 1 })!, /split 1 .* task 1 has it/);
  }
});

Deno.test("SplitOwners detects a split repeated for a consumer that does not need it", () => {
  const found = ownersOfStream(3, 2);
  come(found, 0, 2);
  const received = come(found, 1, 0);
  give(found, 0, 1);
  received(2);
  come(found, 2, 2, 0);
  assertEquals(found.note({ ...ASSIGNED, taskId: 2, sequence: 0 }), undefined);
  assertMatch(found.note({ ...ASSIGNED, taskId: 2, sequence: 1 })!, /split 1 .* task 1 has it/);
});

Deno.test("SplitOwners detects a split repeated while another consumer waits for it, but not after that has left", () => {
  for (const hasLeft of [false, true]) {
    const found = ownersOfStream(4, 2);
    come(found, 0, 2);
    come(found, 1, 0);
    give(found, 0, 1);
    come(found, 2, 0)(2);
    if (hasLeft) {
      found.note({ type: "client_released", clientId: 11, why: "released", nextRound: null });
    }
    come(found, 3, 0);
    const wrong = found.note({ ...ASSIGNED, taskId: 2, sequence: 1 });
    if (hasLeft) assertEquals(wrong, undefined);
    else assertMatch(wrong!, /split 1 .* task 1 has it/);
  }
});

Deno.test("SplitOwners detects runs of splits that two tasks write", () => {
  const found = owners();
  const run = { type: "save_run_assigned", first: 0, count: 4 } as const;
  assertEquals(found.note({ ...run, taskId: 1 }), undefined);
  assertEquals(found.note({ ...run, taskId: 2, first: 4 }), undefined);
  assertMatch(
    found.note({ ...run, taskId: 2, first: 3, count: 2 })!,
    /3 to 5 .* task 1 has 0 to 4/,
  );
  const written = { type: "save_run_written", attempt: "a", elements: 0, sizeBytes: 0 } as const;
  found.note({ ...written, taskId: 1 });
  assertEquals(found.note({ ...run, taskId: 1, count: 3 }), undefined);
});
