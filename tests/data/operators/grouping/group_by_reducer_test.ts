/** `groupByReducer`: folds by key. */

import { Dataset, LeatError, TensorSpec } from "../../../../mod.ts";
import { assertEquals, assertThrows } from "../../../assert.ts";
import { assertCheckpointLaw } from "../../lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn, turn } from "../../lib/collect.ts";

const lists = {
  key: (x: number) => x % 3,
  init: (key: number) => [key],
  reduce: (state: number[], x: number) => [...state, x],
};

Deno.test("groupByReducer gives one element for each key, in numeric order", async () => {
  const dataset = Dataset.from([5, -2, 12, 3, -2, 0]).groupByReducer({ ...lists, key: (x) => x });
  assertEquals(await collect(dataset), [[-2, -2, -2], [0, 0], [3, 3], [5, 5], [12, 12]]);
  assertEquals(await collect(Dataset.range(0).groupByReducer(lists)), []);
  const named = Dataset.range(6).groupByReducer({
    ...lists,
    finalize: (state, key) => `${key} of ${state.length}`,
  });
  assertEquals(await collect(named), ["0 of 3", "1 of 3", "2 of 3"]);
});

Deno.test("groupByReducer awaits asynchronous functions", async () => {
  const later = <A extends unknown[], R>(fn: (...args: A) => R) => async (...args: A) => {
    await turn();
    return fn(...args);
  };
  const { key, init, reduce } = lists;
  const dataset = Dataset.range(5).map(later((x: number) => x)).groupByReducer({
    key: later(key),
    init: later(init),
    reduce: later(reduce),
    finalize: later((state: number[]) => state.length),
  });
  assertEquals(await collect(dataset), [3, 3, 2]);
});

Deno.test("groupByReducer: a failure loses its element, or its key", async () => {
  const failing = Dataset.range(7).map(failingOn(3)).groupByReducer({
    key: (x) => x === 4 ? 0.5 : x % 3,
    init: (key) => [key],
    reduce: (state: number[], x) => [...state, failingOn(6)(x)],
    finalize: (state) => state.map(failingOn(5)),
  });
  assertEquals(await collectWithErrors(failing), [
    "error data_loss",
    "error invalid_argument",
    "error data_loss",
    [0, 0],
    [1, 1],
    "error data_loss",
  ]);
});

Deno.test("groupByReducer continues from every checkpoint, while it reads and while it gives", async () => {
  const { key, init } = lists;
  await assertCheckpointLaw(() =>
    Dataset.range(9).shuffle(4).map(failingOn(5)).groupByReducer({
      key,
      init,
      reduce: async (state: number[], x, { random }) => {
        await turn();
        return [...state, x + random.int(100)];
      },
      finalize: (state, _key, { random, index }) => [...state, index, random.int(100)],
    })
  );
});

Deno.test("groupByReducer can be serialised, knows its spec and refuses non-functions", async () => {
  const spec = new TensorSpec("int64", []);
  const counted = Dataset.range(4).groupByReducer({
    key: (x, { n }) => x % n,
    init: () => 0n,
    reduce: (count: bigint) => count + 1n,
    captures: { n: 3 },
    spec,
  });
  assertEquals(counted.elementSpec, spec);
  assertEquals(await collect(Dataset.deserialize(counted.serialize(), { trustPipeline: true })), [
    2n,
    1n,
    1n,
  ]);
  assertThrows(
    () => Dataset.range(1).groupByReducer({ ...lists, init: 0 as never }),
    LeatError,
    "groupByReducer: init must be a function",
  );
});

Deno.test("groupByReducer refuses an endless dataset, whose keys never complete", () => {
  assertThrows(() => Dataset.counter().groupByReducer(lists), LeatError, "groupByWindow");
});
