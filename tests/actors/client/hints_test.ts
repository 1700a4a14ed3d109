/** When a client asks the dispatcher for news. */
import { createClient } from "../../../actors/client/client.ts";
import { Feed } from "../../../actors/client/feed.ts";
import type { ClientProtocol } from "../../../actors/client/protocol.ts";
import {
  dispatcherAt,
  type DispatcherProtocol,
  type TaskSource,
} from "../../../actors/dispatcher/protocol.ts";
import type { ScheduleNews } from "../../../actors/dispatcher/protocol_schedules.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import type { ElementSourceProtocol } from "../../../actors/worker/protocol.ts";
import { definedFields } from "../../../core/tree.ts";
import { assert, assertEquals } from "../../assert.ts";
import { settle, SteppedWorld } from "../dispatcher/lib.ts";
import { inOrder, ReaderBench, splits } from "./readers/reader_bench.ts";

const REFRESH_MS = 60_000;

/** A client of a dispatcher that has no tasks for it. */
class ClientBench implements AsyncDisposable {
  readonly world = new SteppedWorld(() => Promise.reject(new Error("nobody keeps a log")));
  readonly system = new ActorSystem({ node: "bench", world: this.world });
  heartbeats = 0;
  /** Elements requested from the only task. */
  requests = 0;
  /** Answers to heartbeats wait for it. */
  held: Promise<void> | undefined;
  tasks: TaskSource[] = [];
  schedules: ScheduleNews[] = [];
  readonly #client;

  constructor(
    parameters: { readonly numConsumers?: number; readonly sharing?: boolean } = {},
    { repetition = 0, isContinued }: { repetition?: number; isContinued?: boolean } = {},
  ) {
    this.system.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: () => ({
        handlers: {
          openIteration: () => ({
            ...{ jobId: 1, iterationId: 1, clientId: 1, clusterId: "c" },
            ...definedFields({ isContinued }),
          }),
          clientHeartbeat: async () => {
            this.heartbeats++;
            await this.held;
            const news = { kind: "rounds", schedules: this.schedules, absent: [] };
            return { kind: "whole", tasks: this.tasks, finished: false, news };
          },
          releaseClient: () => this.held?.then(() => null) ?? null,
        } as never,
      }),
    });
    this.#client = this.system.spawn<ClientProtocol>({
      name: "client",
      create: (context) =>
        createClient(context, {
          dispatcher: dispatcherAt("bench"),
          dataset: { datasetId: "d" },
          parameters: { processingMode: "OFF", sharing: false, ...parameters },
          jobName: "j",
          repetition,
          refreshMs: REFRESH_MS,
        }, new Feed()),
    });
  }

  /** Adds a task without elements. */
  addTask(): void {
    const source = this.system.spawn<ElementSourceProtocol>({
      name: "task",
      create: () => ({
        handlers: {
          getElement: () => {
            this.requests++;
            return new Promise<never>(() => {});
          },
          leave: () => null,
          stats: () => ({}) as never,
        },
      }),
    });
    this.tasks = [{ taskId: 1, worker: "w", source }];
    this.schedules = [{ version: 1, fromRound: 0, taskIds: [1] }];
  }

  async wake(): Promise<void> {
    this.system.tell(this.#client, "wake", null);
    await settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.system.stop();
  }
}

Deno.test("a client sends a heartbeat at once when woken, and otherwise once per refresh interval", async () => {
  await using bench = new ClientBench();
  await settle();
  assertEquals(bench.heartbeats, 1);
  await bench.world.advance(REFRESH_MS - 1);
  assertEquals(bench.heartbeats, 1, "also one that has no task yet waits to be told");
  await bench.wake();
  assertEquals(bench.heartbeats, 2);
  await bench.world.advance(REFRESH_MS);
  assertEquals(bench.heartbeats, 3);
});

Deno.test("a client woken several times during a heartbeat sends one more", async () => {
  await using bench = new ClientBench();
  await settle();
  const { promise, resolve } = Promise.withResolvers<void>();
  bench.held = promise;
  for (let i = 0; i < 5; i++) await bench.wake();
  assertEquals(bench.heartbeats, 2);
  resolve();
  await settle();
  assertEquals(bench.heartbeats, 3);
});

Deno.test("a client learns missed news at its next regular heartbeat", async () => {
  await using bench = new ClientBench();
  await settle();
  bench.world.fault = (point) => point === "client.miss_news";
  await bench.wake();
  assertEquals(bench.heartbeats, 1);
  await bench.world.advance(REFRESH_MS);
  assertEquals(bench.heartbeats, 2);
});

Deno.test("a stopped client asks nothing of the tasks in its last heartbeat's answer", async () => {
  for (const rounds of [{}, { numConsumers: 2 }]) {
    await using bench = new ClientBench(rounds);
    bench.addTask();
    await settle();
    assert(bench.requests > 0);
    const { promise, resolve } = Promise.withResolvers<void>();
    bench.held = promise;
    await bench.wake();
    const stopping = bench.system.stopActor("client");
    await settle();
    bench.requests = 0;
    resolve();
    await settle();
    assertEquals(bench.requests, 0);
    await stopping;
  }
});

Deno.test("a client that continues the first epoch of a former one logs a warning with the remedy, once", async () => {
  await using bench = new ClientBench({}, { isContinued: true });
  await settle();
  await bench.wake();
  assertEquals(bench.heartbeats, 2);
  const [warning, ...more] = bench.world.warnings;
  assert(
    warning!.startsWith(`Job "j" of the dispatcher at bench continues an epoch that a former`),
  );
  assert(warning!.includes("use a new jobName at each start"));
  assertEquals(more, []);
});

Deno.test("a client logs no warning of a continued epoch that is new, later, shared or divided", async () => {
  for (
    const [parameters, answer] of [
      [{}, {}],
      [{}, { isContinued: true, repetition: 1 }],
      [{ sharing: true }, { isContinued: true }],
      [{ numConsumers: 2 }, { isContinued: true }],
    ] as const
  ) {
    await using bench = new ClientBench(parameters, answer);
    await settle();
    assertEquals(bench.heartbeats, 1);
    assertEquals(bench.world.warnings, []);
  }
});

Deno.test("a client sends heartbeats until its training loop has taken what has arrived", async () => {
  const world = new SteppedWorld(() => Promise.reject(new Error("nobody keeps a log")));
  const [total, refreshMs] = [3, REFRESH_MS];
  await using bench = new ReaderBench({ total, bufferBytesMax: 1e9, refreshMs, world });
  const items = [...splits(0, total)];
  bench.addTask(() => items.shift() ?? new Promise<never>(() => {}));
  while (!bench.feed.closed) await settle();
  const before = bench.heartbeats.length;
  await world.advance(2 * REFRESH_MS);
  assertEquals(bench.heartbeats.length, before + 2);
  assertEquals(bench.heartbeats.at(-1)!.report.mark, total);
  assertEquals(await bench.rest(), inOrder(total));
  await world.advance(2 * REFRESH_MS);
  assertEquals(bench.heartbeats.length, before + 2);
});
