/**
 * Datasets that are registered once and read by their id, and pipelines that are rewritten before.
 *
 * @module
 */
import { Dataset, LeatError, registerDataset, TensorSpec } from "../../mod.ts";
import { assert, assertEquals, assertNotEquals, assertRejects, assertThrows } from "../assert.ts";
import { numbersOf, sorted, testInline, testOnEach, upTo } from "./carriers.ts";

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

testInline("an id that nobody has registered is not_found, by name", async (start) => {
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

Deno.test("fromId knows of the elements what it is told, and refuses what it cannot do", () => {
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
  const ordered = () => Dataset.fromId(service, "d", { processingMode: "DETERMINISTIC" });
  assertEquals(assertThrows(ordered, LeatError).code, "unimplemented");
});
