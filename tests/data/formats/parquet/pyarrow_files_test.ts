/** Parquet files that PyArrow wrote: every codec in both versions of data pages. `record.py` wrote them. */
import { assertEquals, assertStringIncludes } from "../../../assert.ts";
import { rowsOf } from "../row_laws.ts";
import { node, numbers, refusal } from "./written.ts";

interface PyArrowFile {
  readonly name: string;
  readonly encoding: string;
  readonly version: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const RECORDED = await Deno.readTextFile(new URL("./pyarrow_files.jsonl", import.meta.url));

const FILES: readonly PyArrowFile[] = RECORDED.trimEnd().split("\n").map((line) => {
  const { codec, version, encoding, base64 } = JSON.parse(line);
  const name = `${codec}, data pages ${version}, ${encoding}`;
  return { name, encoding, version, bytes: Uint8Array.fromBase64(base64) };
});

/** The table of `record.py`. */
const ROWS = numbers(90).map((i) => ({
  equal: 7n,
  runs: Math.round(Math.sqrt(2 * (i + 1))) % 2,
  double: Math.floor(i / 4) / 8,
  word: `word ${i % 7}`,
  text: i % 5 === 0 ? null : "text".repeat(i % 10),
  vector: new Float32Array([0.5, 0.25, i % 3]),
  none: null,
}));

/** The library reads these only in data pages of version 2. */
const hasPrefixes = ({ encoding, version }: PyArrowFile) =>
  encoding === "prefixes" && version === "1.0";

Deno.test("parquet reads what PyArrow wrote: every codec, encoding and version of data pages", async () => {
  const files = FILES.filter((file) => !hasPrefixes(file));
  assertEquals(files.length, 15);
  for (const { name, bytes } of files) assertEquals(await rowsOf(node(), bytes), ROWS, name);
});

Deno.test("parquet refuses DELTA_BYTE_ARRAY in data pages of version 1 as unimplemented, with a remedy", async () => {
  const { bytes } = FILES.find(hasPrefixes)!;
  const { code, message } = await refusal(bytes);
  assertEquals(code, "unimplemented");
  for (
    const part of [
      "Cannot read Parquet file my data: row group 0, column text: the encoding DELTA_BYTE_ARRAY",
      'data_page_version="2.0"',
    ]
  ) assertStringIncludes(message, part);
  const others = ROWS.map(({ text: _, ...row }) => row);
  assertEquals(await rowsOf(node(Object.keys(others[0]!)), bytes), others);
});
