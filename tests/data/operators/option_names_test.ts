/** Options: unknown names and values that are no option objects are refused. */

import { Dataset, LeatError, TensorSpec } from "../../../mod.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";

/** Untyped, as for users of JavaScript. */
// deno-lint-ignore no-explicit-any -- the compiler would refuse every call that is tested here
type Untyped = any;
const statics = Dataset as Untyped;
const ten = () => Dataset.range(10) as Untyped;
const same = (x: unknown) => x;
const lengths = { length: same, boundaries: [2], batchSizes: [1, 1] };
const classes = { classOf: same, targetDist: [1] };
const grouping = { key: same, reduce: same, windowSize: 2 };
const reducing = { key: same, init: same, reduce: same };
const sequences = () => Dataset.from([new Int32Array(2)]) as Untyped;

/** Every operator with options, called with these besides its required arguments. */
const CALLS: Record<string, (options: Untyped) => unknown> = {
  arrow: (options) => statics.arrow("a.arrow", options),
  batch: (options) => ten().batch(2, options),
  bucketBySequenceLength: (options) => ten().bucketBySequenceLength({ ...lengths, ...options }),
  chooseFromDatasets: (options) => statics.chooseFromDatasets([ten()], ten(), options),
  csv: (options) => statics.csv("a.csv", options),
  distribute: (options) => ten().distribute({ service: "ws://127.0.0.1:1", ...options }),
  filter: (options) => ten().filter(same, options),
  fixedLengthRecords: (options) =>
    statics.fixedLengthRecords("a.bin", { recordBytes: 2, ...options }),
  flatMap: (options) => ten().flatMap(same, options),
  fromGenerator: (options) => statics.fromGenerator(same, options),
  fromId: (options) => statics.fromId("ws://127.0.0.1:1", "id", options),
  globalShuffle: (options) => ten().globalShuffle(options),
  groupByReducer: (options) => ten().groupByReducer({ ...reducing, ...options }),
  groupByWindow: (options) => ten().groupByWindow({ ...grouping, ...options }),
  ignoreErrors: (options) => ten().ignoreErrors(options),
  imageFolder: (options) => statics.imageFolder("images", options),
  interleave: (options) => ten().interleave(same, options),
  iterator: (options) => ten().iterator(options),
  jsonLines: (options) => statics.jsonLines("a.jsonl", options),
  listFiles: (options) => statics.listFiles("*.txt", options),
  map: (options) => ten().map(same, options),
  npy: (options) => statics.npy("a.npy", options),
  npz: (options) => statics.npz("a.npz", options),
  offload: (options) =>
    ten().offload({ service: "ws://127.0.0.1:1", plan: { candidate: null, ratio: 0 }, ...options }),
  pack: (options) => sequences().pack({ length: 4, ...options }),
  paddedBatch: (options) => ten().paddedBatch(2, options),
  parquet: (options) => statics.parquet("a.parquet", options),
  raggedBatch: (options) => ten().raggedBatch(2, options),
  prefetch: (options) => ten().prefetch(2, options),
  random: (options) => statics.random(options),
  rebatch: (options) => ten().batch(2).rebatch(3, options),
  rejectionResample: (options) => ten().rejectionResample({ ...classes, ...options }),
  sampleFromDatasets: (options) => statics.sampleFromDatasets([ten()], options),
  scan: (options) => ten().scan(0, same, options),
  shuffle: (options) => ten().shuffle(2, options),
  snapshot: (options) => ten().snapshot("folder", options),
  takeWhile: (options) => ten().takeWhile(same, options),
  textLines: (options) => statics.textLines("a.txt", options),
  tfRecords: (options) => statics.tfRecords("a.tfrecord", options),
  wav: (options) => statics.wav("a.wav", options),
  webDataset: (options) => statics.webDataset("a.tar", options),
  window: (options) => ten().window(2, options),
  withOptions: (options) => ten().withOptions(options),
};

/** Operators whose options are not a separate argument in `CALLS`. */
const SPREAD = [
  "bucketBySequenceLength",
  "distribute",
  "fixedLengthRecords",
  "groupByReducer",
  "groupByWindow",
  "offload",
  "pack",
  "rejectionResample",
];

Deno.test("every operator with options is among the calls of these tests", async () => {
  const source = await Deno.readTextFile(new URL("../../../data/dataset.ts", import.meta.url));
  const methods = source.matchAll(
    /^ {2}(?:static )?(async )?(\w+)(?:<[^(]*>)?\([^)]*?\boptions\??:/gm,
  );
  const found = new Set([...methods].filter(([, later]) => !later).map(([, , name]) => name!));
  found.delete("deserialize"); // makes a dataset of bytes
  assertEquals([...found].filter((name) => !(name in CALLS)), []);
  assert(found.size > 30);
});

Deno.test("an unknown option is refused, naming the known ones", () => {
  for (const [operator, call] of Object.entries(CALLS)) {
    call({});
    call({ drop_remainder: undefined });
    const error = assertThrows(() => call({ drop_remainder: true }), LeatError, operator);
    assertEquals(error.code, "invalid_argument");
    assert(
      error.message.startsWith(`${operator}: there is no option "drop_remainder"; its options`),
    );
  }
  assertThrows(
    () => CALLS.batch!({ dropRemainer: true }),
    LeatError,
    `its options are dropRemainder, numParallelCalls, deterministic; did you mean "dropRemainder"?`,
  );
});

Deno.test("a value in place of options that is no object is refused", () => {
  for (const [operator, call] of Object.entries(CALLS)) {
    if (SPREAD.includes(operator)) continue;
    for (const wrong of [null, 42, "seed", [0.5, 0.5], true, same]) {
      assertThrows(
        () => call(wrong),
        LeatError,
        `${operator}: options must be an object such as {`,
      );
    }
  }
  for (const operator of SPREAD.filter((name) => name !== "fixedLengthRecords")) {
    assertThrows(() => ten()[operator](null), LeatError, `${operator}: options must be an object`);
  }
});

Deno.test("known options are accepted", async () => {
  const batch = ten().batch(4, { dropRemainder: true, numParallelCalls: 2, deterministic: true });
  assertEquals(batch.cardinality(), 2);
  const spec = new TensorSpec("int32", []);
  assertEquals(ten().map(same, { spec, captures: { a: 1 } }).elementSpec, spec);
  const drawn = statics.sampleFromDatasets([ten(), ten()], { weights: [1, 0], seed: 1 });
  assertEquals((await Array.fromAsync(drawn)).length, 10);
});

Deno.test("null is refused as the value of an option", () => {
  const refused: [string, () => unknown][] = [
    ["map: numParallelCalls", () => ten().map(same, { numParallelCalls: null })],
    ["filter: numParallelCalls", () => ten().filter(same, { numParallelCalls: null })],
    ["iterator: isReadOnly", () => ten().iterator({ isReadOnly: null })],
    ["iterator: needsOrder", () => ten().iterator({ needsOrder: null })],
    ["window: shift", () => ten().window(2, { shift: null })],
    ["window: stride", () => ten().window(2, { stride: null })],
    ["pack: maxOpenBins", () => sequences().pack({ length: 2, maxOpenBins: null })],
    ["pack: overflow", () => sequences().pack({ length: 2, overflow: null })],
    ["pack: algorithm", () => sequences().pack({ length: 2, algorithm: null })],
    ["groupByReducer: finalize", () => ten().groupByReducer({ ...reducing, finalize: null })],
    ["imageFolder: shuffle", () => statics.imageFolder("images", { shuffle: null })],
    ["imageFolder: seed", () => statics.imageFolder("images", { seed: null })],
  ];
  for (const [what, call] of refused) assertThrows(call, LeatError, `${what} `);
});

Deno.test("an option of another type is refused where it is used", () => {
  for (const isReadOnly of ["false", 1]) {
    assertThrows(() => ten().iterator({ isReadOnly }), LeatError, "iterator: isReadOnly must be");
  }
  for (const rewrite of [5, null, "f", {}]) {
    assertThrows(
      () => ten().distribute({ service: "ws://127.0.0.1:1", rewrite }),
      LeatError,
      "distribute: rewrite must be a function",
    );
  }
});

Deno.test("save and load refuse invalid paths, functions and options", async () => {
  const path = "./.cache/never-written";
  const refused: [string, () => Promise<unknown>][] = [
    ["save: onProgress must be", () => ten().save(path, { onProgress: 3 })],
    ["save: shardFunc must be", () => ten().save(path, { shardFunc: null })],
    ["save: there is no option", () => ten().save(path, { chunkBytes: 3 })],
    ["load: path must be", () => statics.load(3)],
    ["load: path must be", () => statics.load("")],
    ["load: readerFunc must be", () => statics.load(path, { readerFunc: null })],
    ["load: there is no option", () => statics.load(path, { waits: true })],
    ["reduce: there is no option", () => ten().reduce(0, same, { parallel: 2 })],
  ];
  for (const [what, call] of refused) await assertRejects(call, LeatError, what);
});

Deno.test("a value that cannot be a tensor is refused by the operator that gets it", () => {
  for (const operator of ["fromTensors", "fromTensorSlices"]) {
    for (
      const wrong of [undefined, same, new Map(), [1, [2]], [[1], [2, 3]], { x: [1, undefined] }]
    ) {
      const error = assertThrows(() => statics[operator](wrong), LeatError, `${operator}: `);
      assertEquals(error.code, "invalid_argument");
    }
  }
});
