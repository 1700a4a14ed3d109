/** What the checkers of the dispatcher's journal see. */
import type { Journal } from "../../actors/dispatcher/journal.ts";
import type { JournalRecord } from "../../actors/dispatcher/records.ts";
import { DispatcherState } from "../../actors/dispatcher/state.ts";
import { JournalChecker } from "../../sim/checkers/journal.ts";
import { SplitOwners } from "../../sim/checkers/split_owners.ts";
import { NO_FAULTS } from "../../sim/options.ts";
import { runDynamic } from "../../sim/workload_dynamic.ts";
import { assertEquals, assertMatch } from "../assert.ts";

const CREATED: JournalRecord = { type: "cluster_created", clusterId: "c" };
const STARTED: JournalRecord = { type: "dispatcher_started", incarnation: "1-1", wallMs: 0 };

/** A journal on no disk, whose commits are done when they are asked for, or never. */
function journal(isDurable: boolean): Journal {
  return {
    append: () => {},
    committed: () => isDurable ? undefined : new Promise(() => {}),
    close: () => Promise.resolve(),
  };
}

/** One life that journals these records, of which `applied` come into its state. */
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

Deno.test("JournalChecker accepts a life that goes on from what the one before had written, or from a part of what was not on disk", () => {
  for (const [isDurable, left] of [[true, 2], [false, 2], [false, 1], [false, 0]] as const) {
    const checker = new JournalChecker();
    live(checker, isDurable, [CREATED, STARTED]);
    checker.begin(journal(true), stateOf(...[CREATED, STARTED].slice(0, left)));
    checker.end();
    assertEquals(checker.found, []);
  }
});

Deno.test("JournalChecker sees a life that begins without what was said to be on disk", () => {
  const checker = new JournalChecker();
  live(checker, true, [CREATED, STARTED]);
  checker.begin(journal(true), stateOf(CREATED));
  assertEquals(checker.found.length, 1);
  assertMatch(checker.found[0]!, /no journal of the one before gives, of which 2 of 2/);
});

Deno.test("JournalChecker sees a state that its journal does not give", () => {
  const checker = new JournalChecker();
  live(checker, true, [CREATED, STARTED], [CREATED]);
  checker.end();
  assertEquals(checker.found, ["after 2 records the state is not what the journal gives"]);
});

Deno.test("every simulated run shows a dispatcher that applies what it does not journal", async () => {
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

Deno.test("SplitOwners sees a DYNAMIC split that is given twice, whatever became of its first task", () => {
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

Deno.test("SplitOwners sees a DETERMINISTIC split with two tasks, but not one that was lost", () => {
  const split = { type: "sequence_assigned", sequence: 5, number: 1, series: 0 } as const;
  const twice = owners();
  assertEquals(twice.note({ ...split, taskId: 1 }), undefined);
  assertMatch(twice.note({ ...split, taskId: 2 })!, /split 5 of iteration 7/);
  const lost = owners();
  lost.note({ ...split, taskId: 1 });
  lost.note({ type: "task_ended", taskId: 1, why: "worker_lost" });
  assertEquals(lost.note({ ...split, taskId: 2 }), undefined);
});

/** Two tasks of one iteration, whose consumer 0 has what is before a split. */
function ownersWithConsumer(mark: number): SplitOwners {
  const found = owners();
  found.note({ ...OPENED, clientId: 10, consumerIndex: 0 });
  for (const sequence of [0, 1, 2]) {
    assertEquals(found.note({ ...ASSIGNED, taskId: 1, sequence }), undefined);
  }
  found.note({ type: "sequences_received", iterationId: 7, consumerIndex: 0, mark, done: [] });
  return found;
}

Deno.test("SplitOwners lets a consumer that begins after the others be given again what all of these have", () => {
  for (const beginning of [{}, { startAt: 0 }, { startAt: 4, behind: [1] }]) {
    const found = ownersWithConsumer(2);
    found.note({ ...OPENED, clientId: 11, consumerIndex: 1, ...beginning });
    assertEquals(found.note({ ...ASSIGNED, taskId: 2, sequence: 1 }), undefined);
    assertMatch(found.note({ ...ASSIGNED, taskId: 1, sequence: 1 })!, /split 1 .* task 2 has it/);
  }
});

Deno.test("SplitOwners sees a split given again for a new consumer that another waits for still", () => {
  const found = ownersWithConsumer(2);
  found.note({ ...OPENED, clientId: 11, consumerIndex: 1, startAt: 3 });
  found.note({ ...OPENED, clientId: 12, consumerIndex: 2 });
  assertMatch(found.note({ ...ASSIGNED, taskId: 2, sequence: 2 })!, /split 2 .* task 1 has it/);
  // Nobody waits for it when who did has left.
  found.note({ type: "client_released", clientId: 12, why: "released", nextRound: null });
  found.note({ type: "client_released", clientId: 10, why: "released", nextRound: null });
  found.note({ ...OPENED, clientId: 13, consumerIndex: 2 });
  assertEquals(found.note({ ...ASSIGNED, taskId: 1, sequence: 2 }), undefined);
});

Deno.test("SplitOwners sees runs of splits that two tasks write", () => {
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
