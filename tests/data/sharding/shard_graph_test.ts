/** Static sharding of graphs: what each of several workers runs. */

import { LeatError } from "../../../core/error.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, SHARD_HINT, ShardingPolicy, shardingPolicy } from "../../../data/mod.ts";
import { CustomShardingPolicy } from "../../../data/sharding/custom_policy.ts";
import { shardGraph } from "../../../data/sharding/shard_graph.ts";
import type { ShardingMode } from "../../../data/sharding/sharding_policy.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import "../lib/collect.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

/** Ten files: file i holds the lines `i/0` to `i/2`. */
async function withFiles(use: (folder: string) => Promise<void>): Promise<void> {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  for (let i = 0; i < 10; i++) {
    await Deno.writeTextFile(`${folder}/${i}.txt`, `${i}/0\n${i}/1\n${i}/2\n`);
  }
  await use(folder);
}

/** The elements of each of `count` workers, all with one seed. */
async function shardsOf<T>(
  dataset: Dataset<T>,
  policy: ShardingMode,
  count: number,
): Promise<T[][]> {
  const shards: T[][] = [];
  for (let index = 0; index < count; index++) {
    const node = shardGraph(dataset.node, policy, { index, count });
    shards.push(await Array.fromAsync(openIterator<T>(node, { seed: 7n })));
  }
  return shards;
}

/** The numbers of the files that lines come from, each once, ascending. */
function filesOf(lines: readonly string[]): number[] {
  return [...new Set(lines.map((line) => Number(line.split("/")[0])))].sort((a, b) => a - b);
}

const EVERY_THIRD = [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]];

Deno.test("FILE gives file i to worker i mod n, whatever operators follow", () =>
  withFiles(async (folder) => {
    const files = Dataset.listFiles(`${folder}/*`, { shuffle: false });
    const paths = Array.from({ length: 10 }, (_, i) => `${folder}/${i}.txt`);
    const datasets: Record<string, Dataset<string>> = {
      listed: Dataset.textLines(files),
      shuffled: Dataset.textLines(Dataset.listFiles(`${folder}/*`)).shuffle(5),
      named: Dataset.textLines(paths, { numParallelReads: 3 }).cache().prefetch(2),
      counted: Dataset.textLines(paths).assertCardinality(30),
      "names shuffled": Dataset.textLines(Dataset.from(paths).shuffle(4)).batch(2).unbatch(),
      interleaved: files.interleave((path, { Dataset }) => Dataset.textLines(path)),
      "shuffled and interleaved": Dataset.listFiles(`${folder}/*`).flatMap((path, { Dataset }) =>
        Dataset.textLines(path)
      ),
    };
    for (const [name, dataset] of Object.entries(datasets)) {
      const shards = await shardsOf(dataset, "FILE", 3);
      assertEquals(shards.map(filesOf), EVERY_THIRD, name);
      assertEquals(shards.flat().length, 30, name);
    }
  }));

Deno.test("FILE gives the files of an endless list as they come, also after a restore", () =>
  withFiles(async (folder) => {
    let asked = 0;
    const names = Dataset.fromGenerator(function* () {
      for (;; asked++) yield `${folder}/${asked % 10}.txt`;
    });
    const dataset = Dataset.textLines(names);
    const node = shardGraph(dataset.node, "FILE", { index: 1, count: 3 });
    await using iterator = openIterator<string>(node);
    const lines = Array.from(
      { length: 30 },
      (_, i) => `${(1 + 3 * Math.floor(i / 3)) % 10}/${i % 3}`,
    );
    for (const line of lines.slice(0, 20)) assertEquals((await iterator.next()).value, line);
    assert(asked < 40, `${asked} names were asked for`);
    const saved = await iterator.save();
    asked = 0;
    await using restored = openIterator<string>(node);
    await restored.restore(saved);
    for (const line of lines.slice(20)) assertEquals((await restored.next()).value, line);
  }));

Deno.test("FILE shuffles a worker's files after the division, differently in every epoch", () =>
  withFiles(async (folder) => {
    const dataset = Dataset.textLines(Dataset.listFiles(`${folder}/*`));
    const node = shardGraph(dataset.node, "FILE", { index: 0, count: 2 });
    const orders = new Set<string>();
    for (let epoch = 0; epoch < 8; epoch++) {
      const lines = await Array.fromAsync(openIterator<string>(node, { seed: 7n, epoch }));
      assertEquals(filesOf(lines), [0, 2, 4, 6, 8]);
      orders.add(String(lines));
    }
    assert(orders.size > 1, `${orders.size} orders`);
  }));

Deno.test("FILE divides every input of zip, concatenate and sampleFromDatasets", () =>
  withFiles(async (folder) => {
    const lines = () => Dataset.textLines(Dataset.listFiles(`${folder}/*`, { shuffle: false }));
    const zipped = await shardsOf(lines().zip(lines()).map(([one]) => one), "FILE", 3);
    assertEquals(zipped.map(filesOf), EVERY_THIRD);
    const both = await shardsOf(lines().concatenate(lines()), "FILE", 3);
    assertEquals(both.map(filesOf), EVERY_THIRD);
    assertEquals(both.flat().length, 60);
    const sampled = await shardsOf(Dataset.sampleFromDatasets([lines(), lines()]), "FILE", 3);
    assertEquals(sampled.map(filesOf), EVERY_THIRD);
    const choice = Dataset.from([0, 1]).repeat();
    const chosen = Dataset.chooseFromDatasets([lines(), lines()], choice);
    assertEquals((await shardsOf(chosen, "FILE", 3)).map(filesOf), EVERY_THIRD);
  }));

Deno.test("FILE needs at least one file for each worker, and counts both", () =>
  withFiles(async (folder) => {
    const dataset = Dataset.textLines(Dataset.listFiles(`${folder}/*`));
    for (const policy of ["FILE", "FILE_OR_DATA"] as const) {
      const error = await assertRejects(() => shardsOf(dataset, policy, 11), LeatError);
      assertEquals(error.code, "invalid_argument");
      assert(
        error.message.includes("10 files, which is not enough for the required 11 shards/workers"),
        error.message,
      );
    }
    const node = shardGraph(dataset.node, "FILE", { index: 0, count: 11 });
    await using iterator = openIterator(node);
    await assertRejects(() => iterator.next(), LeatError);
    assertEquals((await iterator.next()).done, true);
  }));

Deno.test("FILE refuses a dataset without files", () => {
  const shard = { index: 0, count: 2 };
  const datasets = [
    Dataset.range(10).map((x) => x),
    Dataset.from(["a"]),
    Dataset.fromGenerator(() => [1]),
    Dataset.textLines(["a", "b"]).zip(Dataset.range(2)),
    Dataset.textLines(["a", "b"]).snapshot("/tmp/none"),
  ];
  for (const { node } of datasets) {
    const error = assertThrows(() => shardGraph(node, "FILE", shard), LeatError);
    assertEquals(error.code, "not_found");
    assert(error.message.includes("Found an unshardable source dataset"), error.message);
  }
});

Deno.test("FILE and HINT refuse to store a share in place of the whole dataset", () => {
  const shard = { index: 0, count: 2 };
  const cached = Dataset.textLines(["a", "b"]).cache("/tmp/none");
  const hinted = Dataset.range(4).shard(SHARD_HINT, SHARD_HINT).cache("/tmp/none");
  for (const [dataset, policy] of [[cached, "FILE"], [hinted, "HINT"]] as const) {
    const error = assertThrows(() => shardGraph(dataset.node, policy, shard), LeatError);
    assertEquals(error.code, "failed_precondition");
  }
  const before = Dataset.range(4).cache("/tmp/none").shard(SHARD_HINT, SHARD_HINT);
  assertEquals(shardGraph(before.node, "HINT", shard).kind, "shard");
});

Deno.test("shardGraph refuses a mode that it does not know", () => {
  const { node } = Dataset.range(4);
  const divide = () => shardGraph(node, "DYNAMIC", { index: 0, count: 2 });
  assertEquals(assertThrows(divide, LeatError).code, "internal");
});

Deno.test("DATA gives element i of the final dataset to worker i mod n", async () => {
  const dataset = Dataset.range(20).shuffle(20).batch(3);
  const whole =
    (await Array.fromAsync(openIterator<typeof dataset extends Dataset<infer T> ? T : never>(
      dataset.node,
      { seed: 7n },
    ))).map(String);
  const shards = (await shardsOf(dataset, "DATA", 3)).map((shard) => shard.map(String));
  for (const [index, shard] of shards.entries()) {
    assertEquals(shard, whole.filter((_, i) => i % 3 === index));
  }
});

Deno.test("DATA gives every element once, although operators may reorder", async () => {
  const dataset = Dataset.range(40).map(async (x) => {
    for (let turns = (x * 7) % 5; turns > 0; turns--) await Promise.resolve();
    return x;
  }, { numParallelCalls: 4, deterministic: false }).withOptions({ deterministic: false });
  const shards = await shardsOf(dataset, "DATA", 3);
  assertEquals(shards.map((shard) => shard[0]), [0, 1, 2]);
  assertEquals(shards.flat().sort((a, b) => a - b), Array.from({ length: 40 }, (_, i) => i));
});

Deno.test("FILE_OR_DATA divides files if there are any, and elements otherwise", () =>
  withFiles(async (folder) => {
    const lines = Dataset.textLines(Dataset.listFiles(`${folder}/*`));
    const shards = await shardsOf(lines, "FILE_OR_DATA", 5);
    assertEquals(filesOf(shards[3]!), [3, 8]);
    assertEquals(await shardsOf(Dataset.range(5), "FILE_OR_DATA", 2), [[0, 2, 4], [1, 3]]);
  }));

Deno.test("HINT replaces hints by workers, and leaves other shards unchanged", async () => {
  const hinted = Dataset.range(12).shard(2, 1).shard(SHARD_HINT, SHARD_HINT).map((x) => x * 10);
  assertEquals(await shardsOf(hinted, "HINT", 3), [[10, 70], [30, 90], [50, 110]]);
  const shuffled = Dataset.range(12).shuffle(12).shard(SHARD_HINT, 4);
  assertEquals((await shardsOf(shuffled, "HINT", 3)).flat().length, 12);
  assertEquals(new Set((await shardsOf(shuffled, "HINT", 3)).flat()).size, 12);
  assertEquals(await shardsOf(Dataset.range(4).shard(2, 1), "HINT", 2), [[1, 3], [1, 3]]);
});

Deno.test("HINT keeps the order of elements up to its hints, whatever the pipeline says", () => {
  const hurried = { numParallelCalls: 4, deterministic: false };
  const shareOf = (dataset: Dataset<unknown>) =>
    shardGraph(dataset.node, "HINT", { index: 0, count: 2 });
  const own = shareOf(
    Dataset.range(9).map((x) => x, hurried).shard(SHARD_HINT, SHARD_HINT).map((x) => x, hurried),
  );
  assertEquals(own.attributes["deterministic"], false, "it may follow the division");
  assertEquals(own.inputs[0]!.inputs[0]!.attributes["deterministic"], true);
  const unhinted = Dataset.range(9).map((x) => x, hurried);
  assertEquals(shareOf(unhinted).attributes["deterministic"], false);
});

Deno.test("SHARD_HINT is refused wherever no HINT job replaces it", () => {
  const hinted = Dataset.range(4).shard(SHARD_HINT, SHARD_HINT).batch(2);
  assertEquals(hinted.cardinality(), -2);
  const error = assertThrows(() => hinted.iterator(), LeatError);
  assertEquals(error.code, "failed_precondition");
  assert(error.message.includes('processingMode: "HINT"'), error.message);
  const data = shardGraph(hinted.node, "DATA", { index: 0, count: 2 });
  assertThrows(() => openIterator(data), LeatError, "SHARD_HINT");
});

Deno.test("a graph sharded for one worker is the whole", () =>
  withFiles(async (folder) => {
    const lines = Dataset.textLines(Dataset.listFiles(`${folder}/*`));
    for (const policy of ["FILE", "DATA", "FILE_OR_DATA", "HINT"] as const) {
      assertEquals((await shardsOf(lines, policy, 1)).flat().length, 30, policy);
    }
  }));

Deno.test("shardingPolicy divides by its function, locally and after serialisation", async () => {
  const policy = shardingPolicy("contiguous", {
    shard(dataset, { index, count, length, Dataset }) {
      const share = Math.ceil(length / count);
      return dataset.skip(index * share).take(share).concatenate(Dataset.from([-1 - index]));
    },
    captures: { length: 5 },
  });
  const rebuilt = CustomShardingPolicy.fromWire(policy.toWire());
  assertEquals(rebuilt.toWire(), policy.toWire());
  const { node } = Dataset.range(5);
  const host = new DenoHost();
  const shards: unknown[][] = [];
  for (let index = 0; index < 2; index++) {
    const part = await rebuilt.shardOf(node, { index, count: 2 }, host);
    shards.push(await Array.fromAsync(openIterator(part)));
  }
  assertEquals(shards, [[0, 1, 2, -1], [3, 4, -2]]);
});

Deno.test("shardingPolicy refuses anything but a name and its options", () => {
  const shard = (dataset: Dataset<unknown>) => dataset;
  const refused: [() => unknown, string][] = [
    [() => shardingPolicy("p", undefined as never), "shardingPolicy: shard must be"],
    [() => shardingPolicy("p", null as never), "shardingPolicy: options must be"],
    [() => shardingPolicy(1n as never, { shard }), "shardingPolicy: name must be"],
  ];
  for (const [make, message] of refused) {
    assertEquals(assertThrows(make, LeatError, message).code, "invalid_argument");
  }
});

Deno.test("shardingPolicy refuses names that its function is not given, also as captures", () => {
  assertThrows(
    () => shardingPolicy("p", { shard: (dataset, { random }: never) => dataset.skip(random) }),
    LeatError,
    'takes "random" from its last argument',
  );
  // A graph with such a capture could not be deserialised.
  const shard = (dataset: Dataset<unknown>, { image }: { image: number }) => dataset.take(image);
  assertThrows(
    () => shardingPolicy("p", { shard, captures: { image: 2 } }),
    LeatError,
    'a capture cannot be called "image"',
  );
});

Deno.test("shardingPolicy refuses invalid policies", async () => {
  const outside = 3;
  const error = assertThrows(
    () => shardingPolicy("p", { shard: (dataset) => dataset.take(outside) }),
    LeatError,
  );
  assertEquals(error.code, "failed_precondition");
  assert(error.message.includes("outside"), error.message);
  assertThrows(() => shardingPolicy("", { shard: (dataset) => dataset }), LeatError, "name");
  assertThrows(() => shardingPolicy("p", { shard: 3 as never }), LeatError, "shard must be");
  const captures = { count: 1 };
  assertThrows(() => shardingPolicy("p", { shard: (d) => d, captures }), LeatError, '"count"');
  const { node } = Dataset.range(5);
  const worker = { index: 1, count: 2 };
  const none = shardingPolicy("none", { shard: () => 5 as never });
  const wrong = await assertRejects(() => none.shardOf(node, worker, new DenoHost()), LeatError);
  assertEquals([wrong.code, wrong.message.includes("must return a Dataset")], [
    "invalid_argument",
    true,
  ]);
  const failing = shardingPolicy("failing", { shard: (dataset) => dataset.batch(0) });
  await assertRejects(
    () => failing.shardOf(node, worker, new DenoHost()),
    LeatError,
    'The sharding policy "failing" failed for worker 1 of 2',
  );
});

Deno.test("distribute accepts policies by name and custom ones, and distinguishes them", () => {
  const service = "ws://127.0.0.1:1";
  const policy = shardingPolicy("all", { shard: (dataset) => dataset });
  const dataset = Dataset.range(4);
  for (const processingMode of [...Object.values(ShardingPolicy), policy]) {
    const distributed = dataset.distribute({ service, processingMode });
    const again = Dataset.deserialize(distributed.serialize(), { trustPipeline: true });
    assertEquals(again.fingerprint(), distributed.fingerprint());
  }
  assertThrows(
    () => dataset.distribute({ service, processingMode: "SIDEWAYS" as never }),
    LeatError,
    "SIDEWAYS",
  );
});

Deno.test("a distributed dataset knows its cardinality if the policy allows it", () => {
  const service = "ws://127.0.0.1:1";
  const cardinalities = (dataset: Dataset<number>) =>
    (["OFF", "DYNAMIC", "DATA", "FILE", "FILE_OR_DATA", "HINT"] as const).map((processingMode) =>
      dataset.distribute({ service, processingMode }).cardinality()
    );
  const inf = Infinity;
  assertEquals(cardinalities(Dataset.range(4)), [-2, -2, -2, -2, -2, -2]);
  assertEquals(cardinalities(Dataset.range(4).repeat()), [inf, inf, inf, -2, -2, -2]);
  assertEquals(cardinalities(Dataset.range(0)), [0, 0, 0, -2, 0, -2]);
});
