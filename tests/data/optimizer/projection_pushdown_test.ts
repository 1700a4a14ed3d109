/** Rule `projectionPushdown`, and `select`. */
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { parquetWriteBuffer } from "hyparquet-writer";
import { Dataset, type DatasetOptions, LeatError, TensorSpec } from "../../../mod.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import { assertRuleLaw } from "./rule_law.ts";
import fc from "../../lib/properties.ts";

interface Row {
  readonly a: number;
  readonly b: string;
  readonly c: Uint8Array;
}

const ROWS = 40;

/** The same rows in a file of each format; their column `c` is large. */
async function writeFiles(folder: string): Promise<{ parquet: string; arrow: string }> {
  const a = Array.from({ length: ROWS }, (_, i) => i);
  const b = a.map((i) => `text ${i}`);
  const c = a.map((i) => `${i}`.repeat(2000));
  const parquet = `${folder}/rows.parquet`, arrow = `${folder}/rows.arrow`;
  const columns = { a: Int32Array.from(a), b, c };
  const columnData = Object.entries(columns).map(([name, data]) => ({ name, data }));
  await Deno.writeFile(
    parquet,
    new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: 15, codec: "UNCOMPRESSED" })),
  );
  await Deno.writeFile(arrow, tableToIPC(tableFromArrays(columns), "file"));
  return { parquet, arrow };
}

async function inFolder(test: (files: { parquet: string; arrow: string }) => Promise<void>) {
  const folder = await Deno.makeTempDir();
  try {
    await test(await writeFiles(folder));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const BETWEEN: readonly ((rows: Dataset<Row>) => Dataset<Row>)[] = [
  (rows) => rows,
  (rows) => rows.shuffle(7).take(30).prefetch(3),
  (rows) => rows.take(12).repeat(2).skip(3).shard(2, 1),
  (rows) => rows.filter((row) => "c" in row && row.a % 3 > 0),
];

Deno.test("rule projectionPushdown gives the rows of files, whatever is between", async () => {
  await inFolder(async ({ parquet, arrow }) => {
    const pipelines = fc.record({
      format: fc.constantFrom("parquet", "arrow"),
      between: fc.constantFrom(...BETWEEN),
      fields: fc.subarray(["a", "b", "c", "missing"], { minLength: 1 }),
      columns: fc.constantFrom(undefined, ["b", "a", "c"]),
      at: fc.nat(30),
    });
    await fc.assert(
      fc.asyncProperty(pipelines, async ({ format, between, fields, columns, at }) => {
        const options = columns === undefined ? {} : { columns };
        const rows = format === "parquet"
          ? Dataset.parquet<Row>(parquet, options)
          : Dataset.arrow<Row>(arrow, options);
        const rules = { projectionPushdown: true };
        await assertRuleLaw(between(rows).select(fields as (keyof Row)[]), at, [rules, rules]);
      }),
      { numRuns: 30 },
    );
  });
});

Deno.test("rule projectionPushdown reads less, unless a spec or a function needs whole rows", async () => {
  await inFolder(async ({ parquet }) => {
    const bytesRead = async (
      rows: Dataset<Row>,
      optimizations?: DatasetOptions["optimizations"],
    ) => {
      const dataset = rows.select(["a"]).withOptions({ optimizations });
      await using iterator = dataset.iterator();
      const read = await Array.fromAsync(iterator);
      assertEquals(read.slice(0, 2), [{ a: 0 }, { a: 1 }]);
      return iterator.stats().find(({ operator }) => operator === "parquet")!.bytesOut;
    };
    const rows = Dataset.parquet<Row>(parquet);
    const all = await bytesRead(rows, false);
    assert(await bytesRead(rows) < all / 10);
    assertEquals(await bytesRead(rows.filter(() => true)), all);
    const spec = {
      a: new TensorSpec("int32", []),
      b: new TensorSpec("string", []),
      c: new TensorSpec("string", []),
    };
    assertEquals(await bytesRead(Dataset.parquet<Row>(parquet, { spec })), all);
    const [said] = rows.shuffle(3).select(["a", "b"]).explain().rewrites;
    assertEquals(
      said,
      "parquet (operator 2) reads only the columns a, b, because select (operator 0) takes no others.",
    );
    assertEquals(rows.filter(() => true).select(["a"]).explain().rewrites, []);
    assertEquals(rows.cache().select(["a"]).explain().rewrites, []);
  });
});

Deno.test("select gives the fields in order, and an element without one is an error", async () => {
  const mixed = Dataset.from<Partial<Row>>([{ a: 1, b: "x" }, { b: "y" }, { b: "z", a: 3 }]);
  await using iterator = mixed.map((row) => row).select(["b", "a"]).iterator();
  assertEquals(JSON.stringify((await iterator.next()).value), '{"b":"x","a":1}');
  await assertRejects(() => iterator.next(), LeatError, 'an element has no field "a"');
  assertEquals((await iterator.next()).value, { b: "z", a: 3 });
  const numbers = Dataset.range(2) as unknown as Dataset<Row>;
  await assertRejects(() => Array.fromAsync(numbers.select(["a"])), LeatError, "0 has no fields");
  const known = Dataset.from([{ a: 1, b: 2 }]);
  assertThrows(() => known.select(["d" as "a"]), LeatError, "fields of the elements, a, b");
  assertThrows(() => known.select([]), LeatError, "different names, at least one");
  assertEquals(known.select(["b"]).elementSpec, { b: new TensorSpec("float64", []) });
});
