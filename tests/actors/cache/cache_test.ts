/** The sliding-window cache as an actor, with a real task. */
import { createCache } from "../../../actors/cache/cache.ts";
import type { Ref } from "../../../actors/runtime/ref.ts";
import type { CacheProtocol, ElementAnswer } from "../../../actors/worker/protocol.ts";
import { LeatError } from "../../../core/error.ts";
import { Dataset } from "../../../mod.ts";
import { ThreadBody } from "../../../transport/thread_body.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { opened, TaskBench } from "../lib/task_bench.ts";

/** A bench with a cache. An element of the pipeline has about 100 bytes. */
function cached(
  dataset: Dataset<unknown>,
  windowBytesMax: number,
  elementBytesMax = windowBytesMax,
) {
  const bench = new TaskBench(dataset, { sharing: true });
  const cache = bench.system.spawn<CacheProtocol>({
    name: "cache",
    create: (context) =>
      createCache(context, { task: bench.task, windowBytesMax, elementBytesMax }),
  });
  const read = async (trainerId: string, clientId: number) =>
    opened(await bench.get(cache, clientId, { trainerId }));
  return { bench, cache, read };
}

Deno.test("cache shows two trainers the same stream and produces it once", async () => {
  const { bench, cache, read } = cached(Dataset.range(100).repeat(), 1 << 20);
  await using _ = bench;
  const seen: Record<string, unknown[]> = { a: [], b: [] };
  for (let i = 0; i < 20; i++) {
    seen["a"]!.push(await read("a", 1));
    seen["b"]!.push(await read("b", 2));
  }
  assertEquals(seen["a"], Array.from({ length: 20 }, (_, i) => i));
  assertEquals(seen["b"], seen["a"]);
  const { produced, served } = await bench.system.ask(cache, "stats", null, { timeoutMs: 60_000 });
  assertEquals([produced <= 22, served], [true, 40]);
});

Deno.test("cache does not hold a fast trainer back for one that does not read", async () => {
  const element = new Float64Array(100); // 800 bytes each
  const big = Dataset.range(1_000_000).map((x, { element }) => ({ x, element }), {
    captures: { element },
  });
  const { bench, cache, read } = cached(big, 10_000);
  await using _ = bench;
  const index = async (trainer: string, client: number) =>
    (await read(trainer, client) as { x: number }).x;
  assertEquals(await index("slow", 1), 0);
  for (let i = 0; i < 200; i++) assertEquals(await index("fast", 2), i);
  const next = await index("slow", 1);
  assertEquals(next > 150, true, `slow goes on at the back of the window, at ${next}`);
  const stats = await bench.system.ask(cache, "stats", null, { timeoutMs: 60_000 });
  assertEquals(
    stats.bufferedBytes <= 10_000,
    true,
    `the window holds ${stats.bufferedBytes} bytes`,
  );
  assertEquals(stats.skipped, next - 1);
});

Deno.test("cache acknowledges its task's answers so that the task can end", async () => {
  const { bench, cache, read } = cached(Dataset.range(2), 1 << 20);
  await using _ = bench;
  for (const expected of [0, 1, "end"]) assertEquals(await read("t", 1), expected);
  const answer = await bench.system.ask(cache, "askAgain", null, { timeoutMs: 60_000 });
  assertEquals(answer, { acknowledged: 3 });
});

Deno.test("cache says that all is read when no trainer that has not left is behind", async () => {
  const { bench, cache, read } = cached(Dataset.range(100).repeat(), 1 << 20);
  await using _ = bench;
  const isRead = () => bench.system.ask(cache, "isRead", null, { timeoutMs: 60_000 });
  for (let i = 0; i < 3; i++) await read("front", 1);
  await read("behind", 2);
  await bench.system.ask(cache, "leave", { clientId: 1 }, { timeoutMs: 60_000 });
  assertEquals(await isRead(), false);
  await bench.system.ask(cache, "leave", { clientId: 2 }, { timeoutMs: 60_000 });
  assertEquals(await isRead(), true);
});

Deno.test("cache continues a trainer that returns under its id as another client", async () => {
  const { bench, read } = cached(Dataset.range(100).repeat(), 1 << 20);
  await using _ = bench;
  assertEquals([await read("t", 1), await read("t", 1)], [0, 1]);
  assertEquals(await read("t", 2), 2);
});

Deno.test("cache counts a failed element in its window with the texts of its error", async () => {
  const failing = Dataset.range(10).map((x): number => {
    throw new Error(`${x}`.padEnd(2_000, "x"));
  });
  const { bench, cache, read } = cached(failing, 10_000);
  await using _ = bench;
  for (let i = 0; i < 10; i++) await read("t", 1);
  const { bufferedBytes, sharing } = await bench.system.ask(cache, "stats", null, {
    timeoutMs: 60_000,
  });
  assert(
    bufferedBytes > 4_000 && sharing!.elements < 4,
    `${sharing!.elements} of ${bufferedBytes}`,
  );
});

Deno.test("cache refuses an element larger than all windows together, naming both sizes", async () => {
  const { bench, read } = cached(Dataset.range(10).map(() => new Float64Array(1_000)), 500);
  await using _ = bench;
  const message = String(await read("t", 1));
  assertEquals(
    /element of 8\d{3} bytes .* windowBytesMax of 500 bytes/.test(message),
    true,
    message,
  );
});

Deno.test("cache holds an element larger than its part of the windows, alone and also when that shrinks", async () => {
  const dataset = Dataset.range(1_000).repeat().map((x) => new Float64Array(1_000).fill(x));
  const { bench, cache, read } = cached(dataset, 3_000, 10_000);
  await using _ = bench;
  const numberOf = (element: unknown) => (element as Float64Array)[0]!;
  for (let i = 0; i < 5; i++) assertEquals(numberOf(await read("t", 1)), i);
  await bench.system.ask(cache, "resize", { windowBytesMax: 10 }, { timeoutMs: 60_000 });
  const { bufferedBytes, sharing } = await statsOf(bench, cache);
  assertEquals(sharing!.elements, 1);
  assert(bufferedBytes > 8_000, `${bufferedBytes} bytes`);
  const late = numberOf(await read("late", 2));
  assert(late === 4 || late === 5, `${late}`);
});

Deno.test("cache passes its task's refusal to trainers, and not as the end", async () => {
  const { bench, cache } = cached(Dataset.range(10), 1 << 20);
  await using _ = bench;
  const refuses = bench.system.spawn<CacheProtocol>({
    name: "refuses",
    create: () => ({
      handlers: {
        getElement: () => {
          throw new LeatError("permission_denied", "not yours");
        },
        leave: () => null,
      } as never,
    }),
  });
  const before = bench.system.spawn<CacheProtocol>({
    name: "before",
    create: (context) =>
      createCache(context, {
        task: refuses,
        windowBytesMax: 1 << 20,
        elementBytesMax: 1 << 20,
      }),
  });
  for (const trainerId of ["a", "b"]) {
    const answer = await bench.get(before as typeof cache, 1, { trainerId });
    assert(answer.kind === "error" && answer.isFinal === true);
    assertEquals(answer.error.code, "permission_denied");
  }
});

Deno.test("cache refuses a request without a trainer id", async () => {
  const { bench, cache } = cached(Dataset.range(10), 1 << 20);
  await using _ = bench;
  const error = await assertRejects(() => bench.get(cache, 1), LeatError, "trainerId");
  assertEquals(error.code, "invalid_argument");
});

Deno.test("cache bounds its window even if every element fails", async () => {
  const failing = Dataset.range(10).repeat().map((): number => {
    throw new RangeError("a bad element");
  });
  const { bench, cache, read } = cached(failing, 10_000);
  await using _ = bench;
  await read("slow", 1);
  for (let i = 0; i < 200; i++) await read("fast", 2);
  await read("slow", 1);
  const stats = await bench.system.ask(cache, "stats", null, { timeoutMs: 60_000 });
  assertEquals(stats.skipped > 150, true, `the slow trainer skipped ${stats.skipped}`);
  assertEquals(stats.bufferedBytes <= 10_000, true, `${stats.bufferedBytes} bytes`);
});

Deno.test("cache makes an element once and gives all trainers the same bytes", async () => {
  const TRAINERS = 64;
  const { bench, cache } = cached(Dataset.range(100).repeat(), 1 << 20);
  await using _ = bench;
  for (let i = 0; i < 10; i++) {
    const answers = await Promise.all(
      Array.from({ length: TRAINERS }, (_, t) => bench.get(cache, t, { trainerId: `${t}` })),
    );
    assertEquals(new Set(answers.map(opened)), new Set([i]));
    const buffers = new Set(answers.map((answer) => bytesOf(answer).buffer));
    assertEquals(buffers.size, 1, "on one thread nothing is copied");
    // It is not copied for another thread either: it is in shared memory.
    const { parts, transfer } = new ThreadBody(answers[0], true);
    assertEquals([(parts[0]![2] as Uint8Array).buffer, transfer.length], [[...buffers][0]!, 0]);
  }
  const { produced, served } = await statsOf(bench, cache);
  assert(produced <= 11, `${produced} elements for ${TRAINERS} times 10`);
  assertEquals(served, 10 * TRAINERS);
});

Deno.test("cache makes one element ahead while the front trainer trains", async () => {
  const { bench, cache, read } = cached(Dataset.range(100).repeat(), 1 << 20);
  await using _ = bench;
  for (let i = 0; i < 5; i++) {
    assertEquals(await read("front", 1), i);
    while ((await statsOf(bench, cache)).produced < i + 2);
  }
  for (let i = 0; i < 5; i++) assertEquals(await read("behind", 2), i);
  const { produced, sharing } = await statsOf(bench, cache);
  assertEquals(produced, 6, "nobody is at the front who asks for more");
  assertEquals([sharing!.trainers, sharing!.elements], [2, 6]);
});

Deno.test("cache counts hits and misses", async () => {
  const { bench, cache, read } = cached(Dataset.range(100).repeat(), 1 << 20);
  await using _ = bench;
  await read("a", 1);
  assertEquals((await statsOf(bench, cache)).sharing!.misses, 1);
  while ((await statsOf(bench, cache)).produced < 2);
  await read("a", 1);
  await read("b", 2);
  const { sharing, served } = await statsOf(bench, cache);
  assertEquals([sharing!.hits, sharing!.misses, served], [2, 1, 3]);
});

Deno.test("cache reports with an element how many the trainer missed before it", async () => {
  const { bench, cache, read } = cached(Dataset.range(1_000).repeat(), 4 * 1_024);
  await using _ = bench;
  assertEquals(await read("slow", 1), 0);
  for (let i = 0; i < 20; i++) await read("fast", 2);
  const answer = await bench.get(cache, 1, { trainerId: "slow" });
  const { skipped } = await statsOf(bench, cache);
  assertEquals([answer.kind === "element" && answer.skipped, skipped], [
    opened(answer) as number - 1,
    skipped,
  ]);
  assert(skipped > 10);
  const next = await bench.get(cache, 1, { trainerId: "slow" });
  assertEquals(next.kind === "element" && next.skipped, undefined);
});

Deno.test("cache counts small elements with the runtime's overhead", async () => {
  const { bench, cache, read } = cached(Dataset.range(1_000).repeat(), 10 * 1_024);
  await using _ = bench;
  for (let i = 0; i < 30; i++) await read("t", 1);
  const { bufferedBytes, sharing } = await statsOf(bench, cache);
  assertEquals([bufferedBytes, sharing!.elements], [10 * 1_024, 10]);
});

Deno.test("cache drops its oldest elements when its window shrinks", async () => {
  const { bench, cache, read } = cached(Dataset.range(1_000).repeat(), 1 << 20);
  await using _ = bench;
  for (let i = 0; i < 30; i++) await read("t", 1);
  const request = { windowBytesMax: 4 * 1_024 };
  await bench.system.ask(cache, "resize", request, { timeoutMs: 60_000 });
  const { bufferedBytes, sharing } = await statsOf(bench, cache);
  assertEquals([bufferedBytes, sharing!.windowBytesMax, sharing!.elements], [4_096, 4_096, 4]);
  assert(await read("late", 2) as number >= 26);
});

/** A pipeline that gives no element. */
const STUCK = Dataset.range(2).repeat().map((x) => x === 0 ? x : new Promise<number>(() => {}));

Deno.test("cache keeps the element that a departed client waited for, for its trainer's next client", async () => {
  const { bench, cache, read } = cached(STUCK, 1 << 20);
  await using _ = bench;
  assertEquals(await read("t", 1), 0);
  const waiting = assertRejects(() => read("t", 1), LeatError, "has left");
  await bench.system.ask(cache, "leave", { clientId: 1 }, { timeoutMs: 60_000 });
  await waiting;
  assertEquals((await statsOf(bench, cache)).served, 1);
});

Deno.test("cache answers later to a client with other sources, and keeps its pointer", async () => {
  const { bench, cache, read } = cached(STUCK, 1 << 20);
  await using _ = bench;
  assertEquals(await read("t", 1), 0);
  assertEquals((await bench.get(cache, 1, { trainerId: "t", waitMs: 1 })).kind, "later");
  const { served, skipped } = await statsOf(bench, cache);
  assertEquals([served, skipped], [1, 0]);
});

function statsOf(bench: TaskBench, cache: Ref<CacheProtocol>) {
  return bench.system.ask(cache, "stats", null, { timeoutMs: 60_000 });
}

function bytesOf(answer: ElementAnswer): Uint8Array {
  if (answer.kind !== "element") throw new Error(`no element but ${answer.kind}`);
  return answer.element.bytes;
}
