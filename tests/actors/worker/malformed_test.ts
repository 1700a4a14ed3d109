/**
 * Malformed requests to workers and element sources: each is refused by name, and loses no element.
 */
import { createCache } from "../../../actors/cache/cache.ts";
import { dispatcherAt } from "../../../actors/dispatcher/protocol.ts";
import { createReads } from "../../../actors/coordinated/reads.ts";
import type { FencedRef } from "../../../actors/runtime/ref.ts";
import type {
  CacheProtocol,
  ElementSourceProtocol,
  RoundSourceProtocol,
  WorkerProtocol,
} from "../../../actors/worker/protocol.ts";
import { createWorker } from "../../../actors/worker/worker.ts";
import { LeatError } from "../../../core/error.ts";
import { Dataset } from "../../../mod.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { opened, TaskBench } from "../lib/task_bench.ts";

const WANTED = { clientId: 1, sequence: 1, acknowledged: 0 };

/** A bench with one of each next to its task. */
function setup() {
  const bench = new TaskBench(Dataset.range(100), { sharing: true });
  const { task, system } = bench;
  const cache = system.spawn<CacheProtocol>({
    name: "cache",
    create: (context) =>
      createCache(context, { task, windowBytesMax: 1_000, elementBytesMax: 1_000 }),
  });
  const reads = system.spawn<RoundSourceProtocol>({
    name: "reads",
    create: (context) => createReads(context, { task, numConsumers: 1, skipAfterMs: 1_000 }),
  });
  const worker = system.spawn<WorkerProtocol>({
    name: "worker",
    create: (context) =>
      createWorker(context, {
        name: "w",
        dispatcher: dispatcherAt("nowhere"),
        runners: {
          start: () => {
            throw new LeatError("unimplemented", "It runs nothing");
          },
          listSplits: () => Promise.resolve([]),
          close: () => Promise.resolve(),
        },
        proxies: {
          cache: () => ({ create: () => ({ handlers: {} }) }),
          reads: () => ({ create: () => ({ handlers: {} }) }),
        },
      }),
  });
  const ask = (target: FencedRef<never>, method: string, request: unknown) =>
    system.ask(target as FencedRef, method as never, request as never, { timeoutMs: 60_000 });
  return { bench, task, cache, reads, worker, ask };
}

Deno.test("tasks, caches, schedulers and workers refuse a malformed request and continue", async () => {
  const { bench, task, cache, reads, worker, ask } = setup();
  await using _ = bench;
  let died = 0;
  bench.system.inspect((event) => {
    if (event.type === "stop" || event.type === "restart") died++;
  });
  const cases: [FencedRef, string, unknown, string][] = [
    [task, "getElement", null, "the request must be an object, got null"],
    [task, "getElement", { clientId: 1, sequence: 1 }, "acknowledged is missing"],
    [
      cache,
      "getElement",
      { ...WANTED, trainerId: 3 },
      "trainerId must be a text of at most 1024 characters, got 3",
    ],
    [cache, "resize", { windowBytesMax: "1" }, 'windowBytesMax must be a number, got "1"'],
    ...[NaN, Infinity, -Infinity, -1].flatMap((waitMs) =>
      [task, cache, reads].map((source): typeof cases[number] => [
        source,
        "getElement",
        { ...WANTED, waitMs },
        `waitMs must be a finite number of at least 0, got ${waitMs}`,
      ])
    ),
    [
      reads,
      "getElement",
      { ...WANTED, absent: [0, "1"] },
      'absent.1 must be a count from 0, got "1"',
    ],
    [reads, "confirm", { consumerIndex: 0, round: {} }, "round must be a count from 0, got Object"],
    [worker, "drain", null, "the request must be an object, got null"],
    [worker, "beginSave", { dataset: {} }, "dataset.datasetId is missing"],
    [worker, "listSplits", { dataset: [], owner: "a" }, "dataset.datasetId is missing"],
  ];
  for (const target of [task, cache, reads]) {
    cases.push([target, "leave", {}, "clientId is missing"]);
  }
  for (const [target, method, request, message] of cases) {
    const error = await assertRejects(
      () => ask(target as FencedRef<never>, method, request),
      LeatError,
    );
    assertEquals([error.code, error.message], ["invalid_argument", `${method}: ${message}`]);
  }
  const grown = { ...WANTED, ofALaterVersion: [1] };
  const options = { timeoutMs: 60_000 };
  const answer = bench.system.ask<ElementSourceProtocol, "getElement">(
    task,
    "getElement",
    grown,
    options,
  );
  // Which one depends on how far the scheduler has read.
  assertEquals([typeof opened(await answer), died], ["number", 0]);
});
