/**
 * Datasets that are registered once and read by their id, and pipelines that are rewritten before.
 */
import { Dataset, LeatError, registerDataset, TensorSpec } from "../../../mod.ts";
import {
  assert,
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertThrows,
} from "../../assert.ts";
import { outcomesOf, readOutcomes } from "../../data/lib/outcomes.ts";
import { numbersOf, sorted, testInline, testOnEach, upTo } from "../lib/carriers.ts";

const makeDataset = () => Dataset.range(40).map((x) => x + 1).batch(4);

testOnEach("a registered dataset is read by its id under every policy", async (start) => {
  await using cluster = await start({ workers: 2 });
  const datasetId = await registerDataset(cluster, makeDataset());
  for (const processingMode of ["DYNAMIC", "DATA"] as const) {
    const batches = Dataset.fromId(cluster, datasetId, { processingMode });
    assertEquals(sorted(await numbersOf(batches)), upTo(40).map((x) => x + 1), processingMode);
  }
  assertEquals((await numbersOf(Dataset.fromId(cluster, datasetId))).length, 80);
});

testInline("equal pipelines have one id, others another, and one may be chosen", async (start) => {
  await using cluster = await start({ workers: 1 });
  const first = await registerDataset(cluster, makeDataset());
  assertEquals(await registerDataset(cluster, makeDataset()), first);
  assertNotEquals(await registerDataset(cluster, makeDataset().take(1)), first);
  assertEquals(await registerDataset(cluster, makeDataset(), { datasetId: "mine" }), "mine");
  assertEquals(await registerDataset(cluster, makeDataset(), { datasetId: "mine" }), "mine");
  const other = makeDataset().take(1);
  const error = await assertRejects(
    () => registerDataset(cluster, other, { datasetId: "mine" }),
    LeatError,
  );
  assertEquals(error.code, "already_exists");
  for (const dataset of [makeDataset(), other]) {
    assert(error.message.includes(dataset.fingerprint()), error.message);
  }
});

testInline("an unregistered id is not_found, by name", async (start) => {
  await using cluster = await start({ workers: 1 });
  await using iterator = Dataset.fromId(cluster, "no such").iterator();
  const error = await assertRejects(() => iterator.next(), LeatError, '"no such"');
  assertEquals(error.code, "not_found");
});

testOnEach(
  "clients meet in a job by name, whether they have the dataset or its id",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const datasetId = await registerDataset(cluster, makeDataset());
    const job = { jobName: "j", processingMode: "DYNAMIC" } as const;
    const both = await Promise.all([
      numbersOf(Dataset.fromId(cluster, datasetId, job)),
      numbersOf(makeDataset().distribute({ service: cluster, ...job })),
    ]);
    assertEquals(sorted(both.flat()), upTo(40).map((x) => x + 1));
  },
);

testInline("a pipeline is rewritten before it is registered", async (start) => {
  await using cluster = await start({ workers: 2 });
  const service = cluster;
  const rewrite = (dataset: Dataset<number>) => dataset.map((x) => x * 2);
  const numbers = Dataset.range(10);
  const distributed = numbers.distribute({ service, processingMode: "DYNAMIC", rewrite });
  assertEquals(sorted(await Array.fromAsync(distributed)), upTo(10).map((x) => 2 * x));
  const datasetId = await registerDataset(service, numbers, { rewrite });
  assertEquals(await registerDataset(service, numbers.map((x) => x * 2)), datasetId);
  const nothing = () => undefined as never;
  assertThrows(() => numbers.distribute({ service, rewrite: nothing }), LeatError, "rewrite");
  await assertRejects(() => registerDataset(service, numbers, { rewrite: nothing }), LeatError);
});

Deno.test("fromId knows only the given properties of the elements, and refuses operations that need more", () => {
  const service = "ws://127.0.0.1:1";
  const spec = new TensorSpec("float32", [null]);
  const dataset = Dataset.fromId(service, "d", { spec });
  assertEquals(dataset.elementSpec, spec);
  assertEquals(Dataset.fromId(service, "d").elementSpec, undefined);
  assertEquals(dataset.cardinality(), -2);
  const rounds = { jobName: "j", consumerIndex: 0, numConsumers: 2 };
  assertEquals(Dataset.fromId(service, "d", rounds).cardinality(), Infinity);
  assertEquals(Dataset.deserialize(dataset.serialize()).fingerprint(), dataset.fingerprint());
  assertThrows(() => Dataset.fromId(service, ""), LeatError, "datasetId");
  assertThrows(() => Dataset.fromId("", "d"), LeatError, "fromId: service");
});

testInline("fromId checks a service's elements against the given spec", async (start) => {
  await using cluster = await start({ workers: 1 });
  const id = await registerDataset(cluster, Dataset.range(3).map((x) => x === 1 ? "one" : x));
  const spec = new TensorSpec("float64", []);
  for (const processingMode of ["OFF", "DETERMINISTIC"] as const) {
    await using iterator = Dataset.fromId(cluster, id, { spec, processingMode }).iterator();
    assertEquals((await iterator.next()).value, 0);
    const error = await assertRejects(() => iterator.next(), LeatError, '"one", but the spec says');
    assertEquals(error.code, "invalid_argument");
    assertEquals((await iterator.next()).value, 2);
    assertEquals((await iterator.next()).done, true);
  }
});

testInline(
  "what is undefined in an element is refused alike near and far, by its path",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const partly = Dataset.range(3).map((x) => ({ x, y: x === 1 ? undefined : [x] }));
    const bare = Dataset.from<unknown>([1, undefined, 2]);
    const holed = Dataset.range(2).map((x) => [...new Array(x), x, new Array(1)]);
    for (const dataset of [partly, bare, holed, holed.batch(1)] as Dataset<unknown>[]) {
      const near = await outcomesOf(dataset.iterator());
      const far = dataset.distribute({ service: cluster, processingMode: "DETERMINISTIC" });
      assertEquals(await outcomesOf(far.iterator()), near);
    }
    await using iterator = partly.distribute({ service: cluster }).iterator();
    await iterator.next();
    await assertRejects(() => iterator.next(), LeatError, "component y is undefined: give null");
  },
);

const trusted = { processingMode: "DETERMINISTIC", trustPipeline: true } as const;

/** A pipeline with a part that runs by splits, one where they are joined, and one at the reader. */
const makeOrdered = () =>
  Dataset.range(120).shuffle(10).filter((x) => x % 7 !== 0).batch(5).map((batch) => ({ batch }))
    .skip(2);

testOnEach("a registered dataset gives its canonical stream by its id", async (start) => {
  await using cluster = await start({ workers: 2 });
  const mode = { processingMode: "DETERMINISTIC" } as const;
  const wanted = await outcomesOf(
    makeOrdered().distribute({ service: cluster, ...mode }).iterator(),
  );
  const id = await registerDataset(cluster, makeOrdered());
  assertEquals(await outcomesOf(Dataset.fromId(cluster, id, trusted).iterator()), wanted);
});

testInline(
  "a place in a registered dataset's stream is restored, on another service too",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    await registerDataset(cluster, makeOrdered(), { datasetId: "d" });
    await using saver = Dataset.fromId(cluster, "d", trusted).iterator();
    const found = await readOutcomes(saver, 7);
    const state = await saver.save();
    found.push(...await outcomesOf(saver));
    await using other = await start({ workers: 1 });
    await registerDataset(other, makeOrdered(), { datasetId: "d" });
    await using restored = Dataset.fromId(other, "d", trusted).iterator();
    await restored.restore(state);
    assertEquals(await outcomesOf(restored), found.slice(7));
    await using third = await start({ workers: 1 });
    await registerDataset(third, makeOrdered().take(1), { datasetId: "d" });
    await using refused = Dataset.fromId(third, "d", trusted).iterator();
    const error = await assertRejects(() => refused.restore(state), LeatError, "another pipeline");
    assertEquals(error.code, "failed_precondition");
  },
);

testInline(
  "a registered dataset that differs from run to run has no canonical stream",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const id = await registerDataset(cluster, Dataset.range(4).map((x) => x + Math.random()));
    const mode = { processingMode: "DETERMINISTIC" } as const;
    await using iterator = Dataset.fromId(cluster, id, mode).iterator();
    const error = await assertRejects(() => iterator.next(), LeatError, "Math.random");
    assertEquals(error.code, "failed_precondition");
    assertEquals((await iterator.next()).done, true);
  },
);
