/** Columns: the memory of their rows. */
import { columnFor } from "../../../data/elements/columns.ts";
import { Dataset, LeatError, RaggedTensor, Tensor, tensor } from "../../../mod.ts";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";

const CAPACITY = 4, LENGTH = 20_000;

/** A batch of so many rows, each of its own number. */
function batchOf(...rows: readonly number[]): Tensor<"float32"> {
  const elements = rows.map((row) => new Float32Array(LENGTH).fill(row));
  const column = columnFor(elements[0], undefined, CAPACITY);
  elements.forEach((element, i) => column.write(i, element));
  return column.finish(rows.length) as Tensor<"float32">;
}

Deno.test("a tensor whose memory was transferred makes no row, rather than one of an earlier batch", () => {
  batchOf(1, 2);
  const gone = new Tensor("float32", [LENGTH], new Float32Array(LENGTH));
  const column = columnFor(gone, undefined, CAPACITY);
  structuredClone(gone.data, { transfer: [gone.data.buffer as ArrayBuffer] });
  const { code } = assertThrows(() => column.write(0, gone), LeatError);
  assertEquals(code, "failed_precondition");
});

for (
  const [operator, gather] of [
    ["batch", (dataset) => dataset.batch(3)],
    ["paddedBatch", (dataset) => dataset.paddedBatch(3)],
    ["raggedBatch", (dataset) => dataset.raggedBatch(3)],
    ["pack", (dataset) => dataset.pack({ length: 4 })],
  ] as [string, (dataset: Dataset<unknown>) => Dataset<unknown>][]
) {
  Deno.test(`${operator} loses only the element whose memory was transferred, and names it`, async () => {
    for (const wrap of [(x: Int32Array<ArrayBuffer>) => tensor(x), (x: Int32Array) => x]) {
      const rows = [1, 2, 3].map((x) => Int32Array.of(x, x));
      const elements = rows.map((row) => ({ x: wrap(row) }));
      structuredClone(rows[1], { transfer: [rows[1]!.buffer] });
      await using iterator = gather(Dataset.fromGenerator(() => elements)).iterator();
      const { message } = await assertRejects(() => iterator.next(), LeatError);
      assertStringIncludes(message, "component x");
      const { value } = await iterator.next();
      const { x } = value as { x: Tensor | RaggedTensor };
      assertEquals([...(x instanceof RaggedTensor ? x.values : x).data], [1, 1, 3, 3]);
      assertEquals((await iterator.next()).done, true);
    }
  });
}

Deno.test("a short batch keeps its rows, though later batches use the memory that it was copied from", () => {
  const short = batchOf(1, 2), shorter = batchOf(3), full = batchOf(4, 5, 6, 7), last = batchOf(8);
  const firsts = (batch: Tensor<"float32">) => {
    assertEquals(batch.shape, [batch.data.length / LENGTH, LENGTH]);
    return Array.from({ length: batch.shape[0]! }, (_, row) => {
      const [value, ...others] = new Set(batch.data.subarray(row * LENGTH, (row + 1) * LENGTH));
      assertEquals(others, []);
      return value;
    });
  };
  assertEquals([short, shorter, full, last].map(firsts), [[1, 2], [3], [4, 5, 6, 7], [8]]);
  assertEquals(new Set([short, shorter, full, last].map(({ data }) => data.buffer)).size, 4);
  assert(short.data.buffer.byteLength === short.data.byteLength, "no more memory than its rows");
});
