/** Functions of one operator, and those of `reduce` and `save`: their random numbers and errors. */

import { saveGraph } from "../../../data/saved/save.ts";
import { reduceGraph } from "../../../data/reduce.ts";
import { NodeFunction } from "../../../data/udf/call.ts";
import { AUTOTUNE, Dataset, LeatError, type RandomStream } from "../../../mod.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { collect } from "../lib/collect.ts";

type Drawing = { readonly random: RandomStream };

const drawing = (_: unknown, { random }: Drawing) => random.next();
const numbers = () => Dataset.range(3).map(drawing).withOptions({ seed: 1 });

const fail = () => {
  throw new Error("no");
};

async function rejection(run: () => Promise<unknown>): Promise<string> {
  return (await assertRejects(run, LeatError)).message;
}

Deno.test("each function of groupByReducer draws its own random numbers", async () => {
  const [drawn] = await collect(
    Dataset.range(1).groupByReducer({
      key: (_, { random }) => random.int(2 ** 32),
      init: (key, { random }) => [key, random.int(2 ** 32)],
      reduce: (state: number[], _, { random }) => [...state, random.int(2 ** 32)],
      finalize: (state, _, { random }) => [...state, random.int(2 ** 32)],
    }),
  ) as [number[]];
  assertEquals(new Set(drawn).size, 4);
});

Deno.test("each function of groupByWindow draws its own random numbers", async () => {
  const [drawn] = await collect(
    Dataset.range(1).groupByWindow({
      key: (_, { random }) => random.int(2 ** 32),
      windowSize: (_, { random }) => random.int(2 ** 32) + 1,
      reduce: (key, window, { random, Dataset }) =>
        window.batch(1).flatMap(() => Dataset.from([[key, random.int(2 ** 32)]])),
    }),
  ) as [number[]];
  assertEquals(new Set(drawn).size, 2);
});

Deno.test("the functions of reduce and save draw other random numbers than the last operator", async () => {
  const isSame = (state: boolean[], x: number, { random }: Drawing) => [
    ...state,
    random.next() === x,
  ];
  assertEquals(await numbers().reduce<boolean[], never>([], isSame), [false, false, false]);
  await using folder = await TempFolder.make();
  await numbers().save(`${folder.path}/a`, {
    shardFunc: (x, { random }) => random.next() === x ? fail() : 0,
  });
});

Deno.test("an error names the function that failed, if the operator has several", async () => {
  const window = { key: () => 0, windowSize: 2, reduce: (_: number, of: Dataset<number>) => of };
  const fold = { key: () => 0, init: () => 0, reduce: (sum: number) => sum };
  const cases: [dataset: Dataset<unknown>, message: string][] = [
    [Dataset.range(4).groupByWindow({ ...window, key: fail }), "key failed at element 0: no"],
    [
      Dataset.range(4).groupByWindow({ ...window, reduce: fail }),
      "reduce failed at its call 0: no",
    ],
    [
      Dataset.range(9).groupByWindow({
        ...window,
        key: (x) => x > 5 ? 1 : 0,
        windowSize: (key) => key === 1 ? fail() : 2,
      }),
      "windowSize failed at its call 3: no",
    ],
    [Dataset.range(4).groupByReducer({ ...fold, init: fail }), "init failed at its call 0: no"],
    [
      Dataset.range(4).groupByReducer({ ...fold, finalize: fail }),
      "finalize failed at its call 0: no",
    ],
  ];
  for (const [dataset, message] of cases) {
    assertStringIncludes(await rejection(() => collect(dataset)), message);
  }
});

Deno.test("an error of the function of reduce or save does not name the last operator", async () => {
  const failing = Dataset.range(4).batch(2).reduce(0, fail);
  assertEquals(
    await rejection(() => failing),
    "reduce: the function failed at element 0: no",
  );
  await using folder = await TempFolder.make();
  const saved = Dataset.range(4).save(`${folder.path}/a`, { shardFunc: fail });
  assertEquals(
    await rejection(() => saved),
    "save: shardFunc failed at element 0: no",
  );
});

Deno.test("at and reduce refuse undefined as an iterator does", async () => {
  const dataset = Dataset.range(1).map(() => ({ a: undefined }));
  const message = await rejection(() => collect(dataset));
  assertStringIncludes(message, "component a is undefined");
  assertEquals(await rejection(() => dataset.at(0)), message);
  assertEquals(await rejection(() => dataset.reduce(0, () => 0)), message);
});

Deno.test("reduce and save tune the pipeline", async () => {
  const { node } = Dataset.range(4).prefetch(AUTOTUNE);
  let tuned = 0;
  const tuningPolicy = () => void tuned++;
  const fn = new NodeFunction("reduce", "fn", () => 0, undefined, { arity: 2 });
  await reduceGraph(node, 0, fn, { tuningPolicy });
  assertEquals(tuned, 5);
  await using folder = await TempFolder.make();
  await saveGraph(node, `${folder.path}/a`, {}, undefined, { tuningPolicy });
  assertEquals(tuned, 10);
});
