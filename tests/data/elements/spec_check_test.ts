/** Elements that do not fit their spec, and elements with undefined parts. */

import { LeatError } from "../../../core/error.ts";
import { RaggedTensor, tensor } from "../../../core/tensor.ts";
import { Dataset, type ElementSpec, specOf, TensorSpec, udf } from "../../../data/mod.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { collect, collectWithErrors, plain } from "../lib/collect.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const leaf = (dtype: string, ...shape: (number | null)[]) => new TensorSpec(dtype as "int8", shape);
const ragged = new RaggedTensor(tensor(new Float32Array(6)), new BigInt64Array([0n, 2n, 6n]));

const wrong = "error invalid_argument";

/** For each spec: values that fit, and values that do not. */
const LEAVES: [spec: ElementSpec, fits: unknown[], differs: unknown[]][] = [
  [leaf("float64"), [1, -0, NaN, 0.5, tensor(1)], [1n, true, "1", null, new Float64Array(1)]],
  [leaf("float16"), [1e9], [1n]],
  [leaf("int8"), [-128, 127, -0], [128, -129, 0.5, NaN, 1n, tensor(1)]],
  [leaf("uint8"), [0, 255], [-1, 256]],
  [leaf("int32"), [-(2 ** 31), 2 ** 31 - 1], [2 ** 31]],
  [leaf("uint32"), [2 ** 32 - 1], [2 ** 32, -1]],
  [leaf("int64"), [1, -(2n ** 63n), 2n ** 63n - 1n], [2n ** 63n, 0.5, 2 ** 53]],
  [leaf("uint64"), [1, 2n ** 64n - 1n], [-1, -1n, 2n ** 64n]],
  [leaf("bool"), [true], [1, 0]],
  [leaf("string"), ["", "é"], [new Uint8Array(1)]],
  [leaf("bytes"), [new Uint8Array(0)], ["", [1]]],
  [leaf("float32", 2), [new Float32Array(2), tensor(new Float32Array(2))], [
    new Float32Array(3),
    new Float64Array(2),
    [1, 2],
    1,
  ]],
  [leaf("uint8", null), [new Uint8Array(0), new Uint8Array(9)], [new Int8Array(1), "text"]],
  [leaf("float32", 2, null), [tensor(new Float32Array(6), { shape: [2, 3] }), ragged], [
    new Float32Array(2),
    tensor(new Float32Array(6), { shape: [3, 2] }),
  ]],
  [leaf("float32", null, 3), [tensor(new Float32Array(6), { shape: [2, 3] })], [ragged]],
  [leaf("bool", 2), [tensor([true, false])], [new Uint8Array(2)]],
  [leaf("string", 2), [tensor(["a", "b"])], [["a", "b"]]],
  [{ x: leaf("int8"), y: undefined }, [{ x: 1, y: "any" }, { y: { z: 1 }, x: 1 }], [
    { x: 1 },
    { x: 1, y: 1, z: 1 },
    { x: 1, z: 1 },
    { x: 1.5, y: 1 },
    [1, 1],
    null,
    new Date(0),
  ]],
  [[leaf("int8"), undefined], [[1, 2]], [[1], [1, 2, 3], { 0: 1, 1: 2 }]],
];

Deno.test("an element that contradicts its spec fails alone, for any dtype", async () => {
  for (const [spec, fits, differs] of LEAVES) {
    for (const calls of [{}, { numParallelCalls: 2 }]) {
      const of = (elements: unknown[]) =>
        Dataset.range(elements.length).map((i) => elements[i], { spec, ...calls });
      const given = fits.map(plain);
      assertEquals(await collect(of(fits)), given);
      for (const differing of differs) {
        const found = await collectWithErrors(of([...fits, differing, ...fits]));
        assertEquals(found, [...given, wrong, ...given]);
      }
    }
  }
});

Deno.test("a spec violation names operator, element, leaf, spec and value", async () => {
  const spec = { image: leaf("uint8", 2, null), meta: [leaf("int32"), leaf("string")] };
  const good = { image: tensor(new Uint8Array(6), { shape: [2, 3] }), meta: [1, "a"] };
  const cases: [element: unknown, ...parts: string[]][] = [
    [
      { ...good, image: tensor(new Float32Array(2), { shape: [2, 1] }) },
      "component image is float32[2, 1], but the spec says uint8[2, ?]",
    ],
    [{ ...good, meta: [1.5, "a"] }, "component meta[0] is 1.5, but the spec says int32"],
    [{ ...good, meta: [1] }, "component meta is a tuple of 1, but the spec says [int32, string]"],
    [
      { meta: [1, "a"] },
      "component 0 is an object of {meta}",
      "{ image: uint8[2, ?], meta: [int32",
    ],
    [{ ...good, meta: [undefined, "a"] }, "component meta[0] is undefined: give null"],
  ];
  for (const [element, ...parts] of cases) {
    const dataset = Dataset.range(2).map((i) => i === 0 ? good : element, { spec });
    await using iterator = dataset.iterator();
    await iterator.next();
    const error = await assertRejects(() => iterator.next(), LeatError);
    assertEquals(error.code, "invalid_argument");
    for (const part of ["map (operator 0)", "element 1", ...parts]) {
      assertStringIncludes(error.message, part);
    }
    assertEquals(iterator.stats()[0]!.errors, 1);
  }
});

const wrongAt2 = (x: number) => x === 2 ? "two" : x;

Deno.test("every operator with a spec checks its elements against it, and continues", async () => {
  const spec = leaf("float64");
  const inner = Dataset.range(4).map(wrongAt2);
  const datasets: Record<string, Dataset<unknown>> = {
    "map that waits": Dataset.range(4).map((x) => Promise.resolve(wrongAt2(x)), { spec }),
    "map by reference": Dataset.range(4).map(
      udf(import.meta.resolve("../lib/functions.ts"), "twoIsText"),
      { spec },
    ),
    scan: Dataset.range(4).scan(0, (state, x) => [state, wrongAt2(x)], { spec }),
    flatMap: Dataset.range(1).flatMap(() => inner, { spec }),
    interleave: Dataset.range(1).interleave(() => inner, { spec }),
    "parallel interleave": Dataset.range(1).interleave(() => inner, { spec, numParallelCalls: 2 }),
    groupByReducer: Dataset.range(4).groupByReducer({
      key: (x) => x,
      init: (): unknown => 0,
      reduce: (_, x) => wrongAt2(x),
      spec,
    }),
  };
  for (const [name, dataset] of Object.entries(datasets)) {
    assertEquals(await collectWithErrors(dataset), [0, 1, wrong, 3], name);
  }
  assertEquals(await collectWithErrors(datasets.scan!.batch(3)), [wrong, [0, 1, 3]]);
});

Deno.test("a function is called once for an element within a block that contradicts its spec", async () => {
  const seen: number[] = [];
  const dataset = Dataset.range(600).map((x) => (seen.push(x), x % 100 === 7 ? "text" : x), {
    spec: leaf("float64"),
  }).filter(() => true);
  const found = await collectWithErrors(dataset);
  assertEquals(seen, Array.from({ length: 600 }, (_, i) => i));
  assertEquals(found, seen.map((x) => x % 100 === 7 ? wrong : x));
});

Deno.test("an element with an undefined part is refused at the end of the pipeline, by its path", async () => {
  const cases: [element: unknown, path: string][] = [
    [undefined, "the element is undefined: return a value, or null"],
    [{ a: 1, b: undefined }, "component b is undefined: give null for what is absent"],
    [{ a: [1, { c: undefined }] }, "component a[1].c is undefined"],
  ];
  for (const [element, path] of cases) {
    const datasets = [
      Dataset.range(1).map(() => element),
      Dataset.from([element]),
      Dataset.deserialize(Dataset.from([element]).serialize(), { trustPipeline: true }),
      Dataset.fromGenerator(() => [element]),
      Dataset.range(1).scan(0, (state) => [state, element]),
      Dataset.from([element]).shuffle(2).prefetch(1),
    ];
    for (const dataset of datasets) {
      const iterator = openIterator(dataset.node);
      const error = await assertRejects(() => iterator.next(), LeatError);
      assertEquals(error.code, "invalid_argument");
      assertStringIncludes(error.message, path);
      assertEquals((await iterator.next()).done, true);
    }
  }
  // A function further down may still replace it.
  const filled = Dataset.from([{ a: undefined }]).map(({ a }) => ({ a: a ?? null }));
  assertEquals(await collect(filled), [{ a: null }]);
});

Deno.test("save refuses elements with undefined parts, and leaves nothing", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const dataset = Dataset.range(2).map((x) => ({ x, y: x === 0 ? 1 : undefined }));
  const error = await assertRejects(() => dataset.save(`${folder}/saved`), LeatError);
  assertEquals(error.code, "invalid_argument");
  assertStringIncludes(error.message, "element 1: component y is undefined");
  assertEquals(await Array.fromAsync(Deno.readDir(folder)), []);
});

Deno.test("a hole in an array is refused like undefined: given, batched, declared, saved and stored", async () => {
  await using temporary = await TempFolder.make();
  const path = (name: string) => `${temporary.path}/${name}`;
  const holed = Dataset.range(2).map((x) => {
    const a: number[] = [x];
    a[2] = x;
    return { a };
  });
  const declared = Dataset.range(1).map(() => ({ a: new Array<number>(1) }), {
    spec: { a: [leaf("float64")] },
  });
  const failing: [place: string, run: () => Promise<unknown>][] = [
    ["component a[1] is undefined", () => holed.iterator().next()],
    ["component a[0] is undefined", () => declared.iterator().next()],
    ["component a[1] is undefined", () => holed.save(path("saved"))],
    ["component a[1] is undefined", () => holed.cache(path("cache")).iterator().next()],
    ["component a[1] is undefined", () => holed.snapshot(path("snapshot")).iterator().next()],
    ["undefined in component a[1]", () => holed.batch(2).iterator().next()],
    ["undefined in component a[1]", () => holed.batch(2).save(path("batches"))],
  ];
  for (const [place, run] of failing) {
    const error = await assertRejects(run, LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, place);
  }
  assertEquals(await Array.fromAsync(Deno.readDir(temporary.path)), []);
});

Deno.test("a spec with unknown components keeps them when it is serialised", () => {
  const spec = { x: undefined, y: leaf("int8"), z: [undefined, leaf("bool")] };
  const dataset = Dataset.range(1).map(() => ({ x: 0, y: 1, z: [2, true] }), { spec });
  const again = Dataset.deserialize(dataset.serialize(), { trustPipeline: true });
  assertEquals(again.elementSpec, spec);
  assert("x" in (again.elementSpec as object));
  assertEquals(specOf({ y: 1 }), { y: leaf("float64") });
});
