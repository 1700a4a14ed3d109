/**
 * A small program whose operators share what they read, so that each is written and read very often
 * elsewhere. It must cost neither its own process nor others memory before it is refused.
 */
import { Dataset, LeatError, registerDataset } from "../../mod.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";

/** A dataset of 2^(depth + 1) - 1 operators, as others see it, and of depth + 1 here. */
function doubled(depth: number): Dataset<unknown> {
  let dataset: Dataset<unknown> = Dataset.range(3);
  for (let i = 0; i < depth; i++) dataset = Dataset.zip([dataset, dataset]);
  return dataset;
}

function assertRefused(error: LeatError): void {
  assertEquals(error.code, "resource_exhausted", error.message);
  assert(error.message.includes("over the limit of 262144"), error.message);
}

Deno.test("a dataset with millions of shared operators is refused before it takes memory", async () => {
  const dataset = doubled(26);
  const service = "ws://127.0.0.1:1";
  const before = Deno.memoryUsage().heapTotal;
  assertRefused(assertThrows(() => dataset.serialize(), LeatError));
  assertRefused(assertThrows(() => dataset.fingerprint(), LeatError));
  const options = { service, processingMode: "OFF" } as const;
  assertRefused(assertThrows(() => dataset.distribute(options), LeatError));
  assertRefused(await assertRejects(() => registerDataset(service, dataset), LeatError));
  const grown = Deno.memoryUsage().heapTotal - before;
  assert(grown < 64 * 2 ** 20, `the refusals took ${grown} bytes`);
});

Deno.test("what operators share is written once for each of them, as for others", () => {
  const shared = Dataset.range(3).map((x) => x + 1);
  const zipped = Dataset.zip([shared, shared]);
  const apart = Dataset.zip([
    Dataset.range(3).map((x) => x + 1),
    Dataset.range(3).map((x) => x + 1),
  ]);
  assertEquals(zipped.serialize(), apart.serialize());
  assertEquals(Dataset.deserialize(zipped.serialize()).serialize(), zipped.serialize());
});
