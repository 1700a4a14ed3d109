/** Kinds and numbers of elements: of every kind, none, one, many, and failed ones at the ends. */
import { Dataset, Tensor, tensor, TensorSpec } from "../../../mod.ts";
import { assert, assertEquals } from "../../assert.ts";
import { outcomesOf } from "../../data/lib/outcomes.ts";
import { sorted, testInline, testOnEach, untilForgotten, upTo } from "../lib/carriers.ts";

const MODES = ["OFF", "DYNAMIC", "DATA", "DETERMINISTIC"] as const;

const half = new Float16Array([0.5, -2]);
const nested = { a: [1, { b: "x", c: [true, new Uint8Array([1, 2])] }], d: {} };

/** Datasets by what is special about their elements. */
const KINDS: Record<string, Dataset<unknown>> = {
  "numbers that are no others": Dataset.from([0, -0, 1.5, NaN, Infinity, -Infinity, 2 ** 53]),
  "bigints": Dataset.from([0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]),
  "booleans": Dataset.from([true, false]),
  "strings": Dataset.from(["", "a", "é", "日本", "🦊", "a\0b", "x".repeat(70_000)]),
  "bytes": Dataset.from([new Uint8Array(), new Uint8Array([0, 255]), new Uint8Array(70_000)]),
  "typed arrays": Dataset.from([
    ...[new Int8Array([-1]), new Uint16Array([65_535]), new Int32Array([-5]), half],
    ...[new Float32Array([0.1]), new Float64Array([0.1]), new BigInt64Array([-9n])],
    ...[new BigUint64Array([9n]), new Uint32Array([7])],
  ]),
  "tensors": Dataset.from([
    ...[tensor([[1, 2], [3, 4]]), tensor(7), tensor([], { dtype: "int32" })],
    ...[tensor(["a", "b"]), tensor([true]), tensor([1n])],
    new Tensor("float32", [0, 3], new Float32Array()),
  ]),
  "trees": Dataset.from([nested, { ...nested, d: { e: 1 } }, [[], [[]]], {}]),
  "nothing at all": Dataset.from([null, [null], { a: null }]),
  "batches of strings": Dataset.from(["a", "bc", "", "d"]).batch(2),
  "batches of bytes": Dataset.from([1, 2, 3])
    .map((n) => new Uint8Array(n), { spec: new TensorSpec("bytes", []) }).batch(2),
  "batches of bigints": Dataset.from([1n, 2n, 3n]).batch(2),
  "batches of booleans": Dataset.from([true, false]).batch(2),
  "batches of trees": Dataset.from([1, 2, 3]).map((x) => ({ x, of: [x, String(x)] })).batch(2),
  "ragged batches": Dataset.range(5).map((n) => new Int32Array(n)).raggedBatch(2),
  "padded batches": Dataset.range(5).map((n) => new Int32Array(n)).paddedBatch(2),
  "images": Dataset.range(3).map((n) => new Uint8Array(12).fill(n)).map((data, { tensor }) =>
    tensor(Array.from(data)).reshape([2, 2, 3])
  ),
  "columns": Dataset.fromTensorSlices({ x: [[1, 2], [3, 4]], y: ["a", "b"] }),
  "one tensor": Dataset.fromTensors([[1, 2], [3, 4]]),
  "tuples": Dataset.zip([Dataset.range(4), Dataset.from(["a", "b", "c", "d"])]),
  "a zip of columns": Dataset.zip({ n: Dataset.range(3), s: Dataset.from([..."abc"]) }),
  "a megabyte each": Dataset.range(3).map((n) => new Float32Array(2 ** 18).fill(n)),
};

testInline("elements of every kind arrive unchanged, in every mode", async (start) => {
  await using cluster = await start({ workers: 1 });
  for (const [name, dataset] of Object.entries(KINDS)) {
    const wanted = await outcomesOf(dataset.iterator());
    assert(wanted.every((outcome) => "element" in outcome), `${name}: ${Deno.inspect(wanted)}`);
    for (const processingMode of MODES) {
      const distributed = dataset.distribute({ service: cluster, processingMode });
      await using iterator = distributed.iterator();
      assertEquals(await outcomesOf(iterator), wanted, `${name}, ${processingMode}`);
    }
  }
});

testOnEach("elements of every kind cross every carrier, compressed or not", async (start) => {
  await using cluster = await start({ workers: 1 });
  for (const [name, dataset] of Object.entries(KINDS)) {
    const wanted = await outcomesOf(dataset.iterator());
    for (const compression of ["none", "zstd"] as const) {
      await using iterator = dataset.distribute({ service: cluster, compression }).iterator();
      assertEquals(await outcomesOf(iterator), wanted, `${name}, ${compression}`);
    }
  }
});

testInline(
  "any number of elements arrives completely with any number of workers",
  async (start) => {
    for (const workers of [1, 3]) {
      await using cluster = await start({ workers });
      for (const count of [0, 1, 2, workers, 10, 257]) {
        for (const processingMode of MODES) {
          for (const maxOutstandingRequests of [1, 100]) {
            const options = { service: cluster, processingMode, maxOutstandingRequests };
            const what = `${count} of ${workers}, ${processingMode}, ${maxOutstandingRequests}`;
            const numbers = await Array.fromAsync(Dataset.range(count).distribute(options));
            const times = processingMode === "OFF" ? workers : 1;
            assertEquals(sorted(numbers), upTo(count, times), what);
            if (processingMode === "DETERMINISTIC") assertEquals(numbers, upTo(count), what);
          }
        }
      }
    }
  },
);

/** Pipelines without elements. */
const EMPTY: Record<string, Dataset<unknown>> = {
  "no numbers": Dataset.range(0),
  "nothing in memory": Dataset.from([]),
  "a filter that keeps nothing": Dataset.range(100).filter(() => false),
  "a batch that drops all": Dataset.range(3).batch(8, { dropRemainder: true }),
  "skipped": Dataset.range(3).skip(30),
  "none taken": Dataset.range(10).take(0),
  "repeated for ever": Dataset.range(0).repeat(),
  "a zip with nothing": Dataset.range(10).zip(Dataset.range(0)),
  "flattened": Dataset.range(10).flatMap((_x, { Dataset }) => Dataset.range(0)),
};

testInline("an empty dataset ends at once, in every mode", async (start) => {
  await using cluster = await start({ workers: 2 });
  for (const [name, dataset] of Object.entries(EMPTY)) {
    for (const processingMode of MODES) {
      const distributed = dataset.distribute({ service: cluster, processingMode });
      assertEquals(await Array.fromAsync(distributed), [], `${name}, ${processingMode}`);
      // An epoch after an empty one is empty, too.
      assertEquals(await Array.fromAsync(distributed.repeat(2)), [], `${name}, ${processingMode}`);
    }
  }
});

/** Which of ten elements fail. */
const FAILURES: Record<string, (x: number) => boolean> = {
  "the first": (x) => x === 0,
  "the last": (x) => x === 9,
  "all but one": (x) => x !== 4,
  "all": () => true,
};

testInline("each failed element is reported once, wherever it is", async (start) => {
  await using cluster = await start({ workers: 1 });
  for (const [name, fails] of Object.entries(FAILURES)) {
    const failing = upTo(10).filter(fails);
    const dataset = Dataset.range(10).map((x, { failing }) => {
      if (failing.includes(x)) throw new RangeError(`no ${x}`);
      return x;
    }, { captures: { failing } });
    for (const pipeline of [dataset, dataset.batch(3), dataset.ignoreErrors()]) {
      const wanted = await outcomesOf(pipeline.iterator());
      for (const processingMode of MODES) {
        // A split fills its batches by itself.
        if (pipeline.node.kind === "batch" && processingMode === "DETERMINISTIC") continue;
        const distributed = pipeline.distribute({ service: cluster, processingMode });
        await using iterator = distributed.iterator();
        const what = `${name}, ${processingMode}, ${pipeline.node.kind}`;
        const found = await outcomesOf(iterator);
        // On a worker, operators are numbered from the end, to which a policy may add its own, and
        // elements by splits; errors say so.
        assertEquals(withoutNumbers(found), withoutNumbers(wanted), what);
      }
    }
  }
});

function withoutNumbers(outcomes: unknown): unknown {
  const numbers =
    /operator \d+( of those (on the worker|that run on each split))?|element \d+( of (its split|those that the worker reads))?/g;
  return JSON.parse(JSON.stringify(outcomes).replaceAll(numbers, ""));
}

testInline("readers can ignore errors of workers, which are counted", async (start) => {
  await using cluster = await start({ workers: 2 });
  for (const processingMode of MODES) {
    const distributed = Dataset.range(20).map((x) => {
      if (x % 4 === 0) throw new Error("a quarter");
      return x;
    }).distribute({ service: cluster, processingMode }).ignoreErrors({ logWarning: false });
    const times = processingMode === "OFF" ? 2 : 1;
    const wanted = upTo(20, times).filter((x) => x % 4 !== 0);
    assertEquals(sorted(await Array.fromAsync(distributed)), wanted, processingMode);
  }
});

testInline("a reader takes what it wants of an endless dataset, and leaves", async (start) => {
  await using cluster = await start({ workers: 2 });
  for (const processingMode of MODES) {
    const endless = Dataset.range(7).repeat().batch(4);
    const distributed = endless.distribute({ service: cluster, processingMode });
    for (let epoch = 0; epoch < 2; epoch++) {
      assertEquals((await Array.fromAsync(distributed.take(9))).length, 9, processingMode);
    }
  }
  await untilForgotten(cluster);
});

testInline(
  "what cannot travel is refused once, with the remedy, and nothing is left",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const factor = 3;
    const closure = Dataset.range(3).map((x) => x * factor);
    for (const processingMode of MODES) {
      const distributed = () => closure.distribute({ service: cluster, processingMode });
      const outcomes = await outcomesOf(distributed().iterator());
      assertEquals(outcomes.length, 1, processingMode);
      const [{ error }] = outcomes as [{ error: string }];
      assert(error.includes("factor") && error.includes("captures"), error);
      // It is not an element's error, so it is not ignored.
      const rest = await outcomesOf(distributed().ignoreErrors({ logWarning: false }).iterator());
      assertEquals(rest, outcomes);
    }
    assertEquals((await cluster.describe()).jobs, []);
  },
);

testInline(
  "an element that is no data is an error of its own that names the path",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const values = Dataset.range(4).map((x) => x === 2 ? { when: [new Date(0)] } : { when: x });
    const outcomes = await outcomesOf(values.distribute({ service: cluster }).iterator());
    assertEquals(outcomes.map((outcome) => "error" in outcome), [false, false, true, false]);
    const { error } = outcomes[2] as { error: string };
    assert(error.startsWith("invalid_argument") && error.includes("$.when[0]"), error);
    assert(error.includes("Date"), error);
  },
);
