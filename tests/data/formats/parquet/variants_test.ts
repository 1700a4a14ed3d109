/** Variants in Parquet: whole ones, those whose parts have types in the schema, and hostile ones. */
import { LeatError } from "../../../../core/error.ts";
import { valuesOf } from "../../../../data/formats/parquet/parquet_values.ts";
import {
  assertEquals,
  assertInstanceOf,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { rowsOf } from "../row_laws.ts";
import { node, refusal, values } from "./written.ts";
import { parquetSchema } from "hyparquet";
import { ByteWriter, ParquetWriter, type SchemaElement } from "hyparquet-writer";

type Elements = Omit<SchemaElement, "name">[];

const GROUP = { repetition_type: "REQUIRED", num_children: 2 } as const;
const BYTES = { type: "BYTE_ARRAY", repetition_type: "REQUIRED" } as const;
const OPTIONAL_BYTES = { type: "BYTE_ARRAY", repetition_type: "OPTIONAL" } as const;
const WHOLE: Elements = [GROUP, BYTES, BYTES];
const WHOLE_NAMES = ["x", "metadata", "value"];

const NO_NAMES = Uint8Array.of(1, 0, 0);
const NULL = Uint8Array.of(0);

/** A file with a column of variants, given as they are stored. */
function writeVariants(data: unknown[], elements: Elements, names: string[]): Uint8Array {
  const column: SchemaElement[] = elements.map((element, i) => ({ ...element, name: names[i]! }));
  const writer = new ByteWriter();
  const file = new ParquetWriter({
    writer,
    schema: [{ name: "root", num_children: 1 }, ...column],
  });
  file.write({ columnData: [{ name: "x", data }] });
  // Only now: the writer would encode the rows as variants.
  column[0]!.logical_type = { type: "VARIANT" };
  file.finish();
  return new Uint8Array(writer.getBuffer());
}

/** Metadata of names of one letter each. */
function namesOf(letters: string): Uint8Array {
  const offsets = Array.from({ length: letters.length + 1 }, (_, i) => i);
  return Uint8Array.of(1, letters.length, ...offsets, ...new TextEncoder().encode(letters));
}

const int8 = (value: number) => [3 << 2, value];

/** Two items at the same position. */
const twice = (item: readonly number[]) => [3, 2, 0, 0, item.length, ...item];

function whole(...variants: (readonly number[])[]): Uint8Array {
  const rows = variants.map((value) => ({ metadata: NO_NAMES, value: Uint8Array.from(value) }));
  return writeVariants(rows, WHOLE, WHOLE_NAMES);
}

Deno.test("parquet gives a damaged variant as an error of its row: it decodes each by itself", async () => {
  const [first, error, last] = await rowsOf(node(), whole(int8(1), [3 << 2], int8(3)));
  assertEquals([first, last], [{ x: 1 }, { x: 3 }]);
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "data_loss");
  assertStringIncludes(
    error.message,
    "row 1 of row group 0, column x: a variant is damaged",
  );
});

Deno.test("parquet refuses a variant whose items share bytes: each level doubles its values", async () => {
  let bomb = int8(1);
  for (let level = 0; level < 10; level++) bomb = twice(bomb);
  const { code, message } = await refusal(whole(bomb));
  assertEquals(code, "data_loss");
  assertStringIncludes(message, "a variant is damaged");
});

Deno.test("parquet refuses a variant of more names than JSON_STRUCTURES_MAX, and of an unknown name", async () => {
  const row = { metadata: Uint8Array.of(0xc1, 0, 0, 0, 0x7f), value: NULL };
  const { code, message } = await refusal(writeVariants([row], WHOLE, WHOLE_NAMES));
  assertEquals(code, "resource_exhausted");
  assertStringIncludes(message, "(JSON_STRUCTURES_MAX)");
  // An object of one field, whose name has the id 1.
  const unknown = { metadata: namesOf("a"), value: Uint8Array.of(2, 1, 1, 0, 1, 0) };
  assertEquals((await refusal(writeVariants([unknown], WHOLE, WHOLE_NAMES))).code, "data_loss");
});

Deno.test("valuesOf counts the variants that the lists of a row repeat", () => {
  const elements: SchemaElement[] = [
    { name: "root", num_children: 1 },
    { name: "x", repetition_type: "REPEATED", logical_type: { type: "VARIANT" }, num_children: 2 },
    { name: "metadata", ...BYTES },
    { name: "value", ...BYTES },
  ];
  const [tree] = parquetSchema({ schema: elements }).children;
  const { convert } = valuesOf(tree!, 1_000);
  const entry = { metadata: NO_NAMES, value: Uint8Array.from(int8(1)) };
  assertEquals(convert(new Array(4).fill(entry)), [1, 1, 1, 1]);
  assertEquals(convert(new Array(4).fill(entry)), [1, 1, 1, 1]);
  const { code } = assertThrows(() => convert(new Array(5).fill(entry)), LeatError);
  assertEquals(code, "resource_exhausted");
});

Deno.test("parquet reads typed values of variants by the schema, and merges those of objects", async () => {
  const schema: Elements = [
    { ...GROUP, num_children: 3 },
    BYTES,
    OPTIONAL_BYTES,
    { repetition_type: "OPTIONAL", num_children: 3 },
    GROUP,
    OPTIONAL_BYTES,
    {
      type: "INT32",
      repetition_type: "OPTIONAL",
      converted_type: "DECIMAL",
      precision: 9,
      scale: 2,
    },
    GROUP,
    OPTIONAL_BYTES,
    OPTIONAL_BYTES,
    GROUP,
    OPTIONAL_BYTES,
    { repetition_type: "OPTIONAL", converted_type: "LIST", num_children: 1 },
    { repetition_type: "REPEATED", num_children: 1 },
    GROUP,
    OPTIONAL_BYTES,
    { type: "BYTE_ARRAY", repetition_type: "OPTIONAL", converted_type: "UTF8" },
  ];
  const part = ["value", "typed_value"];
  const names = ["x", "metadata", ...part, "d", ...part, "b", ...part, "l", ...part];
  names.push("list", "element", ...part);
  const missing = { value: null, typed_value: null };
  const metadata = namesOf("bdlo");
  const items = [
    { value: null, typed_value: "text" },
    { value: Uint8Array.from(int8(7)), typed_value: null },
    { value: NULL, typed_value: null },
  ];
  const rows = [{
    metadata,
    value: null,
    typed_value: {
      d: { value: null, typed_value: 1.5 },
      b: { value: null, typed_value: Uint8Array.of(0, 255) },
      l: { value: null, typed_value: items },
    },
  }, {
    metadata,
    // An object of the field "o".
    value: Uint8Array.of(2, 1, 3, 0, 2, ...int8(5)),
    typed_value: { d: { value: NULL, typed_value: null }, b: missing, l: missing },
  }, { metadata, value: Uint8Array.from(int8(9)), typed_value: null }];
  assertEquals(await values(writeVariants(rows, schema, names)), [
    { d: 1.5, b: Uint8Array.of(0, 255), l: ["text", 7, null] },
    { o: 5, d: null },
    9,
  ]);
});
