/** `FunctionPool`: its threads when it is closed. */
import type { Segment, ThreadFunction } from "../../../data/threads/function_threads.ts";
import { FunctionPool } from "../../../platform/threads/function_pool.ts";
import { LeatError } from "../../../core/error.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

Deno.test("FunctionPool.close ends a thread that is being started", async () => {
  const pool = new FunctionPool(1);
  const fn = { fn: null, operator: "map", number: 0 } as unknown as ThreadFunction;
  const opened = pool.open(fn, { pipeline: { threads: 1 }, operator: { value: 1 } });
  await pool.close();
  await assertRejects(() => opened.ready, LeatError, "closed");
  assertEquals(pool.usage.threads, 0);
});

Deno.test("FunctionPool.close ends the thread of a segment that is being started", async () => {
  const pool = new FunctionPool(1);
  const opening = pool.openSegment({} as Segment);
  const refused = assertRejects(() => opening, LeatError, "closed");
  await pool.close();
  await refused;
  assertEquals(pool.usage.threads, 0);
});
