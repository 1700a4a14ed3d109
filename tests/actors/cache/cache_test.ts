/**
 * The sliding-window cache as an actor before a real task.
 *
 * @module
 */
import { createCache } from "../../../actors/cache/cache.ts";
import { LeatError } from "../../../core/error.ts";
import { Dataset } from "../../../mod.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { opened, TaskBench } from "../lib/task_bench.ts";

/** A bench with a cache before its task. An element of the pipeline is some 100 bytes. */
function cached(dataset: Dataset<unknown>, windowBytesMax: number) {
  const bench = new TaskBench(dataset);
  const cache = bench.spawn({
    name: "cache",
    create: (context) => createCache(context, { task: bench.task, windowBytesMax }),
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
  const { produced, served } = await bench.system.ask(cache, "stats", null, { timeoutMs: 1_000 });
  assertEquals([produced <= 22, served], [true, 40]);
});

Deno.test("cache lets a fast trainer run on while another does not read at all", async () => {
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
  const stats = await bench.system.ask(cache, "stats", null, { timeoutMs: 1_000 });
  assertEquals(
    stats.bufferedBytes <= 10_000,
    true,
    `the window holds ${stats.bufferedBytes} bytes`,
  );
  assertEquals(stats.skipped, next - 1);
});

Deno.test("cache continues a trainer that comes back under its id as another client", async () => {
  const { bench, read } = cached(Dataset.range(100).repeat(), 1 << 20);
  await using _ = bench;
  assertEquals([await read("t", 1), await read("t", 1)], [0, 1]);
  assertEquals(await read("t", 2), 2);
});

Deno.test("cache refuses an element larger than its window, naming both sizes", async () => {
  const { bench, read } = cached(Dataset.range(10).map(() => new Float64Array(1_000)), 500);
  await using _ = bench;
  const message = String(await read("t", 1));
  assertEquals(/element of 8\d{3} bytes .* window of 500 bytes/.test(message), true, message);
});

Deno.test("cache refuses a request that does not say whose it is", async () => {
  const { bench, cache } = cached(Dataset.range(10), 1 << 20);
  await using _ = bench;
  const error = await assertRejects(() => bench.get(cache, 1), LeatError, "trainerId");
  assertEquals(error.code, "invalid_argument");
});

Deno.test("cache bounds its window also where every element fails", async () => {
  const failing = Dataset.range(10).repeat().map((): number => {
    throw new RangeError("a bad element");
  });
  const { bench, cache, read } = cached(failing, 10_000);
  await using _ = bench;
  await read("slow", 1);
  for (let i = 0; i < 200; i++) await read("fast", 2);
  await read("slow", 1);
  const stats = await bench.system.ask(cache, "stats", null, { timeoutMs: 1_000 });
  assertEquals(stats.skipped > 150, true, `the slow trainer skipped ${stats.skipped}`);
  assertEquals(stats.bufferedBytes <= 10_000, true, `${stats.bufferedBytes} bytes`);
});
