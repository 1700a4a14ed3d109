/** Unusual elements, unchanged by all that stacks, stores or sends them. */
import { Dataset, RaggedTensor, Tensor, tensor } from "../../../mod.ts";
import { dtypeOf, isTypedArray } from "../../../core/dtype.ts";
import { isPlainObject } from "../../../core/tree.ts";
import { assertEquals } from "../../assert.ts";
import { testInline } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const HALF = new Float16Array([1.5, -0, NaN, 65504, 6e-8]);
const MIN_64 = -(2n ** 63n);
const MAX_64 = 2n ** 63n - 1n;
const shaped = (data: Float32Array | BigInt64Array, ...shape: number[]) => tensor(data, { shape });

/** By name: an element. Those in `RAGGED` do not stack. */
const ELEMENTS: Record<string, unknown> = {
  "negative zero": -0,
  "not a number": NaN,
  infinity: -Infinity,
  "the least number": Number.MIN_VALUE,
  "the largest safe integer": Number.MAX_SAFE_INTEGER,
  "the least bigint": MIN_64,
  "the largest bigint": MAX_64,
  false: false,
  null: null,
  "an empty text": "",
  "a text beyond the basic plane": "\u{1f600}\0é",
  "no bytes": new Uint8Array(0),
  "no numbers": new Float32Array(0),
  "no bigints": new BigInt64Array(0),
  "bigints at their limits": new BigInt64Array([MIN_64, -1n, 0n, MAX_64]),
  "unsigned bigints at their limits": new BigUint64Array([0n, 2n ** 64n - 1n]),
  "halves": HALF,
  "numbers with a sign and none": new Float64Array([-0, NaN, -Infinity, 5e-324]),
  "a tensor of halves": tensor(HALF, { shape: [5, 1] }),
  "a tensor without axes": tensor(-0),
  "a bigint tensor without axes": shaped(new BigInt64Array([MIN_64])),
  "a text tensor without axes": tensor(""),
  "a tensor of no rows": shaped(new Float32Array(0), 0, 3),
  "a tensor of empty rows": shaped(new Float32Array(0), 3, 0),
  "a tensor with a zero in the middle": shaped(new Float32Array(0), 2, 0, 4),
  "truths": tensor([true, false]),
  "no truths": tensor([], { dtype: "bool" }),
  "no texts": tensor([], { dtype: "string" }),
  "texts, some empty": tensor(["", "a", ""]),
  "byte strings, some empty": tensor([new Uint8Array(0), new Uint8Array([0, 255])], {
    dtype: "bytes",
  }),
  "components in their order": { z: -0, a: [null, { y: "", b: 1n }], m: new Int8Array(0) },
};

const ROWS = [0n, 0n, 2n, 2n];
const RAGGED: Record<string, unknown> = {
  "ragged rows, some empty": new RaggedTensor(
    tensor(new Float32Array([-0, 1])),
    new BigInt64Array(ROWS),
  ),
  "nothing at all": {},
  "an empty tuple": [],
};

/**
 * Distinguishes what `assertEquals` may treat as equal: dtypes, shapes, signs, the order of keys.
 */
function exactly(value: unknown): unknown {
  if (value instanceof Tensor) {
    return { tensor: value.dtype, shape: [...value.shape], data: items(value.data) };
  }
  if (value instanceof RaggedTensor) {
    return { ragged: exactly(value.values), rows: [...value.rowSplits].map(String) };
  }
  if (isTypedArray(value)) return { array: dtypeOf(value), data: items(value) };
  if (Array.isArray(value)) return value.map(exactly);
  if (isPlainObject(value)) return Object.entries(value).map(([key, part]) => [key, exactly(part)]);
  return Object.is(value, -0)
    ? "-0"
    : typeof value === "number" || typeof value === "bigint"
    ? `${typeof value} ${value}`
    : value;
}

function items(data: ArrayLike<unknown>): unknown[] {
  return Array.from(data, exactly);
}

/** The result of stacking an element: tensors for arrays, plain values for scalars. */
function stacked(value: unknown): unknown {
  if (isTypedArray(value)) return tensor(value);
  if (value instanceof Tensor && value.shape.length === 0) return value.data[0];
  if (Array.isArray(value)) return value.map(stacked);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, stacked(part)]));
}

async function readAll(dataset: AsyncIterable<unknown>): Promise<unknown[]> {
  return (await Array.fromAsync(dataset)).map(exactly);
}

Deno.test("unusual elements are unchanged by stacking", async () => {
  for (const [name, element] of Object.entries(ELEMENTS)) {
    if (element === null) continue; // what is absent in every row has no rows
    const three = Dataset.from([element, element, element]);
    const wanted = [1, 2, 3].map(() => exactly(stacked(element)));
    assertEquals(await readAll(three.batch(2).unbatch()), wanted, `${name}, batch`);
    assertEquals(await readAll(three.paddedBatch(2).unbatch()), wanted, `${name}, paddedBatch`);
    assertEquals(
      await readAll(three.batch(3).batch(1).unbatch().unbatch()),
      wanted,
      `${name}, twice`,
    );
  }
});

testInline(
  "unusual elements are unchanged in files and saved iterators",
  async () => {
    await using temporary = await TempFolder.make();
    const folder = temporary.path;
    const elements = Object.values({ ...ELEMENTS, ...RAGGED });
    const wanted = elements.map(exactly);
    const dataset = Dataset.from(elements);
    assertEquals(
      await readAll(Dataset.deserialize(dataset.serialize(), { trustPipeline: true })),
      wanted,
    );
    for (const compression of [undefined, "gzip"] as const) {
      await dataset.save(`${folder}/saved`, { compression, overwrite: true });
      assertEquals(await readAll(await Dataset.load(`${folder}/saved`)), wanted);
    }
    const shuffled = Dataset.fromGenerator((_) => []).concatenate(dataset as never).shuffle(99, {
      seed: 1,
    });
    await using iterator = shuffled.iterator();
    const first = (await iterator.next()).value;
    await using other = shuffled.iterator();
    await other.restore(await iterator.save());
    assertEquals(await readAll(other), await readAll(iterator));
    assertEquals(wanted.some((at) => JSON.stringify(at) === JSON.stringify(exactly(first))), true);
  },
);

testInline("unusual elements arrive from workers unchanged", async (start) => {
  await using cluster = await start({ workers: 1 });
  const elements = Object.values({ ...ELEMENTS, ...RAGGED });
  const dataset = Dataset.from(elements);
  for (const compression of ["none", "gzip"] as const) {
    const how = { service: cluster, processingMode: "DETERMINISTIC", compression } as const;
    assertEquals(await readAll(dataset.distribute(how)), elements.map(exactly), compression);
    const stackable = Object.values(ELEMENTS).filter((element) => element !== null);
    for (const element of stackable) {
      const batches = Dataset.from([element, element]).batch(2);
      assertEquals(await readAll(batches.distribute(how)), await readAll(batches));
    }
  }
});
