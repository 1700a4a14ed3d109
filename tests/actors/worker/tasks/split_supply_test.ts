/** How many splits a task requests at once, by a clock that the test moves. */
import { SPLITS_AT_ONCE_MAX } from "../../../../actors/dispatcher/protocol.ts";
import { SplitSupply } from "../../../../actors/worker/tasks/task_splits.ts";
import { assertEquals } from "../../../assert.ts";

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
      const split = await supply.next(repetition);
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
  assertEquals(counts.slice(0, 3), [1, 2, 2]);
  assertEquals(Math.max(...counts), 2);
  assertEquals(await read(1, 0.01), upTo(400));
  assertEquals(Math.max(...counts), SPLITS_AT_ONCE_MAX);
});

Deno.test("SplitSupply keeps what it has for a runner that begins with earlier repetitions", async () => {
  const { supply, read } = supplyOf(20, 2);
  await read(0, 1);
  assertEquals(await read(1, 1, 3), upTo(3));
  assertEquals(await supply.next(0), undefined);
  assertEquals((await supply.next(1))?.start, 3);
  assertEquals(supply.take(1)?.start, 4);
  assertEquals(supply.take(0), undefined);
});
