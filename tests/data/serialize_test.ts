/** Serialisation, fingerprints, explanations, external operators. */

import {
  assert,
  assertEquals,
  assertMatch,
  assertNotEquals,
  assertStringIncludes,
  assertThrows,
} from "../assert.ts";
import { LeatError } from "../../core/error.ts";
import { tensor } from "../../core/tensor.ts";
import { isPlainObject } from "../../core/tree.ts";
import { AUTOTUNE, Dataset, specOf, TensorSpec, udf } from "../../data/mod.ts";
import { registerNode, registerServed } from "../../data/node.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { collect } from "./lib/collect.ts";
import { everyKind } from "./lib/every_kind.ts";
import { outcomesOf } from "./lib/outcomes.ts";

const double = udf<(x: number) => number>(import.meta.resolve("./lib/functions.ts"), "double");
const ints = Dataset.range(1, 5).map((n) => new Int32Array(n).fill(n));

/** Pipelines with every kind of attribute. */
const PIPELINES: Record<string, Dataset<unknown>> = {
  range: Dataset.range(5, 0, -2),
  from: Dataset.from([1n, -0, NaN, "é", null, true, new Float16Array([1.5]), { $a: [1] }]),
  fromTensors: Dataset.fromTensors({ x: [[1, 2]], y: tensor(["a", "b"]) }),
  bytes: Dataset.from([tensor([new Uint8Array([1])], { dtype: "bytes" })]),
  fromTensorSlices: Dataset.fromTensorSlices({ x: new BigInt64Array([1n, 2n]) }),
  fromGenerator: Dataset.fromGenerator(() => [1, 2]),
  map: Dataset.range(3).map(double).map((x, { k }) => x + k.at(0)!, { captures: { k: [2] } }),
  parallel: Dataset.range(3).map((x) => Promise.resolve(x), { numParallelCalls: AUTOTUNE }),
  spec: Dataset.range(3).map((x) => ({ x }), { spec: { x: new TensorSpec("int8", []) } }).batch(2),
  filter: Dataset.range(4).filter((x) => x > 1),
  "parallel filter": Dataset.range(4).filter((x) => Promise.resolve(x > 1), {
    numParallelCalls: 2,
    deterministic: false,
  }).batch(2, { numParallelCalls: 2, deterministic: true }).withOptions({ deterministic: false }),
  flatMap: Dataset.range(3).flatMap((n, { Dataset }) => Dataset.range(n)),
  interleave: Dataset.range(3).interleave((n, { Dataset }) => Dataset.range(n), { cycleLength: 2 }),
  batches: Dataset.range(5).batch(2, { dropRemainder: true }).unbatch(),
  paddedBatch: ints.paddedBatch(2, { paddedShapes: [null], paddingValues: -1 }),
  buckets: ints.bucketBySequenceLength({
    length: (x) => x.length,
    boundaries: [3],
    batchSizes: [2, 2],
  }),
  groups: Dataset.range(5).groupByWindow({
    key: (x) => x % 2,
    reduce: (_key, window) => window.batch(2),
    windowSize: () => 2,
  }),
  windows: Dataset.range(5).window(2, { shift: 1, stride: 2 }).flatMap((window) => window.batch(2)),
  scan: Dataset.range(5).scan([0n], (n, x) => [n, x % 3]).takeWhile((x) => x < 3).unique(),
  endless: Dataset.counter(3, 2).zip(Dataset.random({ seed: 1 })).take(4).assertCardinality(4),
  padded: Dataset.range(2).map((x) => ({ x })).padToCardinality(3, "isReal"),
  sampled: Dataset.sampleFromDatasets([Dataset.range(3), Dataset.range(9)], { seed: 1 }),
  weighted: Dataset.sampleFromDatasets([Dataset.range(3), Dataset.range(9)], {
    weights: Dataset.from([[0, 1], [1, 0]]),
  }),
  chosen: Dataset.chooseFromDatasets([Dataset.range(3), Dataset.range(9)], Dataset.from([1, 0]), {
    stopOnEmptyDataset: false,
  }),
  resampled: Dataset.range(9).rejectionResample({
    classOf: (x) => x % 2,
    targetDist: [1, 0],
    initialDist: [0.5, 0.5],
  }),
  ignoring: Dataset.range(3).ignoreErrors({ maxErrors: 1, maxFraction: 0.5 }),
  ragged: ints.raggedBatch(3, { dropRemainder: true }).unbatch().raggedBatch(2),
  rebatch: Dataset.range(5).batch(3).rebatch([1, 0], { dropRemainder: true }),
  pack: ints.pack({ length: 3, algorithm: "first_fit", maxOpenBins: 2, overflow: "split" }),
  shuffle: Dataset.range(9).shuffle(4, { seed: 2n ** 63n }).withOptions({ seed: 3 }),
  order: Dataset.range(9).skip(1).take(5).shard(2, 0).cache().prefetch(AUTOTUNE).repeat(2),
  joined: Dataset.zip({ a: Dataset.range(2), b: Dataset.range(2).concatenate(Dataset.range(1)) }),
  enumerate: Dataset.range(2).enumerate(7).zip(Dataset.range(2)),
};

for (const [name, dataset] of Object.entries(PIPELINES)) {
  Deno.test(`serialize and deserialize keep the elements of ${name}, and its fingerprint`, async () => {
    const copy = Dataset.deserialize(dataset.serialize(), { trustPipeline: true });
    assertEquals(await collect(copy), await collect(dataset));
    assertEquals(copy.fingerprint(), dataset.fingerprint());
    assertEquals(copy.serialize(), dataset.serialize());
    assertEquals(copy.cardinality(), dataset.cardinality());
    assertEquals(copy.elementSpec, dataset.elementSpec);
  });
}

Deno.test("serialize and deserialize keep the elements of every kind of operator, and its fingerprint", async () => {
  await using folder = await TempFolder.make();
  for (const { node: { kind }, division, dataset } of await everyKind(folder.path)) {
    const copy = Dataset.deserialize(dataset.serialize(), { trustPipeline: true });
    assertEquals(copy.fingerprint(), dataset.fingerprint(), kind);
    if (division === "served") continue;
    const given = await outcomesOf(openIterator(copy.node, { seed: 1n }));
    assertEquals(given, await outcomesOf(openIterator(dataset.node, { seed: 1n })), kind);
  }
});

Deno.test("serialize keeps negative zero, and keys that begin with a dollar sign", async () => {
  const dataset = Dataset.from([{ $bigint: -0, $$x: 1 }]);
  const [copy] = await Array.fromAsync(
    Dataset.deserialize(dataset.serialize(), { trustPipeline: true }),
  ) as [
    Record<string, number>,
  ];
  assertEquals(Object.keys(copy).toSorted(), ["$$x", "$bigint"]);
  assert(Object.is(copy.$bigint, -0));
});

Deno.test("serialize names the operator and the outer variables of its function", () => {
  const around = 5;
  const error = assertThrows(
    () => Dataset.range(3).map((x) => x + around).batch(2).serialize(),
    LeatError,
  );
  assertEquals(error.code, "failed_precondition");
  assertStringIncludes(error.message, "Cannot serialise map");
  assertStringIncludes(error.message, "around");
});

Deno.test("serialize says that names given to every function come from the last argument", async () => {
  const k = 2;
  const remedyOf = (dataset: Dataset<unknown>) =>
    /Either (take .*), or export/.exec(
      assertThrows(() => dataset.serialize(), LeatError).message,
    )?.[1];
  assertEquals(
    remedyOf(Dataset.range(3).flatMap((x) => Dataset.range(x))),
    "take Dataset from its last argument, which every function gets: (x, { Dataset })=>Dataset.range(x)",
  );
  assertEquals(
    remedyOf(Dataset.range(3).flatMap((x) => Dataset.range(x + k))),
    "take Dataset from its last argument, which every function gets, and pass the rest " +
      "by name: (x, { Dataset, k })=>Dataset.range(x + k), { captures: { k } }",
  );
  const followed = Dataset.range(3).flatMap((x, { Dataset, k }) => Dataset.range(x + k), {
    captures: { k },
  });
  const copy = Dataset.deserialize(followed.serialize(), { trustPipeline: true });
  assertEquals(await collect(copy), [0, 1, 0, 1, 2, 0, 1, 2, 3]);
});

Deno.test("fingerprints are digests that distinguish arguments, functions and captures", () => {
  const datasets = [
    Dataset.range(3),
    Dataset.range(4),
    Dataset.range(3).map((x) => x),
    Dataset.range(3).map((x) => x + 1),
    Dataset.range(3).map(double),
    Dataset.range(3).map((x, { k }) => x + k, { captures: { k: 1 } }),
    Dataset.range(3).map((x, { k }) => x + k, { captures: { k: 2 } }),
  ];
  const fingerprints = datasets.map((dataset) => dataset.fingerprint());
  assertEquals(new Set(fingerprints).size, datasets.length);
  assertMatch(fingerprints[0]!, /^[0-9a-f]{64}$/);
});

Deno.test("serialize keeps the order of an element's components, in data, captures and specs", async () => {
  const element = { z: 1, a: { y: new Float32Array(2), b: 2 }, m: 3 };
  const orders = (dataset: Dataset<unknown>) =>
    collect(dataset).then((elements) => elements.map((at) => JSON.stringify(keysOf(at))));
  const spec = specOf(element);
  const datasets: Dataset<unknown>[] = [
    Dataset.from([element]),
    Dataset.fromTensors(element),
    Dataset.fromTensorSlices({ z: [1], a: { y: [2], b: [3] }, m: [4] }),
    Dataset.range(1).scan(element, (state) => [state, state]),
    Dataset.range(1).map((_, { made }) => made, { captures: { made: element }, spec }),
    Dataset.from([element]).batch(1),
  ];
  const wanted = JSON.stringify(["z", ["a", ["y", "b"]], "m"]);
  for (const dataset of datasets) {
    const again = Dataset.deserialize(dataset.serialize(), { trustPipeline: true });
    assertEquals(await orders(again), [wanted]);
    assertEquals(again.fingerprint(), dataset.fingerprint());
    if (dataset.elementSpec !== undefined) {
      assertEquals(keysOf(again.elementSpec), keysOf(dataset.elementSpec));
    }
  }
});

/** The keys of a structure, in their order. */
function keysOf(tree: unknown): unknown {
  if (!isPlainObject(tree)) return undefined;
  return Object.entries(tree).map(([key, part]) => isPlainObject(part) ? [key, keysOf(part)] : key);
}

Deno.test("a fingerprint depends on the order of components, not on that of arguments and captures", () => {
  const add = (x: number, { a, b }: { a: number; b: number }) => x + a + b;
  const made = (captures: { a: number; b: number }) =>
    Dataset.range(3).map(add as never, { captures }).fingerprint();
  assertEquals(made({ a: 1, b: 2 }), made({ b: 2, a: 1 }));
  const [ab, ba] = [{ a: 1, b: 2 }, { b: 2, a: 1 }].map((at) => Dataset.from([at]).fingerprint());
  assertNotEquals(ab, ba);
  assertEquals(
    Dataset.range(3).batch(2, { dropRemainder: true, numParallelCalls: 1 }).fingerprint(),
    Dataset.range(3).batch(2, { numParallelCalls: 1, dropRemainder: true }).fingerprint(),
  );
});

Deno.test("serialize refuses an integer that deserialize would refuse", () => {
  const copy = (value: bigint) => Dataset.deserialize(Dataset.from([value]).serialize());
  const longest = 10n ** 4_095n;
  assertEquals(copy(longest).fingerprint(), Dataset.from([longest]).fingerprint());
  const error = assertThrows(() => copy(10n ** 4_096n), LeatError, "BIGINT_DIGITS_MAX");
  assertEquals(error.code, "invalid_argument");
});

Deno.test("deserialize refuses anything that serialize did not write", () => {
  const text = new TextDecoder().decode(Dataset.range(3).serialize());
  const refuse = (bytes: Uint8Array | string, code = "invalid_argument") => {
    const input = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
    assertEquals(assertThrows(() => Dataset.deserialize(input), LeatError).code, code);
  };
  refuse("");
  refuse("{}");
  refuse(new Uint8Array([0xff, 0xfe]));
  refuse(text.replace("leat-dataset-1", "leat-dataset-0"));
  refuse(text.replace('"kind":"range"', '"kind":"nonesuch"'), "unimplemented");
  refuse(text.replace('"step":1', '"step":0'));
  refuse(text.replace('"step":1', '"step":{"$bigint":"x"}'));
  refuse(text.replace('"step":1', `"step":{"$bigint":"${"9".repeat(3_000_000)}"}`));
  refuse("[".repeat(5_000_000));
  refuse(text.replace('"step":1', '"step":{"$tensor":null}'));
  refuse(text.replace('"attributes":{', '"attributes":null,"x":{'));
  const mapped = new TextDecoder().decode(Dataset.range(3).map((x) => x).serialize());
  refuse(mapped.replace("$function", () => "$$function"));
});

Deno.test("explain lists operators with their arguments, numbers and specs", () => {
  const text = String(Dataset.range(10).map((x) => x).batch(4).explain());
  assertEquals(text.split("\n"), [
    "0 batch(size=4, dropRemainder=false) → 3 elements of unknown",
    "  1 map(fn=(x)=>x) → 10 elements of unknown",
    "    2 range(start=0, stop=10, step=1) → 10 elements of float64",
    "map (operator 1) writes elements that are numbers directly to the batches of batch (operator 0): so they need " +
    "no memory of their own.",
  ]);
});

const SERVICE = "ws://127.0.0.1:5050";

Deno.test("distribute runs by the registered iterator, and keeps its options except the token", async () => {
  const make = () => Dataset.range(3).distribute({ service: SERVICE, token: "secret" });
  const error = assertThrows(() => make().iterator(), LeatError);
  assertEquals(error.code, "failed_precondition");
  registerServed((node, context) => {
    assertEquals(node.attributes.service, SERVICE);
    return context.makeInput();
  });
  assertEquals(await collect(make()), [0, 1, 2]);
  assert(!new TextDecoder().decode(make().serialize()).includes("secret"));
});

Deno.test("distribute checks its options", () => {
  const refuse = (options: object, named: string) => {
    const make = () => Dataset.range(3).distribute({ service: SERVICE, ...options } as never);
    assertStringIncludes(assertThrows(make, LeatError).message, named);
  };
  for (const service of ["", "http://x", "s3://bucket/key", "ws://", "ws://host/path"]) {
    refuse({ service }, `service must be ws://host:port, wss://host:port (with TLS), or a`);
    refuse({ service: { address: service } }, `got "${service}"`);
  }
  refuse({ service: "wss://user:secret@h:1" }, 'got "wss://…@h:1"');
  refuse({ service: { address: "user:secret@h:1" } }, 'got "…@h:1"');
  refuse({ service: "ws://h:1?token=secret" }, 'got "ws://h:1?…"');
  refuse({ service: "10.0.0.5:5050" }, "here ws://10.0.0.5:5050");
  refuse({ service: 5050 }, "got 5050");
  refuse({ service: undefined }, "got undefined");
  refuse({ processingMode: "SOME" }, "one of OFF, DYNAMIC");
  refuse({ numConsumers: 2 }, "both consumerIndex and numConsumers");
  refuse({ numConsumers: 2, consumerIndex: 0 }, "jobName");
  refuse({ numConsumers: 2, consumerIndex: 2, jobName: "j" }, "from 0 to 1");
  refuse({ sharing: {} }, "trainerId");
  refuse({ maxOutstandingRequests: 0 }, "maxOutstandingRequests");
  refuse({ bufferBytesMax: 0.5 }, "bufferBytesMax");
  refuse({ token: 5 }, "token must be the service's secret");
  refuse({ ca: {} }, "ca must be certificates in PEM");
  refuse({ ca: "ca.pem" }, 'got "ca.pem"');
});

Deno.test("a kind of node is registered once", () => {
  const fromWire = () => Dataset.range(1).node;
  const error = assertThrows(() => registerNode("range", { fromWire }), LeatError);
  assertEquals(error.code, "already_exists");
});

Deno.test("a deserialised dataset has the fingerprint of the original, whatever its seed", () => {
  for (const seed of [-1, -5n, 2n ** 70n + 3n, 7]) {
    const dataset = Dataset.range(3).shuffle(3, { seed }).withOptions({ seed });
    assertEquals(Dataset.deserialize(dataset.serialize()).fingerprint(), dataset.fingerprint());
  }
});
