/** The facts that a service needs about operators, checked for every registered kind. */
import { openIterator } from "../../data/dataset_iterator.ts";
import { chainOf } from "../../data/deterministic/chain.ts";
import { rebuilt } from "../../data/foreign/foreign.ts";
import type { DatasetNode, Division } from "../../data/node.ts";
import { Dataset } from "../../data/mod.ts";
import { withDrawnSeed } from "../../data/operators/options.ts";
import { deserializeGraph, serializeGraph } from "../../data/wire.ts";
import { assert, assertEquals } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { everyKind } from "./lib/every_kind.ts";
import { outcomesOf } from "./lib/outcomes.ts";

/** Every kind of operator, and how its work can be divided. */
async function facts(): Promise<[DatasetNode, Division][]> {
  await using folder = await TempFolder.make();
  const cases = await everyKind(folder.path);
  return cases.map(({ node, division }) => [node, division]);
}

Deno.test("every kind of operator declares how its work can be divided", async () => {
  for (const [node, division] of await facts()) {
    assertEquals(
      node.division,
      division,
      `every_kind.ts lists ${node.kind} under "${division}", its node says "${node.division}"`,
    );
  }
});

Deno.test("chainOf gives workers what can be divided by elements, splits and batches, and the reader the rest", async () => {
  const divided: readonly string[] = ["element", "split", "shuffle", "rows"] satisfies Division[];
  for (const [node, division] of await facts()) {
    const chain = chainOf(node);
    assertEquals(chain !== undefined, divided.includes(division), node.kind);
    if (division === "shuffle") assert(chain!.shuffled, node.kind);
    if (division === "rows") assertEquals(chain!.batch, node);
  }
});

Deno.test("operators declare the facts that advice needs", async () => {
  const byKind = new Map((await facts()).map((fact) => [fact[0].kind, fact]));
  const said = [...byKind.values()].filter(([{ adviceFacts }]) =>
    Object.keys(adviceFacts).length > 0
  )
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

/** The graph with operators that have no seed of their own. */
function unseeded(node: DatasetNode): DatasetNode {
  return rebuilt(node, { ...node.attributes, seed: undefined }, node.inputs.map(unseeded));
}

/** Whether the elements of a graph depend on the seed of its pipeline. */
async function dependsOnSeed(node: DatasetNode): Promise<boolean> {
  const streams = new Set<string>();
  for (const seed of [1n, 2n, 3n, 4n, 5n]) {
    await using iterator = openIterator(node, { seed });
    streams.add(Deno.inspect(await outcomesOf(iterator), { depth: 9, iterableLimit: 999 }));
  }
  return streams.size > 1;
}

Deno.test("withDrawnSeed sets the seed of every kind of operator that draws numbers from it", async () => {
  await using folder = await TempFolder.make();
  const drawing = new Set<string>();
  for (const { node, dataset, division } of await everyKind(folder.path)) {
    const graph = unseeded(dataset.node);
    if (division === "served" || !await dependsOnSeed(graph)) continue;
    drawing.add(node.kind);
    assert(withDrawnSeed(graph, 1n) !== graph, `${node.kind} draws numbers and does not say so`);
  }
  assertEquals([...drawing].sort(), [
    ...["fileGroups", "globalShuffle", "listFiles", "random"],
    ...["rejectionResample", "sampleFromDatasets", "shuffle"],
  ]);
});

Deno.test("distribute under DETERMINISTIC and offload draw numbers if the order of splits is drawn", () => {
  const service = "ws://127.0.0.1:1";
  const processingMode = "DETERMINISTIC";
  const draws = ({ node }: Dataset<unknown>) => withDrawnSeed(node, 1n) !== node;
  const shuffled = Dataset.range(9).shuffle(3, { seed: 5 });
  assert(draws(shuffled.distribute({ service, processingMode })));
  assert(draws(shuffled.take(5).distribute({ service, processingMode })));
  assert(draws(shuffled.offload({ service })));
  assert(!draws(shuffled.distribute({ service })));
  assert(!draws(Dataset.range(9).distribute({ service, processingMode })));
  assert(!draws(Dataset.range(9).offload({ service })));
});

Deno.test("withDrawnSeed finds functions that take random in a graph that was sent", () => {
  const records = Dataset.from([{ x: 1 }]);
  const drawing: readonly Dataset<unknown>[] = [
    Dataset.fromGenerator(({ random }) => [random.next()]),
    records.scan(0, (sum, { x }, { random }) => [sum, x + random.next()]),
    records.groupByReducer({
      key: ({ x }) => x,
      init: () => 0,
      reduce: (sum: number, { x }, { random }) => sum + x + random.next(),
    }),
    records.groupByReducer({
      key: ({ x }) => x,
      init: () => ({ sum: 0 }),
      reduce: (state) => state,
      finalize: ({ sum }, _key, { random }) => sum + random.next(),
    }),
  ];
  for (const { node } of drawing) {
    const sent = deserializeGraph(serializeGraph(node));
    assert(withDrawnSeed(sent, 1n) !== sent, node.kind);
  }
  const { node } = records.scan(0, (sum, { x }) => [sum, sum + x]);
  const sent = deserializeGraph(serializeGraph(node));
  assertEquals(withDrawnSeed(sent, 1n), sent);
});
