/** How many splits a task requests at once, by a clock that the test moves, and who gets them. */
import { SPLITS_AT_ONCE_MAX } from "../../../../actors/dispatcher/protocol.ts";
import type { Split } from "../../../../data/sharding/splits.ts";
import { SplitSupply } from "../../../../actors/worker/tasks/task_splits.ts";
import { LeatError } from "../../../../core/error.ts";
import { assertEquals, assertRejects } from "../../../assert.ts";
import { until } from "../../../lib/until.ts";

const always = () => true;

/** A supply whose requests take `requestMs`, and the counts that it requested. */
function supplyOf(splits: number, requestMs: number) {
  const clock = { nowMs: 0 };
  const counts: number[] = [];
  const given = new Map<number, number>();
  const supply = new SplitSupply(() => clock.nowMs, (repetition, count) => {
    counts.push(count);
    clock.nowMs += requestMs;
    const first = given.get(repetition) ?? 0;
    const length = Math.min(count, splits - first);
    given.set(repetition, first + length);
    return Promise.resolve(
      Array.from(
        { length },
        (_, i) => ({ start: first + i, stop: first + i + 1, index: first + i }),
      ),
    );
  });
  /** Reads a repetition; each split takes `workMs`. */
  const read = async (repetition: number, workMs: number, splitsMax = Infinity) => {
    const starts: number[] = [];
    while (starts.length < splitsMax) {
      const split = await supply.next(repetition, always);
      if (split === undefined) break;
      starts.push(split.start);
      clock.nowMs += workMs;
    }
    return starts;
  };
  return { supply, counts, read };
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

Deno.test("SplitSupply requests one split after the other while requests are short", async () => {
  const { counts, read } = supplyOf(5, 2);
  assertEquals(await read(0, 10), upTo(5));
  assertEquals(counts, [1, 1, 1, 1, 1, 1]);
});

Deno.test("SplitSupply requests several splits at once while work on them is short", async () => {
  const { counts, read } = supplyOf(400, 2);
  assertEquals(await read(0, 4, 20), upTo(20));
  assertEquals(counts.slice(0, 4), [1, 1, 2, 2]);
  assertEquals(Math.max(...counts), 2);
  assertEquals(await read(1, 0.01), upTo(400));
  assertEquals(Math.max(...counts), SPLITS_AT_ONCE_MAX);
});

Deno.test("SplitSupply requests at most twice as many splits as last time, also for a row of calls", async () => {
  const { counts, read } = supplyOf(400, 2);
  // As with interleave, which takes its first splits in a row.
  await read(0, 0, 16);
  assertEquals(counts, [1, 1, 2, 4, 8]);
});

Deno.test("SplitSupply does not count the time until the splits are listed", async () => {
  let nowMs = 0;
  const counts: number[] = [];
  const supply = new SplitSupply(() => nowMs, (_, count) => {
    nowMs += counts.push(count) === 1 ? 60_000 : 1;
    return Promise.resolve(splitsFrom(counts.length, 1));
  });
  for (let i = 0; i < 10; i++) {
    await supply.next(0, always);
    nowMs += 100;
  }
  assertEquals(counts, Array(10).fill(1));
});

Deno.test("SplitSupply keeps what it has for a runner that begins with earlier repetitions", async () => {
  const { supply, read } = supplyOf(20, 2);
  await read(0, 1);
  assertEquals(await read(1, 1, 3), upTo(3));
  assertEquals(await supply.next(0, always), undefined);
  assertEquals((await supply.next(1, always))?.start, 3);
  assertEquals((await supply.next(1, always))?.start, 4);
});

/** A supply whose requests the test answers, and those that wait for an answer. */
function heldSupply() {
  const requests: PromiseWithResolvers<readonly Split[]>[] = [];
  const supply = new SplitSupply(() => 0, () => {
    requests.push(Promise.withResolvers());
    return requests.at(-1)!.promise;
  });
  return { supply, requests };
}

const splitsFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, i) => ({ start: first + i, stop: first + i + 1 }));

Deno.test("SplitSupply gives the next runner what a runner that died had requested", async () => {
  const { supply, requests } = heldSupply();
  let isAlive = true;
  const ofDead = supply.next(0, () => isAlive);
  await until(() => requests.length === 1);
  isAlive = false;
  const starts: unknown[] = [];
  const drained = (async () => {
    for (let split; (split = await supply.next(0, always)) !== undefined;) starts.push(split.start);
  })();
  requests[0]!.resolve(splitsFrom(0, 3));
  await until(() => requests.length === 2);
  requests[1]!.resolve(splitsFrom(3, 2));
  await until(() => requests.length === 3);
  requests[2]!.resolve([]);
  await drained;
  assertEquals(starts, upTo(5));
  assertEquals((await assertRejects(() => ofDead, LeatError)).code, "cancelled");
});

Deno.test("SplitSupply requests nothing for a runner that has died", async () => {
  const { supply, requests } = heldSupply();
  await assertRejects(() => supply.next(0, () => false), LeatError, "has ended");
  assertEquals(requests.length, 0);
});

Deno.test("SplitSupply gives splits after a request that failed", async () => {
  const { supply, requests } = heldSupply();
  const failed = supply.next(0, always);
  const next = supply.next(0, always);
  await until(() => requests.length === 1);
  requests[0]!.reject(new LeatError("unavailable", "no dispatcher"));
  await assertRejects(() => failed, LeatError, "no dispatcher");
  await until(() => requests.length === 2);
  requests[1]!.resolve(splitsFrom(0, 1));
  assertEquals((await next)?.start, 0);
});
