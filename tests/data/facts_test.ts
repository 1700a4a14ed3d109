/** The facts that a service needs about operators, checked for every registered kind. */
import { type DatasetNode, type Division, nodeKinds } from "../../data/node.ts";
import { chainOf } from "../../data/deterministic/chain.ts";
import { FileShardNode } from "../../data/sharding/file_shard.ts";
import { Dataset } from "../../mod.ts";
import { assert, assertEquals } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";

const SERVICE = "ws://127.0.0.1:1";
const ten = Dataset.range(10);
const pieces = ten.map((x) => new Int32Array(x % 3 + 1));

await using folder = await TempFolder.make();
await ten.save(`${folder.path}/saved`);

/** An operator of every kind, by how its work can be divided. */
const BY_DIVISION: Readonly<Record<Division, readonly Pick<Dataset<unknown>, "node">[]>> = {
  element: [ten.map((x) => x), ten.prefetch(2), ten.withOptions({ seed: 1 })],
  position: [ten.assertCardinality(10), ten.enumerate()],
  split: [
    pieces.bucketBySequenceLength({ length: (x) => x.length, boundaries: [2], batchSizes: [1, 1] }),
    ten.cache(),
    ten.filter((x) => x > 2),
    ten.flatMap((x, { Dataset }) => Dataset.range(x)),
    ten.groupByWindow({ key: () => 0, reduce: (_, window) => window, windowSize: 2 }),
    ten.interleave((x, { Dataset }) => Dataset.range(x)),
    pieces.unbatch(),
    Dataset.arrow("a"),
    Dataset.csv("a"),
    { node: Dataset.textLines(["a", "b"]).node.inputs[0]! },
    Dataset.fixedLengthRecords("a", { recordBytes: 1 }),
    Dataset.from([1]),
    Dataset.fromTensors(1),
    Dataset.fromTensorSlices([1]),
    ten.globalShuffle(),
    Dataset.imageFolder("a"),
    Dataset.jsonLines("a"),
    Dataset.listFiles("a", { shuffle: false }),
    Dataset.npy("a"),
    Dataset.npz("a"),
    Dataset.parquet("a"),
    ten,
    await Dataset.load(`${folder.path}/saved`),
    Dataset.textLines("a"),
    Dataset.tfRecords("a"),
    Dataset.wav("a"),
    Dataset.webDataset("a"),
  ],
  shuffle: [ten.shuffle(3), Dataset.listFiles("a")],
  rows: [ten.batch(2), pieces.paddedBatch(2), pieces.raggedBatch(2)],
  whole: [
    Dataset.chooseFromDatasets([ten], ten.map(() => 0)),
    ten.concatenate(ten),
    Dataset.counter(),
    Dataset.fromGenerator(function* () {
      yield 1;
    }),
    ten.groupByReducer({ key: () => 0, init: () => 0, reduce: (sum, x) => sum + x }),
    await Dataset.load(`${folder.path}/saved`, { wait: true }),
    ten.ignoreErrors(),
    pieces.pack({ length: 3 }),
    ten.batch(5).map((x) => ({ x })).padToCardinality(12, "isReal"),
    Dataset.random(),
    ten.batch(2).rebatch(3),
    ten.rejectionResample({ classOf: (x) => x % 2, targetDist: [0.5, 0.5] }),
    ten.repeat(2),
    Dataset.sampleFromDatasets([ten]),
    ten.scan(0, (sum, x) => [sum + x, sum + x]),
    ten.shard(2, 0),
    { node: new FileShardNode(Dataset.listFiles("a").node, 2, 0) },
    ten.skip(1),
    ten.take(1),
    ten.takeWhile(() => true),
    ten.unique(),
    ten.window(2),
    ten.zip(ten),
  ],
  stored: [ten.snapshot("a")],
  served: [
    ten.distribute({ service: SERVICE }),
    await Dataset.fromId(SERVICE, "id", { spec: undefined }),
  ],
};

const ALL = Object.entries(BY_DIVISION).flatMap(([division, datasets]) =>
  datasets.map(({ node }): [DatasetNode, string] => [node, division])
);

Deno.test("every kind of operator declares how its work can be divided", () => {
  const kinds = new Set(ALL.map(([{ kind }]) => kind));
  assertEquals([...kinds].sort(), nodeKinds().sort());
  for (const [node, division] of ALL) assertEquals(node.division, division, node.kind);
});

Deno.test("chainOf gives workers what can be divided by elements, splits and batches, and the reader the rest", () => {
  const divided: readonly string[] = ["element", "split", "shuffle", "rows"] satisfies Division[];
  for (const [node, division] of ALL) {
    const chain = chainOf(node);
    assertEquals(chain !== undefined, divided.includes(division), node.kind);
    if (division === "shuffle") assert(chain!.shuffled, node.kind);
    if (division === "rows") assertEquals(chain!.batch, node);
  }
});

Deno.test("operators declare the facts that advice needs", () => {
  const said = ALL.filter(([{ adviceFacts }]) => Object.keys(adviceFacts).length > 0)
    .map(([{ kind, adviceFacts: { toHoldLess, ...facts } }]) =>
      [kind, Object.keys(facts).join(), toHoldLess !== undefined] as const
    );
  assertEquals(said, [
    ["map", "callsSideBySide", false],
    ["prefetch", "readsAhead", true],
    ["bucketBySequenceLength", "opensDatasets", false],
    ["cache", "opensDatasets", true],
    ["filter", "callsSideBySide", false],
    ["flatMap", "opensDatasets", false],
    ["groupByWindow", "opensDatasets", false],
    ["interleave", "callsSideBySide,opensDatasets", false],
    ["shuffle", "", true],
    ["snapshot", "opensDatasets", false],
  ]);
});
