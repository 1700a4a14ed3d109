/** Functions and loops that change their elements in place: what operators keep stays as it is. */
import { Buffer } from "node:buffer";
import { Dataset, RaggedTensor, releaseElement, Tensor, TensorSpec } from "../../../../mod.ts";
import { mapTree } from "../../../../core/tree.ts";
import { noteMemory } from "../../../../data/elements/released.ts";
import { assertEquals, assertStrictEquals } from "../../../assert.ts";

interface Row {
  v: Tensor<"float32">;
  list: number[];
  bytes: Tensor<"bytes">;
  ragged: RaggedTensor<"int32">;
}

/** Elements of which each component can be changed. */
function rows(): Row[] {
  return [1, 2, 3, 4].map((i) => ({
    v: new Tensor("float32", [2, 2], Float32Array.of(i, i, i, i)),
    list: [i, i],
    bytes: new Tensor("bytes", [1], [Uint8Array.of(i)]),
    ragged: new RaggedTensor(
      new Tensor("int32", [2], Int32Array.of(i, i)),
      BigInt64Array.of(0n, 1n, 2n),
    ),
  }));
}

/** Changes all of an element in place. */
function spoil(element: unknown): void {
  if (typeof element !== "object" || element === null) return;
  if (element instanceof RaggedTensor) return spoil(element.values);
  if (element instanceof Tensor) return spoil(element.data);
  if (ArrayBuffer.isView(element)) {
    (element as Uint8Array).fill(99);
    return;
  }
  const parts = element as Record<string, unknown>;
  for (const key of Object.keys(parts)) {
    spoil(parts[key]);
    if (typeof parts[key] === "number") parts[key] = 99;
  }
}

/** What a loop that changes its elements reads in two passes. */
async function spoiledPasses(dataset: Dataset<unknown>): Promise<[unknown[], unknown[]]> {
  const pass = async () => {
    const read: unknown[] = [];
    for await (const element of dataset) {
      read.push(structure(element));
      spoil(element);
    }
    return read;
  };
  return [await pass(), await pass()];
}

/** An element's values, copied, to compare. */
function structure(element: unknown): unknown {
  return mapTree(element, (leaf) => {
    const isTensor = leaf instanceof Tensor || leaf instanceof RaggedTensor;
    const values = isTensor ? leaf.toArray() : leaf;
    return JSON.stringify(values, (_, x) => ArrayBuffer.isView(x) ? [...x as Uint8Array] : x);
  });
}

/** Operators that keep elements for the next pass. */
const KEEPERS: Readonly<Record<string, () => Dataset<unknown>>> = {
  "from": () => Dataset.from(rows()),
  "cache": () => Dataset.range(4).map((i) => new Float32Array([i, i])).cache(),
  "cache of from": () => Dataset.from(rows()).cache(),
  "from of Node.js buffers": () =>
    Dataset.from([{ bytes: Buffer.of(1), tensor: new Tensor("uint8", [1], Buffer.of(2)) }]),
  "fromTensors": () => Dataset.fromTensors(new Tensor("float32", [2], Float32Array.of(1, 2))),
  "fromTensorSlices": () =>
    Dataset.fromTensorSlices({
      matrix: new Tensor("float32", [2, 2], Float32Array.of(1, 2, 3, 4)),
      ragged: rows()[0]!.ragged,
    }),
};

type Routes = Readonly<Record<string, (kept: Dataset<unknown>) => Dataset<unknown>>>;

/** What gives the kept elements themselves to a loop. */
const PASSING: Routes = {
  "a loop": (kept) => kept,
  "skip, take and shard": (kept) => kept.skip(0).take(4).shard(1, 0),
  "shuffle": (kept) => kept.shuffle(4, { seed: 1, reshuffleEachIteration: false }),
  "repeat": (kept) => kept.repeat(2),
  "prefetch": (kept) => kept.prefetch(2),
  "concatenate": (kept) => kept.concatenate(kept),
  "sampleFromDatasets": (kept) => Dataset.sampleFromDatasets([kept, kept], { seed: 1 }),
  "chooseFromDatasets": (kept) => Dataset.chooseFromDatasets([kept, kept], Dataset.from([0, 1])),
  "ignoreErrors": (kept) => kept.ignoreErrors(),
  "assertCardinality": (kept) => kept.assertCardinality(kept.cardinality()),
};

/** What hands the kept elements on to a loop. */
const ROUTES: Routes = {
  ...PASSING,
  "zip with itself": (kept) => Dataset.zip([kept, kept]),
  "enumerate": (kept) => kept.enumerate(),
  "takeWhile": (kept) => kept.takeWhile(() => true),
  "filter": (kept) => kept.filter(() => true),
  "map": (kept) => kept.map((x) => x),
  "a second cache": (kept) => kept.cache(),
};

for (const [keeper, make] of Object.entries(KEEPERS)) {
  Deno.test(`${keeper} gives each pass the same elements, although a loop changes them in place`, async () => {
    for (const [route, lead] of Object.entries(ROUTES)) {
      const untouched: unknown[] = [];
      for await (const element of lead(make())) untouched.push(structure(element));
      assertEquals(await spoiledPasses(lead(make())), [untouched, untouched], route);
    }
  });
}

const bytesSpec = new TensorSpec("bytes", []);
const texts = (...lengths: number[]) =>
  new Tensor("bytes", [lengths.length], lengths.map((length) => new Uint8Array(length).fill(7)));

/** Operators that keep byte strings for the next pass. */
const BYTE_KEEPERS: Readonly<Record<string, () => Dataset<unknown>>> = {
  "cache": () => Dataset.range(4).map((i) => Uint8Array.of(i), { spec: bytesSpec }).cache(),
  "cache of structures": () =>
    Dataset.range(4).map((i) => ({ i, parts: [i, Uint8Array.of(i)] as [number, Uint8Array] }), {
      spec: { i: new TensorSpec("float64", []), parts: [new TensorSpec("float64", []), bytesSpec] },
    }).cache(),
  "cache without a spec": () => Dataset.range(4).map((i) => ({ i, text: texts(i, 2) })).cache(),
  "from": () => Dataset.from([{ text: texts(1) }, { text: texts(2) }]),
  "fromTensors": () => Dataset.fromTensors(texts(1, 2)),
  "fromTensorSlices": () =>
    Dataset.fromTensorSlices({ id: new Int32Array([1, 2, 3]), text: texts(1, 2, 3) }),
};

/** What makes batches of the kept elements. */
const BATCHES: Readonly<Record<string, (kept: Dataset<unknown>) => Dataset<unknown>>> = {
  "batch": (kept) => kept.batch(2),
  "paddedBatch": (kept) => kept.paddedBatch(2),
  "raggedBatch": (kept) => kept.raggedBatch(2),
  "repeat and batch": (kept) => kept.repeat(2).batch(2),
  "sampleFromDatasets, ignoreErrors and batch": (kept) =>
    Dataset.sampleFromDatasets([kept, kept], { seed: 1 }).ignoreErrors().batch(2),
  "zip, enumerate and batch": (kept) => Dataset.zip([kept, kept]).enumerate().batch(2),
};

for (const [keeper, make] of Object.entries(BYTE_KEEPERS)) {
  Deno.test(`${keeper} gives each pass the same byte strings, although a loop changes them in batches`, async () => {
    for (const [route, lead] of Object.entries(BATCHES)) {
      const untouched: unknown[] = [];
      for await (const element of lead(make())) untouched.push(structure(element));
      assertEquals(await spoiledPasses(lead(make())), [untouched, untouched], route);
    }
  });
}

Deno.test("a function that changes its element in place gets the same element in each pass", async () => {
  const spoiling = Dataset.from(rows()).cache().map((row) => {
    const before = row.v.data[0]! + row.list[0]!;
    row.v.data.fill(99);
    row.list[0] = 99;
    return before;
  });
  const pass = () => Array.fromAsync(spoiling);
  assertEquals([await pass(), await pass()], [[2, 4, 6, 8], [2, 4, 6, 8]]);
});

Deno.test("from and cache copy nothing for a batch, which has memory of its own", async () => {
  let copies = 0;
  class Counted extends Uint8Array<ArrayBuffer> {
    /** The class of copies. */
    static get [Symbol.species]() {
      copies++;
      return Uint8Array;
    }
  }
  const kept: Uint8Array = Counted.of(1, 2);
  const cached = Dataset.from([kept, kept]).cache();
  const batches = cached.shuffle(2).take(2).repeat(2).batch(2) as Dataset<Tensor<"uint8">>;
  for (let pass = 0; pass < 2; pass++) {
    for await (const batch of batches) {
      assertEquals(batch.toArray(), [[1, 2], [1, 2]]);
      batch.data.fill(99);
    }
  }
  assertEquals([copies, ...kept], [0, 1, 2]);
  await Array.fromAsync(cached);
  assertEquals(copies, 2);
});

/** What a reader that only reads gets in two passes. */
async function readTwice(dataset: Dataset<unknown>): Promise<unknown[]> {
  const pass = async () => {
    await using iterator = dataset.iterator({ isReadOnly: true });
    return await Array.fromAsync(iterator);
  };
  return [...await pass(), ...await pass()];
}

Deno.test("from and cache give what they keep to a reader that only reads", async () => {
  const row = { v: Float32Array.of(1, 2) };
  for (const [route, lead] of Object.entries(PASSING)) {
    for (const read of await readTwice(lead(Dataset.from([row])))) {
      assertStrictEquals(read, row, route);
    }
  }
  for (const read of await readTwice(Dataset.from([row]).select(["v"]))) {
    assertStrictEquals((read as typeof row).v, row.v);
  }
  const [first, second] = await readTwice(Dataset.range(1).map(() => ({ v: [1] })).cache());
  assertStrictEquals(first, second);
  const text = texts(3);
  for (const kept of [Dataset.from([{ text }]), Dataset.from([{ text }]).cache()]) {
    for (const read of await readTwice(kept)) {
      assertStrictEquals((read as { text: Tensor<"bytes"> }).text, text);
    }
    for (const read of await readTwice(kept.batch(1))) {
      const { data } = (read as { text: Tensor<"bytes"> }).text;
      assertStrictEquals(data[0], text.data[0], "a batch holds byte strings as they are");
    }
  }
  const nested = Dataset.range(1).flatMap(() => Dataset.from([[1]]).repeat(2));
  const [one, again] = await readTwice(nested);
  assertStrictEquals(one, again);
});

Deno.test("a function gets copies, although the reader only reads", async () => {
  const spoil = (row: Row) => {
    const before = row.v.data[0]!;
    row.v.data.fill(99);
    return before;
  };
  for (const kept of [Dataset.from(rows()), Dataset.from(rows()).cache()]) {
    for (const spoiling of [kept.map(spoil), kept.filter((row) => spoil(row) < 9).map(spoil)]) {
      const read = await readTwice(spoiling);
      assertEquals(read.slice(0, 4), read.slice(4));
    }
  }
});

Deno.test("releaseElement frees nothing of an element that from keeps", async () => {
  const row = Uint8Array.of(1, 2);
  let freed = 0;
  noteMemory(row, { release: () => freed++ });
  const [read] = await readTwice(Dataset.from([row]));
  releaseElement(read);
  assertEquals(freed, 0);
});
