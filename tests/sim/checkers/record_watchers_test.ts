/** How checkers of the dispatcher's records judge after a crash has undone some of them. */
import type { Journal } from "../../../actors/dispatcher/journal/journal.ts";
import type { JournalRecord } from "../../../actors/dispatcher/journal/records.ts";
import { DispatcherState } from "../../../actors/dispatcher/state/state.ts";
import { JournalChecker, type RecordWatcher } from "../../../sim/checkers/journal.ts";
import { PoisonChecker } from "../../../sim/checkers/poison.ts";
import { RunsChecker } from "../../../sim/checkers/runs.ts";
import { assertEquals } from "../../assert.ts";

const PARAMETERS = { datasetId: "1", processingMode: "OFF", sharing: false } as const;
const ITERATION: readonly JournalRecord[] = [
  { type: "job_created", owner: "anyone", jobId: 3, name: "j", parameters: PARAMETERS },
  { type: "iteration_created", iterationId: 7, jobId: 3, repetition: 0, seed: "0" },
];
const ERROR = { code: "aborted", message: "Its runners died" } as const;
const FAILED: JournalRecord = { type: "iteration_failed", iterationId: 7, error: ERROR };
const GIVEN: JournalRecord = {
  type: "task_created",
  taskId: 9,
  iterationId: 7,
  worker: "w",
  seed: "0",
};

/** A client of that run is let in. */
function opened(clientId: number, runId: string): JournalRecord {
  const reader = { iterationId: 7, requestId: String(clientId), consumerIndex: 0, runId };
  return { type: "client_opened", clientId, ...reader };
}

/** The dispatcher gets the request of that client, which names the client that it replaces. */
function named(watcher: RunsChecker, clientId: number, follows: number): void {
  watcher.observe({
    type: "deliver",
    envelope: {
      kind: "ask",
      source: { node: "client", path: "/client", incarnation: "1-1" },
      target: { node: "dispatcher", path: "/dispatcher" },
      number: clientId,
      id: clientId,
      method: "openIteration",
      timeoutMs: 1_000,
      body: { requestId: String(clientId), follows },
    },
  });
}

/** A journal whose commits never complete. */
const JOURNAL: Journal = {
  append: () => {},
  committed: () => new Promise(() => {}),
  close: () => Promise.resolve(),
};

/**
 * Two lives of a dispatcher. The first appends `last` and crashes; the second appends
 * `next`.
 *
 * @param isOnDisk Whether `last` was written before the crash.
 */
function live(
  watcher: RecordWatcher,
  last: JournalRecord,
  next: JournalRecord,
  isOnDisk: boolean,
): void {
  const checker = new JournalChecker(undefined, watcher);
  const state = new DispatcherState();
  const journal = checker.begin(JOURNAL, state);
  for (const record of [...ITERATION, last]) {
    journal.append(record);
    state.apply(record);
  }
  const written = new DispatcherState();
  for (const record of isOnDisk ? [...ITERATION, last] : ITERATION) written.apply(record);
  checker.begin(JOURNAL, written).append(next);
  assertEquals(checker.found, []);
}

Deno.test("PoisonChecker finds a task of a failed job, unless the failure was lost before it was on disk", () => {
  for (const isOnDisk of [true, false]) {
    const found: string[] = [];
    live(new PoisonChecker({ add: (what) => found.push(what) }, 3), FAILED, GIVEN, isOnDisk);
    assertEquals(found, isOnDisk ? ["w was given task 9 of iteration 7, which failed"] : []);
  }
});

Deno.test("PoisonChecker finds a death of a lister after those that fail its job, unless one was lost before it was on disk", () => {
  const [first, second] = ["w", "v"].map((worker): JournalRecord => (
    { type: "lister_died", iterationId: 7, worker, code: "aborted", message: "" }
  ));
  for (const isOnDisk of [true, false]) {
    const found: string[] = [];
    live(new PoisonChecker({ add: (what) => found.push(what) }, 1), first!, second!, isOnDisk);
    const wrong = ["listing killed runner 2, of v, where 1 fail the job"];
    assertEquals(found, isOnDisk ? wrong : []);
  }
});

Deno.test("RunsChecker finds two runs in one iteration, unless the first reader was lost before it was on disk", () => {
  for (const isOnDisk of [true, false]) {
    const found: string[] = [];
    const watcher = new RunsChecker({ add: (what) => found.push(what) });
    named(watcher, 11, 10);
    // The second client may have the lost one's id.
    live(watcher, opened(10, "a"), opened(isOnDisk ? 11 : 10, "b"), isOnDisk);
    const wrong = ['client 11 of "b" reads an iteration of "a"'];
    assertEquals(found, isOnDisk ? wrong : []);
  }
});

Deno.test("RunsChecker finds a reader of an earlier run, unless all of the later one were lost before they were on disk", () => {
  for (const isOnDisk of [true, false]) {
    const found: string[] = [];
    const watcher = new RunsChecker({ add: (what) => found.push(what) });
    named(watcher, 10, 5);
    watcher.journaled({ ...opened(5, "a"), iterationId: 6 } as JournalRecord);
    live(watcher, { ...opened(10, "b"), iterationId: 7 } as JournalRecord, {
      ...opened(11, "a"),
      iterationId: 6,
    } as JournalRecord, isOnDisk);
    assertEquals(found, isOnDisk ? ['client 11 of "a" was let in after "b"'] : []);
  }
});

Deno.test("RunsChecker finds a restored reader, or the first of a run, that names no newest reader", () => {
  const restored = { ...opened(12, "a"), restoration: "r" } as JournalRecord;
  for (const next of [restored, opened(12, "b")]) {
    const wrongs = [[], [10], [11]].map((follows) => {
      const found: string[] = [];
      const watcher = new RunsChecker({ add: (what) => found.push(what) });
      for (const clientId of follows) named(watcher, 12, clientId);
      watcher.journaled(opened(10, "a"));
      watcher.journaled(opened(11, "a"));
      watcher.journaled(next);
      return found.filter((what) => what.includes("took over"));
    });
    assertEquals(wrongs, [
      ["client 12 took over from client 11, and named none"],
      ["client 12 took over from client 11, and named 10"],
      [],
    ]);
  }
});

Deno.test("RunsChecker lets readers join a run, and other consumers be restored, without naming a reader", () => {
  const found: string[] = [];
  const watcher = new RunsChecker({ add: (what) => found.push(what) });
  watcher.journaled(opened(10, "a"));
  watcher.journaled(opened(11, "a"));
  watcher.journaled({
    ...opened(12, "a"),
    consumerIndex: 1,
    restoration: "r",
  } as JournalRecord);
  assertEquals(found, []);
});
