/** Tasks: clients get every element once, and a task runs a bounded way ahead of them. */
import { LeatError } from "../../../../core/error.ts";
import { isLast, type TaskSourceStats } from "../../../../actors/worker/protocol.ts";
import type { RunnerFactory, RunnerOutcome } from "../../../../actors/worker/runner/runner.ts";
import { Dataset } from "../../../../mod.ts";
import { encodeMessage } from "../../../../transport/codec.ts";
import { compressFrame } from "../../../../transport/compression.ts";
import { assertEquals, assertRejects } from "../../../assert.ts";
import { until } from "../../../lib/until.ts";
import { opened, TaskBench } from "../../lib/task_bench.ts";

Deno.test("task gives each element to exactly one client, then the end to all", async () => {
  await using bench = new TaskBench(Dataset.range(6));
  const got: unknown[] = [];
  for (let i = 0; i < 3; i++) {
    for (const client of [1, 2]) got.push(opened(await bench.get(bench.task, client)));
  }
  assertEquals(got, [0, 1, 2, 3, 4, 5]);
  assertEquals(opened(await bench.get(bench.task, 1)), "end");
  assertEquals(opened(await bench.get(bench.task, 2)), "end");
  assertEquals(bench.completed, true);
});

Deno.test("task answers a repeated request with the same element", async () => {
  await using bench = new TaskBench(Dataset.range(3));
  const ask = (sequence: number, acknowledged: number) =>
    bench.system.ask(bench.task, "getElement", { clientId: 1, sequence, acknowledged }, {
      timeoutMs: 60_000,
    });
  assertEquals(opened(await ask(1, 0)), 0);
  assertEquals(opened(await ask(1, 0)), 0);
  assertEquals(opened(await ask(2, 1)), 1);
  const error = await assertRejects(() => ask(1, 1), LeatError);
  assertEquals(error.code, "aborted");
});

Deno.test("task reports a failed element and continues with the next", async () => {
  const dataset = Dataset.range(3).map((x) => {
    if (x === 1) throw new RangeError("element one is bad");
    return x;
  });
  await using bench = new TaskBench(dataset);
  const got: unknown[] = [];
  for (let i = 0; i < 4; i++) got.push(opened(await bench.get(bench.task, 1)));
  assertEquals([got[0], got[2], got[3]], [0, 2, "end"]);
  assertEquals(String(got[1]).includes("element one is bad"), true);
});

Deno.test("task starts its runner ahead of requests, and tells it whose it is and when a client waits", async () => {
  const started: (string | undefined)[] = [];
  let isAsked = false;
  const runnersOf = (runners: RunnerFactory): RunnerFactory => ({
    start: (settings, splits, caller) => {
      started.push(caller?.owner);
      caller?.asked?.then(() => isAsked = true);
      return runners.start(settings, splits);
    },
    listSplits: (graph) => runners.listSplits(graph),
    close: () => runners.close(),
  });
  await using bench = new TaskBench(Dataset.range(3), { runnersOf });
  await bench.system.ask(bench.task, "stats", null, { timeoutMs: 60_000 });
  assertEquals([started, isAsked], [["a"], false]);
  assertEquals(opened(await bench.get(bench.task, 1)), 0);
  assertEquals(isAsked, true);
});

/** Runners that die of this at their first step. */
function dyingOf(message: string): (runners: RunnerFactory) => RunnerFactory {
  return (runners) => ({
    start: (settings, splits) => {
      const runner = runners.start(settings, splits);
      return {
        next: () => Promise.reject(new LeatError("unavailable", message)),
        bytesRead: 0,
        dispose: () => runner.dispose(),
      };
    },
    listSplits: (graph) => runners.listSplits(graph),
    close: () => runners.close(),
  });
}

Deno.test("task reports the death of its runner also if the error could not be sent as it is", async () => {
  const message = `\udc00${"x".repeat(2 ** 17)}`;
  await using bench = new TaskBench(Dataset.range(3), { runnersOf: dyingOf(message) });
  await bench.get(bench.task, 1);
  const { error } = bench.deaths[0]!;
  assertEquals(error, { code: "unavailable", message: `\ufffd${"x".repeat(16_383)}…` });
});

Deno.test("task whose runner dies reports it and starts another while the dispatcher allows it, and never reports an end of the data", async () => {
  await using bench = new TaskBench(Dataset.range(3), { runnersOf: dyingOf("out of memory") });
  const answers: unknown[] = [];
  for (let i = 0; i < 2; i++) {
    const answer = await bench.get(bench.task, 1);
    answers.push([opened(answer), isLast(answer)]);
  }
  const died = ["out of memory", false];
  assertEquals(answers, [died, died]);
  // The worker ends a task that is fenced; the dispatcher tells clients why.
  const third = bench.get(bench.task, 1);
  third.catch(() => {});
  await until(() => bench.fenced);
  const error = { code: "unavailable", message: "out of memory" } as const;
  assertEquals(bench.deaths, [1, 2, 3].map((number) => ({ taskId: 1, number, error })));
  await bench.system.stopActor("task");
  assertEquals((await assertRejects(() => third, LeatError)).code, "not_found");
  assertEquals([bench.completed, bench.unreadable], [false, false]);
});

Deno.test("task asks its new runner although the one that died has answered only some of its steps", async () => {
  const open: ReturnType<typeof Promise.withResolvers<RunnerOutcome>>[] = [];
  let runnersStarted = 0;
  const runnersOf = (runners: RunnerFactory): RunnerFactory => ({
    start: (settings, splits) => {
      const runner = runners.start(settings, splits);
      if (++runnersStarted > 1) return runner;
      return {
        next: () => {
          const step = Promise.withResolvers<RunnerOutcome>();
          open.push(step);
          return step.promise;
        },
        bytesRead: 0,
        dispose: () => runner.dispose(),
      };
    },
    listSplits: (graph) => runners.listSplits(graph),
    close: () => runners.close(),
  });
  await using bench = new TaskBench(Dataset.range(3), { runnersOf });
  const answers = [1, 2].map((client) => bench.get(bench.task, client));
  // Two that the clients wait for, and two ahead of them.
  await until(() => open.length === 4);
  open.pop()!.reject(new LeatError("unavailable", "out of memory"));
  assertEquals((await Promise.all(answers)).map(opened), ["out of memory", 0]);
  for (const step of open) step.resolve({ kind: "end" });
  const rest: unknown[] = [];
  for (let i = 0; i < 3; i++) rest.push(opened(await bench.get(bench.task, 1)));
  assertEquals(rest, [1, 2, "end"]);
});

Deno.test("task reports the beginning of a long failure: each heartbeat carries those of all tasks", async () => {
  const error = new LeatError("data_loss", "damaged ".repeat(2_000)).toWire();
  const failing = {
    bytesRead: 0,
    next: () => Promise.resolve({ kind: "error", error, isFinal: true }),
    dispose() {},
  };
  const runnersOf = (runners: RunnerFactory): RunnerFactory => ({
    start: () => failing as never,
    listSplits: (graph) => runners.listSplits(graph),
    close: () => runners.close(),
  });
  await using bench = new TaskBench(Dataset.range(3), { runnersOf });
  assertEquals((await bench.get(bench.task, 1)).kind, "error");
  const ask = { timeoutMs: 60_000 };
  const stats = await bench.system.ask(bench.task, "stats", null, ask) as TaskSourceStats;
  assertEquals(stats.failure?.length, 1_024);
});

Deno.test("task is drained when everything is acknowledged, not when everything is given", async () => {
  await using bench = new TaskBench(Dataset.range(1));
  const ask = (sequence: number, acknowledged: number) =>
    bench.system.ask(bench.task, "getElement", { clientId: 1, sequence, acknowledged }, {
      timeoutMs: 60_000,
    });
  assertEquals(opened(await ask(1, 0)), 0);
  let isDrained = false;
  const drained = bench.drain().then(() => isDrained = true);
  // The answers were lost.
  assertEquals(opened(await ask(2, 0)), "end");
  assertEquals(opened(await ask(1, 0)), 0);
  assertEquals(isDrained, false);
  assertEquals(opened(await ask(3, 2)), "end");
  await drained;
});

Deno.test("task is drained when a client that got everything leaves", async () => {
  await using bench = new TaskBench(Dataset.range(1));
  assertEquals(opened(await bench.get(bench.task, 1)), 0);
  let isDrained = false;
  const drained = bench.drain().then(() => isDrained = true);
  const request = { clientId: 1, sequence: 2, acknowledged: 0 };
  await bench.system.ask(bench.task, "getElement", request, { timeoutMs: 60_000 });
  assertEquals(isDrained, false);
  bench.system.tell(bench.task, "leave", { clientId: 1 });
  await drained;
});

Deno.test("task produces no more than a few elements ahead of its clients", async () => {
  await using bench = new TaskBench(Dataset.range(1_000));
  await bench.get(bench.task, 1);
  for (let waits = 0; waits < 20; waits++) await new Promise((resolve) => setTimeout(resolve, 1));
  const { produced } = await bench.system.ask(bench.task, "stats", null, { timeoutMs: 60_000 });
  assertEquals(produced <= 4, true, `produced ${produced}`);
});

Deno.test("task asks its runner at once for small elements that clients wait for, and for two large ones", async () => {
  for (const [bytes, expected] of [[1_000, 34], [500_000, 4]] as const) {
    let asked = 0;
    const runnersOf = (runners: RunnerFactory): RunnerFactory => ({
      start: (settings, splits) => {
        const runner = runners.start(settings, splits);
        return {
          // The elements after the first few take for ever.
          next: () => ++asked <= 3 ? runner.next() : new Promise(() => {}),
          bytesRead: 0,
          dispose: () => runner.dispose(),
        };
      },
      listSplits: (graph) => runners.listSplits(graph),
      close: () => runners.close(),
    });
    const elements = Dataset.range(1_000).map(
      (_, { size }) => new Uint8Array(size),
      { captures: { size: bytes } },
    );
    await using bench = new TaskBench(elements, { runnersOf });
    for (let got = 0; got < 3; got++) await bench.get(bench.task, 1);
    const before = asked;
    for (let waiting = 0; waiting < 50; waiting++) bench.get(bench.task, 2).catch(() => {});
    await bench.system.ask(bench.task, "stats", null, { timeoutMs: 60_000 });
    assertEquals(asked - 3, expected, `${bytes} bytes, ${before} before`);
    await bench.system.stopActor("task");
  }
});

Deno.test("task produces nothing ahead beyond its limit of bytes", async () => {
  const elements = Dataset.range(1_000).map(() => new Uint8Array(1_000));
  for (const [aheadBytesMax, expected] of [[1_000, 2], [1_000_000, 3]] as const) {
    await using bench = new TaskBench(elements, { aheadBytesMax });
    const stats = () => bench.system.ask(bench.task, "stats", null, { timeoutMs: 60_000 });
    while ((await stats()).produced < 2);
    await bench.get(bench.task, 1);
    while ((await stats()).produced < expected);
    for (let waits = 0; waits < 20; waits++) await new Promise((resolve) => setTimeout(resolve, 1));
    assertEquals((await stats()).produced, expected, `${aheadBytesMax} bytes`);
  }
});

Deno.test("task gives others the element that a departed client waited for", async () => {
  const slow = Dataset.range(2).map(async (x) => {
    await Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20).value;
    return x;
  });
  await using bench = new TaskBench(slow);
  const waiting = bench.get(bench.task, 1);
  bench.system.tell(bench.task, "leave", { clientId: 1 });
  await assertRejects(() => waiting, LeatError, "has left");
  assertEquals(opened(await bench.get(bench.task, 2)), 0);
});

Deno.test("task gives the memory of sent elements back to its runner, but not of compressed ones", async () => {
  const plain = encodeMessage(new Uint8Array(10_000));
  const frames = [plain, compressFrame(plain, "zstd")!, plain.slice()];
  const sizes = frames.map(({ buffer }) => buffer.byteLength);
  const recycled: number[] = [];
  const runnersOf = (runners: RunnerFactory): RunnerFactory => ({
    listSplits: (graph) => runners.listSplits(graph),
    close: () => runners.close(),
    start: () => ({
      next: () => {
        const frame = frames.shift();
        if (frame === undefined) return Promise.withResolvers<never>().promise;
        return Promise.resolve({ kind: "element", frame });
      },
      recycle: ({ byteLength }) => void recycled.push(byteLength),
      bytesRead: 0,
      dispose() {},
    }),
  });
  await using bench = new TaskBench(Dataset.range(1), { runnersOf });
  const request = { clientId: 1, acknowledged: 0 };
  // Without an answer, as one on this thread would keep the memory.
  for (const sequence of [1, 2, 3]) {
    bench.system.tell(bench.task, "getElement", { ...request, sequence });
  }
  const limits = { timeoutMs: 60_000 };
  while ((await bench.system.ask(bench.task, "stats", null, limits)).served < 3);
  const last = { clientId: 1, sequence: 4, acknowledged: 3, waitMs: 0 };
  await bench.system.ask(bench.task, "getElement", last, limits);
  assertEquals(recycled, [sizes[0], sizes[2]]);
});
