/** Waiting for work until an end comes. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { AbortRace } from "../../core/abort_race.ts";
import { assertEquals, assertRejects } from "../assert.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

Deno.test("AbortRace passes on the result of the work, and its failure", async () => {
  const ending = new AbortRace();
  assertEquals(await ending.race(Promise.resolve(1)), 1);
  await assertRejects(() => ending.race(Promise.reject(new Error("failed"))), Error, "failed");
});

Deno.test("AbortRace rejects waiting work when it is aborted, and all later work", async () => {
  const ending = new AbortRace();
  const waiting = ending.race(new Promise(() => {}));
  ending.abort(new Error("first"));
  ending.abort(new Error("second"));
  await assertRejects(() => waiting, Error, "first");
  await assertRejects(() => ending.race(Promise.resolve(1)), Error, "first");
  await assertRejects(() => ending.race(Promise.reject(new Error("late"))), Error, "first");
});

Deno.test("AbortRace keeps nothing of work that is done", async () => {
  const ending = new AbortRace();
  const results: WeakRef<object>[] = [];
  for (let i = 0; i < 10; i++) {
    results.push(new WeakRef(await ending.race(Promise.resolve(new Uint8Array(1_000)))));
  }
  // A WeakRef holds its target until the macrotask that made it is over.
  await new Promise((resolve) => setTimeout(resolve, 0));
  collectGarbage();
  // The last one may still be in a register.
  assertEquals(results.slice(0, -1).filter((result) => result.deref() !== undefined).length, 0);
});
