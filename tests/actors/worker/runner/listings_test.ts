/** Listings of splits on a worker: how many run, which are shared, and which are dropped. */
import type { DatasetDefinition } from "../../../../actors/dispatcher/protocol.ts";
import type { World } from "../../../../actors/runtime/world.ts";
import { Listings } from "../../../../actors/worker/runner/listings.ts";
import { LeatError } from "../../../../core/error.ts";
import type { SplitBounds } from "../../../../data/sharding/split_table.ts";
import { assertEquals, assertRejects } from "../../../assert.ts";

/** Listings that end when the test says so, with a manual clock. */
class Bench {
  nowMs = 0;
  readonly begun: { readonly name: number; end(table?: SplitBounds): Promise<void> }[] = [];
  /** Whether a stopped listing continues anyway. */
  isDeaf = false;
  readonly #timers = new Map<() => void, number>();
  readonly listings = new Listings(
    {
      nowMs: () => this.nowMs,
      timer: (delayMs: number, fn: () => void) => {
        this.#timers.set(fn, this.nowMs + delayMs);
        return { cancel: () => this.#timers.delete(fn) };
      },
    } as unknown as World,
    { listSplits: (graph, signal) => this.#begin(graph, signal!) },
  );

  list(
    name: number,
    deadlineMs = Infinity,
    { datasetId = `d${name}`, owner = "a" } = {},
  ): Promise<SplitBounds> {
    const dataset: DatasetDefinition = {
      datasetId,
      graph: new Uint8Array([name]),
      fingerprint: `${name}`,
      cardinality: -1,
    };
    const listed = this.listings.list(dataset, owner, deadlineMs);
    listed.catch(() => {});
    return listed;
  }

  get names(): number[] {
    return this.begun.map(({ name }) => name);
  }

  async pass(ms: number): Promise<void> {
    this.nowMs += ms;
    for (const [fire, atMs] of this.#timers) if (atMs <= this.nowMs) fire();
    await new Promise((resolve) => setTimeout(resolve, 0));
  }

  #begin(graph: Uint8Array, signal: AbortSignal): Promise<SplitBounds> {
    const { promise, resolve, reject } = Promise.withResolvers<SplitBounds>();
    if (!this.isDeaf) signal.addEventListener("abort", () => reject(signal.reason));
    const end = async (table: SplitBounds = []) => {
      resolve(table);
      await new Promise((resolve) => setTimeout(resolve, 0));
    };
    this.begun.push({ name: graph[0]!, end });
    return promise;
  }
}

Deno.test("Listings runs two at a time of an identity, and shares one that has not begun", async () => {
  const bench = new Bench();
  const first = bench.list(1);
  bench.list(2);
  const many = Array.from({ length: 50 }, () => bench.list(3));
  const again = bench.list(1); // the first has begun, and may have missed what came since
  assertEquals(bench.names, [1, 2]);
  const table = [Float64Array.of(0, 9)];
  await bench.begun[0]!.end(table);
  assertEquals(await first, table);
  assertEquals(bench.names, [1, 2, 3]);
  await bench.begun[1]!.end();
  assertEquals(bench.names, [1, 2, 3, 1]);
  await bench.begun[2]!.end(table);
  for (const one of many) assertEquals(await one, table);
  await bench.begun[3]!.end();
  assertEquals(await again, []);
});

Deno.test("Listings drops and stops listings that are no longer waited for", async () => {
  const bench = new Bench();
  const begun = bench.list(1, 10);
  const other = bench.list(2);
  const queued = bench.list(3, 10);
  const shared = [bench.list(4, 10), bench.list(4, 1_000)];
  await bench.pass(10);
  assertEquals((await assertRejects(() => begun, LeatError)).code, "deadline_exceeded");
  assertEquals((await assertRejects(() => queued, LeatError)).code, "deadline_exceeded");
  assertEquals(bench.names, [1, 2, 4]); // its second asker still waits
  for (const { end } of bench.begun) await end();
  assertEquals(await Promise.all([other, ...shared]), [[], [], []]);
});

Deno.test("Listings continues next to listings that cannot be stopped", async () => {
  const bench = new Bench();
  bench.isDeaf = true;
  const stuck = [bench.list(1, 10), bench.list(2, 10)];
  const next = bench.list(3, 20);
  await bench.pass(10);
  for (const one of stuck) {
    assertEquals((await assertRejects(() => one, LeatError)).code, "deadline_exceeded");
  }
  assertEquals(bench.names, [1, 2, 3]);
  await bench.begun[2]!.end();
  assertEquals(await next, []);
});

Deno.test("Listings tells datasets with the same id apart", async () => {
  const bench = new Bench();
  bench.list(1);
  bench.list(2);
  const ofOne = bench.list(3, Infinity, { datasetId: "d" });
  const ofOther = bench.list(4, Infinity, { datasetId: "d" });
  for (let i = 0; i < 4; i++) await bench.begun[i]!.end([Float64Array.of(0, i)]);
  assertEquals(await ofOne, [Float64Array.of(0, 2)]);
  assertEquals(await ofOther, [Float64Array.of(0, 3)]);
});

Deno.test("Listings begins a listing of another identity at once, however many one identity has waiting", async () => {
  const bench = new Bench();
  for (let name = 1; name <= 50; name++) bench.list(name);
  assertEquals(bench.names, [1, 2]);
  const other = bench.list(100, Infinity, { owner: "b" });
  assertEquals(bench.names, [1, 2, 100]);
  await bench.begun[2]!.end();
  assertEquals(await other, []);
  assertEquals(bench.names, [1, 2, 100]);
});

Deno.test("Listings serves the identities that wait in turn, the one with the fewest first", async () => {
  const bench = new Bench();
  for (const name of [1, 2, 3, 4]) bench.list(name);
  for (const name of [11, 12, 13]) bench.list(name, Infinity, { owner: "b" });
  bench.list(21, Infinity, { owner: "c" });
  bench.list(22, Infinity, { owner: "c" });
  bench.list(31, 1_000, { owner: "d" });
  for (let i = 0; i < 8; i++) await bench.begun[i]!.end();
  assertEquals(bench.names.slice(0, 3), [1, 2, 11]);
  // Whoever has none goes first, of these whose last one began first.
  assertEquals(bench.names.slice(3), [21, 3, 12, 31, 22, 4, 13]);
});

Deno.test("Listings shares none between identities, whose turns differ", async () => {
  const bench = new Bench();
  for (const name of [1, 2, 3]) bench.list(name);
  const other = bench.list(3, Infinity, { owner: "b" });
  assertEquals(bench.names, [1, 2, 3]);
  await bench.begun[2]!.end();
  assertEquals(await other, []);
});
