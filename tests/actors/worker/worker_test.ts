/** The worker: the configuration of its caches and schedulers, and how it leaves. */
import {
  dispatcherAt,
  type DispatcherProtocol,
  NAME_TAKEN,
  type TaskStatus,
} from "../../../actors/dispatcher/protocol.ts";
import { PRESSED_IDLE_MS } from "../../../actors/exactly_once/repeats.ts";
import type { FencedRef } from "../../../actors/runtime/ref.ts";
import type { ActorContext } from "../../../actors/runtime/actor.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import type { ElementReaderProtocol, WorkerProtocol } from "../../../actors/worker/protocol.ts";
import { type RunnerFactory, TASK_FENCED } from "../../../actors/worker/runner/runner.ts";
import { createWorker } from "../../../actors/worker/worker.ts";
import type { WorkerOptions } from "../../../actors/worker/worker_options.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { LeatError } from "../../../core/error.ts";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { until } from "../../lib/until.ts";
import { testInVirtualTime } from "../../lib/virtual_time.ts";

/** Runners that never have an element. */
const IDLE: RunnerFactory = {
  start: () => ({ next: () => Promise.withResolvers<never>().promise, bytesRead: 0, dispose() {} }),
  listSplits: () => Promise.resolve([]),
  close: () => Promise.resolve(),
};

/** The kind of the proxies of a worker that starts none. */
const NO_PROXY = () => ({ create: () => ({ handlers: {} }) });

/** A worker that runs nothing, unless the options say otherwise. */
function spawnWorker(
  system: ActorSystem,
  options: Partial<WorkerOptions> = {},
): FencedRef<WorkerProtocol> {
  return system.spawn<WorkerProtocol>({
    name: "worker",
    create: (context) =>
      createWorker(context, {
        name: "w",
        dispatcher: dispatcherAt("bench"),
        runners: IDLE,
        proxies: { cache: NO_PROXY, reads: NO_PROXY },
        ...options,
      }),
  });
}

const TASK = {
  clusterId: "c",
  taskId: 1,
  iterationId: 1,
  jobId: 1,
  owner: "o",
  dataset: { datasetId: "d", graph: new Uint8Array(), fingerprint: "", cardinality: -1 },
  parameters: { datasetId: "d", processingMode: "OFF", sharing: false, numConsumers: 3 },
  repetition: 0,
  seed: "0000000000000007",
};

/** The config with which a worker starts a scheduler of coordinated reads. */
async function schedulerOf(options: Partial<WorkerOptions>): Promise<unknown> {
  const placed = Promise.withResolvers<unknown>();
  const world = new DenoWorld({ logLevel: "off" });
  const system = new ActorSystem({ node: "bench", world });
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        workerHeartbeat: ({ tasks }: { tasks: unknown[] }) => ({
          kind: "work",
          newTasks: tasks.length === 0 ? [TASK] : [],
          endedTasks: [],
        }),
      } as never,
    }),
  });
  const kind = (config: unknown) => {
    placed.resolve(config);
    return { create: () => ({ handlers: {} }) };
  };
  spawnWorker(system, {
    proxies: { cache: kind, reads: kind },
    ...options,
  });
  const { task: _task, ...config } = await placed.promise as Record<string, unknown>;
  await system.stop();
  return config;
}

Deno.test("a worker configures its schedulers by its options", async () => {
  assertEquals(await schedulerOf({}), { numConsumers: 3, skipAfterMs: 100 });
  assertEquals(
    await schedulerOf({ skipAfterMs: 7, roundsBytesMax: 1_000 }),
    { numConsumers: 3, skipAfterMs: 7, heldBytesMax: 1_000 },
  );
});

testInVirtualTime(
  "a worker that has left ignores the refusal of an earlier heartbeat",
  async (time) => {
    const system = new ActorSystem({ node: "bench", world: time.world("bench") });
    const late = Promise.withResolvers<never>();
    let heartbeats = 0;
    let hasLeft = false;
    system.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: () => ({
        handlers: {
          workerHeartbeat: ({ leaving = false }: { leaving?: boolean }) => {
            if (leaving) hasLeft = true;
            else if (++heartbeats === 2) return late.promise;
            return { kind: "work", newTasks: [], endedTasks: [] };
          },
        } as never,
      }),
    });
    const refusals: unknown[] = [];
    const worker = spawnWorker(system, {
      heartbeatMs: 1,
      onRefused: (error) => void refusals.push(error),
    });
    await time.until(() => heartbeats === 2);
    await system.ask(worker, "leave", null, { timeoutMs: 60_000 });
    late.reject(new LeatError("failed_precondition", "The worker has left"));
    await time.sleep(1);
    await system.stop();
    assertEquals({ hasLeft, heartbeats, refusals }, { hasLeft: true, heartbeats: 2, refusals: [] });
  },
);

Deno.test("a worker whose name another identity has waits until it gets the name", async () => {
  const said: string[] = [];
  const world = new DenoWorld({ logLevel: "warn", print: (_, line) => void said.push(line) });
  const system = new ActorSystem({ node: "bench", world });
  const registered = Promise.withResolvers<"registered">();
  let isTaken = true;
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        workerHeartbeat() {
          if (isTaken) {
            isTaken = false;
            throw new LeatError("permission_denied", "The worker belongs to another", {
              details: { reason: NAME_TAKEN },
            });
          }
          registered.resolve("registered");
          return { kind: "work", newTasks: [], endedTasks: [] };
        },
      } as never,
    }),
  });
  const refused = Promise.withResolvers<LeatError>();
  spawnWorker(system, {
    heartbeatMs: 1,
    onRefused: refused.resolve,
  });
  assertEquals(await Promise.race([registered.promise, refused.promise]), "registered");
  assertEquals(said.length, 1);
  assertMatch(said[0]!, /"w" waits for the dispatcher at bench: The worker belongs to another/);
  await system.stop();
});

testInVirtualTime("a worker that waits for a name logs so every ten seconds", async (time) => {
  const said: string[] = [];
  const world = time.world("bench");
  world.log = (_level, line) => void said.push(line);
  const system = new ActorSystem({ node: "bench", world });
  let heartbeats = 0;
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        workerHeartbeat() {
          heartbeats++;
          throw new LeatError("permission_denied", "The worker belongs to another", {
            details: { reason: NAME_TAKEN },
          });
        },
      } as never,
    }),
  });
  spawnWorker(system);
  await time.sleep(25_000);
  assert(heartbeats > 20, `${heartbeats}`);
  assertEquals(said.length, 3);
  await system.stop();
});

Deno.test("a worker whose dispatcher's address is another worker's says so while it waits", async () => {
  const said = Promise.withResolvers<string>();
  const world = new DenoWorld({ logLevel: "warn", print: (_, line) => said.resolve(line) });
  const system = new ActorSystem({ node: "bench", world });
  spawnWorker(system);
  assertMatch(
    await said.promise,
    /"w" waits .* No dispatcher runs at bench.*give the dispatcher's address/,
  );
  await system.stop();
});

Deno.test("a worker repeats in heartbeats what is known of a completed task only if the dispatcher may lack it", async () => {
  const system = new ActorSystem({ node: "bench", world: new DenoWorld({ logLevel: "off" }) });
  const task = { ...TASK, parameters: { datasetId: "d", processingMode: "OFF", sharing: false } };
  const heard: TaskStatus[] = [];
  let answer: () => object = () => ({});
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        workerHeartbeat: ({ tasks: [status] }: { tasks: TaskStatus[] }) => {
          const newTasks = status === undefined ? [task] : [];
          if (status?.completed === true && status.stats === undefined) heard.push(status);
          else if (status?.completed === true) heard.splice(0, heard.length, status);
          return { kind: "work", newTasks, endedTasks: [], ...answer() };
        },
      } as never,
    }),
  });
  const next = () => Promise.resolve({ kind: "end" } as const);
  spawnWorker(system, {
    runners: { ...IDLE, start: () => ({ next, bytesRead: 0, dispose() {} }) },
    heartbeatMs: 1,
  });
  const lacking = (): object => {
    answer = () => ({});
    return { lacksFigures: true };
  };
  const failing = (): never => {
    answer = () => ({});
    throw new LeatError("internal", "The dispatcher has failed");
  };
  for (const event of [undefined, lacking, failing]) {
    if (event !== undefined) answer = event;
    await until(() => answer !== event && heard.length >= 4 && heard[0]!.stats !== undefined);
    assertEquals(heard[0]!.source?.node, "bench");
    assertEquals(heard.slice(1, 4), Array(3).fill({ taskId: 1, completed: true }));
    heard.splice(0);
  }
  await system.stop();
});

Deno.test("a worker asks at once for the new tasks that an answer had no room for", async () => {
  const system = new ActorSystem({ node: "bench", world: new DenoWorld({ logLevel: "off" }) });
  const reported: number[][] = [];
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        workerHeartbeat: ({ tasks }: { tasks: readonly TaskStatus[] }) => {
          reported.push(tasks.map(({ taskId }) => taskId));
          const more = tasks.length === 0 ? { newTasks: [TASK], hasMoreTasks: true } : {};
          return { kind: "work", newTasks: [], endedTasks: [], ...more };
        },
      } as never,
    }),
  });
  spawnWorker(system, {
    // A task that became readable would be reported at once, too.
    placement: { reads: "nowhere" },
    heartbeatMs: 3_600_000,
  });
  await until(() => reported.length === 2);
  await system.stop();
  assertEquals(reported, [[], [TASK.taskId]]);
});

Deno.test("a worker reports what a fenced task has produced, and drops it then", async () => {
  const system = new ActorSystem({ node: "bench", world: new DenoWorld({ logLevel: "off" }) });
  const parameters = { datasetId: "d", processingMode: "OFF", sharing: false };
  const produced: (number | undefined)[] = [];
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        workerHeartbeat: ({ tasks: [status] }: { tasks: readonly TaskStatus[] }) => {
          produced.push(status?.stats?.produced);
          const newTasks = produced.length === 1 ? [{ ...TASK, parameters }] : [];
          return { kind: "work", newTasks, endedTasks: [] };
        },
      } as never,
    }),
  });
  const isReported = Promise.withResolvers<void>();
  const details = { reason: TASK_FENCED };
  const error = { code: "failed_precondition", message: "The task has ended", details } as const;
  const outcomes = [
    isReported.promise.then(() => ({ kind: "element", frame: new Uint8Array(8) } as const)),
    isReported.promise.then(() => ({ kind: "error", error } as const)),
  ];
  const next = () => outcomes.shift() ?? Promise.withResolvers<never>().promise;
  const worker = spawnWorker(system, {
    runners: { ...IDLE, start: () => ({ next, bytesRead: 0, dispose() {} }) },
    heartbeatMs: 3_600_000,
  });
  await until(() => produced.at(-1) === 0);
  isReported.resolve();
  await until(() => produced.at(-1) === 1);
  await until(async () => {
    await system.ask(worker, "wake", null, { timeoutMs: 60_000 });
    return produced.at(-1) === undefined;
  });
  await system.stop();
});

/** Starts a dispatcher that gives a worker its first tasks. Returns what the worker reported last. */
function assign(system: ActorSystem, newTasks: readonly unknown[]): () => readonly TaskStatus[] {
  let reported: readonly TaskStatus[] = [];
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        workerHeartbeat: ({ tasks }: { tasks: readonly TaskStatus[] }) => {
          reported = tasks;
          return { kind: "work", newTasks: tasks.length === 0 ? newTasks : [], endedTasks: [] };
        },
      } as never,
    }),
  });
  return () => reported;
}

Deno.test("a draining worker drops a task that has nothing left, and keeps what is completed or has failed", async () => {
  const system = new ActorSystem({ node: "bench", world: new DenoWorld({ logLevel: "off" }) });
  const parameters = { datasetId: "d", processingMode: "OFF", sharing: false };
  const newTasks = [1, 2, 3].map((taskId) => ({ ...TASK, taskId, parameters }));
  const reported = assign(system, newTasks);
  const error = { code: "not_found", message: "A file is missing" } as const;
  const outcomes = [
    Promise.withResolvers<never>().promise,
    Promise.resolve({ kind: "end" } as const),
    Promise.resolve({ kind: "error", error, isFinal: true } as const),
  ];
  const start = () => {
    const outcome = outcomes.shift()!;
    return { next: () => outcome, bytesRead: 0, dispose() {} };
  };
  const worker = spawnWorker(system, { runners: { ...IDLE, start }, heartbeatMs: 1 });
  await until(() =>
    reported().some(({ completed }) => completed) &&
    reported().some(({ stats }) => stats?.failure !== undefined)
  );
  assertEquals(reported().map(({ taskId }) => taskId), [1, 2, 3]);
  assertEquals(
    await system.ask(worker, "drain", { timeoutMs: 60_000 }, { timeoutMs: 60_000 }),
    true,
  );
  await until(() => reported().length < 3);
  await system.stop();
  assertEquals(reported().map(({ taskId }) => taskId), [2, 3]);
});

testInVirtualTime(
  "a draining worker keeps a task until a silent client has what it lacks, or was silent for PRESSED_IDLE_MS",
  async (time) => {
    for (const isBack of [true, false]) {
      const system = new ActorSystem({ node: "bench", world: time.world(`bench ${isBack}`) });
      const parameters = { datasetId: "d", processingMode: "OFF", sharing: false };
      const newTasks = [1, 2].map((taskId) => ({ ...TASK, taskId, parameters }));
      const reported = assign(system, newTasks);
      const start = () => {
        const given = [Promise.resolve({ kind: "element", frame: new Uint8Array(100) } as const)];
        const next = () => given.shift() ?? Promise.withResolvers<never>().promise;
        return { next, bytesRead: 0, dispose() {} };
      };
      const worker = spawnWorker(system, { runners: { ...IDLE, start }, heartbeatMs: 1_000 });
      const source = await time.until(() => reported().find(({ taskId }) => taskId === 1)?.source);
      const client = Promise.withResolvers<ActorContext>();
      system.spawn<ElementReaderProtocol>({
        name: "client",
        create: (context) => ({
          // The task cannot reach it.
          handlers: { askAgain: () => Promise.withResolvers<never>().promise },
          start: () => client.resolve(context),
        }),
      });
      const context = await client.promise;
      const kindOf = async (sequence: number, acknowledged: number) => {
        const request = { clientId: 0, sequence, acknowledged };
        return (await context.ask(source, "getElement", request, { timeoutMs: 60_000 })).kind;
      };
      const held = () => reported().map(({ taskId }) => taskId);
      assertEquals(await kindOf(1, 0), "element");
      // Nobody fetches the element of task 2.
      system.ask(worker, "drain", { timeoutMs: 600_000 }, { timeoutMs: 600_000 }).catch(() => {});
      await time.sleep(PRESSED_IDLE_MS - 5_000);
      assertEquals(held(), [1, 2]);
      if (isBack) {
        assertEquals(await kindOf(1, 0), "element");
        await time.sleep(PRESSED_IDLE_MS - 5_000);
        assertEquals(await kindOf(2, 1), "end");
      } else await time.sleep(5_000);
      await time.sleep(5_000);
      assertEquals(held(), [2]);
      await system.stop();
    }
  },
);
