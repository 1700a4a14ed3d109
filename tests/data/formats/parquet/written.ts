/** Parquet files written for tests. */
import { LeatError } from "../../../../core/error.ts";
import { ParquetNode } from "../../../../data/sources/parquet.ts";
import { assertEquals, assertInstanceOf } from "../../../assert.ts";
import { assertLaws, rowsOf } from "../row_laws.ts";
import { type ColumnSource, parquetWriteBuffer, type SchemaElement } from "hyparquet-writer";

type WriteOptions = Omit<Parameters<typeof parquetWriteBuffer>[0], "columnData">;

export function write(
  columnData: ColumnSource[],
  options: WriteOptions = {},
): Uint8Array<ArrayBuffer> {
  return new Uint8Array(parquetWriteBuffer({ columnData, ...options }));
}

/** A file with one column of its own schema. */
export function writeColumn(
  data: unknown[],
  elements: Omit<SchemaElement, "name">[],
  names: string[] = [],
) {
  const schema = elements.map((element, i) => ({ ...element, name: names[i] ?? "x" }));
  return write([{ name: "x", data }], { schema: [{ name: "root", num_children: 1 }, ...schema] });
}

/** A part has one row group. */
export const node = (columns?: string[]) => new ParquetNode("my data", { columns, partBytes: 1 });

/** The values of the one column `x`. */
export async function values(bytes: Uint8Array): Promise<unknown[]> {
  return (await assertLaws(node(), bytes)).map((row) => (row as { x: unknown }).x);
}

export const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

/** The three levels of schema of a list of optional elements. */
export function listOf(element: Omit<SchemaElement, "name">): Omit<SchemaElement, "name">[] {
  return [
    { repetition_type: "OPTIONAL", converted_type: "LIST", num_children: 1 },
    { repetition_type: "REPEATED", num_children: 1 },
    element,
  ];
}

export const LIST = ["x", "list", "element"];

export const TEN = [
  { name: "i", type: "INT32", data: numbers(10) },
  { name: "s", type: "STRING", data: numbers(10).map((i) => `text ${i}`) },
] satisfies ColumnSource[];

export async function refusal(bytes: Uint8Array, columns?: string[]): Promise<LeatError> {
  const found = await rowsOf(node(columns), bytes);
  const [error] = found;
  assertEquals(found.length, 1);
  assertInstanceOf(error, LeatError);
  assertEquals(error.details, { path: "my data" });
  return error;
}
