/** Columns: the memory of their rows. */
import { columnFor } from "../../../data/elements/columns.ts";
import { LeatError, Tensor } from "../../../mod.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";

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
