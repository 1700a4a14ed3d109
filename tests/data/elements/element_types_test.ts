/** The types of operators' results, against what the operators give. */

import { Dataset, RaggedTensor, type Tensor, tensor, UNKNOWN_CARDINALITY } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("the type of fromTensors keeps ragged tensors", async () => {
  const ragged = new RaggedTensor(tensor([1, 2, 3]), new BigInt64Array([0n, 2n, 3n]));
  const { rows, list } = await Dataset.fromTensors({ rows: ragged, list: [1, 2] })
    .getSingleElement();
  rows satisfies RaggedTensor;
  list satisfies Tensor;
  assertEquals([rows.toArray(), list.toArray()], [[[1, 2], [3]], [1, 2]]);
});

/** The number of elements. Compiles only if the dataset's elements are `unknown`. */
function countUnknown<T>(dataset: Dataset<T>, ..._no: unknown extends T ? [] : [never]): number {
  return dataset.cardinality();
}

Deno.test("elements of unknown type stay unknown in operators that change their structure", () => {
  const read = Dataset.deserialize(Dataset.from([[1, 2], [3, 4]]).serialize());
  // @ts-expect-error: these are numbers.
  assertEquals(countUnknown(Dataset.range(2)), 2);
  assertEquals(countUnknown(read), 2);
  assertEquals(countUnknown(read.batch(2)), 1);
  assertEquals(countUnknown(read.window(2)), 1);
  assertEquals(countUnknown(read.batch(2).unbatch()), UNKNOWN_CARDINALITY);
  assertEquals(countUnknown(Dataset.fromTensors([1] as unknown)), 1);
  assertEquals(countUnknown(Dataset.fromTensorSlices([1, 2] as unknown)), 2);
});

Deno.test("elements of type any stay so in fromTensors", async () => {
  const parsed = JSON.parse('{"rows": [1, 2]}');
  const { rows } = await Dataset.fromTensors(parsed).getSingleElement();
  assertEquals(rows.toArray(), [1, 2]);
});
