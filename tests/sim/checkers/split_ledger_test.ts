/** What the checker of assigned splits detects at the end. */
import { SplitLedger } from "../../../sim/checkers/splits/split_ledger.ts";
import { assertEquals } from "../../assert.ts";

const DISPATCHER = { node: "dispatcher", path: "/dispatcher", incarnation: "1-1" };
const LOST_TASK = 1;
const LIVING_TASK = 2;
const ELEMENTS = 10;

/** The findings if these elements are missing, and each request got its element, or no answer. */
function found(
  requests: readonly { readonly taskId: number; readonly element?: number }[],
  missing: readonly number[],
  epochs: readonly { readonly taskId: number; readonly repetition: number }[] = [],
): string[] {
  const found: string[] = [];
  const ledger = new SplitLedger({ add: (what) => found.push(what) }, ELEMENTS);
  if (epochs.length > 0) {
    const worker = { node: "worker", path: "/worker", incarnation: "2-0" };
    const ids = { id: 1_000, number: 1_000 };
    ledger.observe({
      type: "send",
      envelope: {
        kind: "reply",
        source: DISPATCHER,
        target: worker,
        ...ids,
        body: { kind: "work", newTasks: epochs, endedTasks: [] },
      },
    });
  }
  for (const [id, { taskId, element }] of requests.entries()) {
    const task = { node: "worker", path: `/tasks/${taskId}`, incarnation: `2-${taskId}` };
    const body = { taskId, number: id + 1, source: 0, repetition: 0 };
    const ids = { id, number: id + 1 };
    ledger.observe({
      type: "deliver",
      envelope: {
        kind: "ask",
        source: task,
        target: DISPATCHER,
        ...ids,
        method: "getSplit",
        body,
        timeoutMs: 1_000,
      },
    });
    if (element === undefined) continue;
    const split = { start: element, stop: element + 1, index: element };
    ledger.observe({
      type: "send",
      envelope: {
        kind: "reply",
        source: DISPATCHER,
        target: task,
        ...ids,
        body: { split, total: ELEMENTS },
      },
    });
  }
  ledger.expectLost(missing, (taskId) => taskId === LOST_TASK);
  return found;
}

Deno.test("SplitLedger accepts missing elements of a lost task, and one for each of its open requests", () => {
  const requests = [
    { taskId: LOST_TASK, element: 0 },
    { taskId: LIVING_TASK, element: 1 },
    { taskId: LOST_TASK },
    { taskId: LIVING_TASK },
  ];
  assertEquals(found(requests, []), []);
  assertEquals(found(requests, [0, 2]), []);
  assertEquals(found(requests, [0, 2, 3]).length, 1);
});

Deno.test("SplitLedger detects a missing element of a living task, and an unassigned one", () => {
  const requests = [{ taskId: LOST_TASK, element: 0 }, { taskId: LIVING_TASK, element: 1 }];
  assertEquals(found(requests, [0, 1]), [
    "element 1 is missing, of task 2, which was not lost",
  ]);
  assertEquals(found(requests, [0, 2]), [
    "elements 2 are missing, which no task was assigned; lost tasks had 0 requests without an answer",
  ]);
});

Deno.test("SplitLedger distinguishes splits of different epochs", () => {
  const requests = [{ taskId: LOST_TASK, element: 0 }, { taskId: LIVING_TASK, element: 0 }];
  assertEquals(found(requests, []), [
    "split 0/0/0/0 was assigned to request 1 of task 1 for source 0, then to request 2 of task 2 for source 0",
  ]);
  const epochs = [{ taskId: LOST_TASK, repetition: 0 }, { taskId: LIVING_TASK, repetition: 1 }];
  assertEquals(found(requests, [0], epochs), []);
  assertEquals(found(requests, [ELEMENTS], epochs), [
    `element ${ELEMENTS} is missing, of task 2, which was not lost`,
  ]);
});
