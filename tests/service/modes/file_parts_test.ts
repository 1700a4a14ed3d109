/** Large files divided among workers: every element once, whatever the size of parts. */
import { assertEquals } from "../../assert.ts";
import { gzipSync } from "node:zlib";
import { CsvNode } from "../../../data/sources/csv.ts";
import { FixedLengthRecordsNode } from "../../../data/sources/fixed_length_records.ts";
import { TextLinesNode } from "../../../data/sources/text_lines.ts";
import { Dataset, type DatasetIterator } from "../../../mod.ts";
import { sorted, testOnEach, upTo } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const COUNT = 5_000;

/** Line i holds i, and some lines are much longer. */
const LINES = Array.from(
  { length: COUNT },
  (_, i) => `${i},${"x".repeat(i % 97 === 0 ? 2000 : 9)}`,
);

/** All numbers, in order of arrival. */
async function read(iterator: DatasetIterator<number[]>): Promise<number[]> {
  const numbers: number[] = [];
  for await (const batch of iterator) numbers.push(...batch);
  return numbers;
}

testOnEach(
  "DYNAMIC reads every line of a large file once, in parts of odd sizes",
  async (start) => {
    await using cluster = await start({ workers: 3 });
    await using temporary = await TempFolder.make();
    const folder = temporary.path;
    const text = LINES.join("\r\n");
    await Deno.writeTextFile(`${folder}/a.csv`, text);
    await Deno.writeFile(`${folder}/b.csv.gz`, gzipSync(text));
    const files = Dataset.listFiles(`${folder}/*`);
    const options = { compression: "auto", numParallelReads: 2 } as const;
    const lines = new TextLinesNode(files, { ...options, partBytes: 9_999 });
    const rows = new CsvNode(files, {
      ...options,
      partBytes: 65_537,
      header: false,
      useQuoteDelim: false,
      columns: ["int32", "string"],
    });
    const datasets = [
      new Dataset<string>(lines).map((line) => Number(line.split(",")[0])),
      new Dataset<[number, string]>(rows).map(([number]) => number),
    ];
    for (const dataset of datasets) {
      const distributed = dataset.batch(50).map((batch) => [...batch.data] as number[])
        .distribute({ service: cluster, processingMode: "DYNAMIC" });
      assertEquals(sorted(await read(distributed.iterator())), upTo(COUNT, 2));
    }
  },
);

testOnEach(
  "DYNAMIC reads every record of a file once, in parts of whole records",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const path = await Deno.makeTempFile();
    try {
      await Deno.writeFile(path, new Uint8Array(new Uint32Array(COUNT).map((_, i) => i).buffer));
      const node = new FixedLengthRecordsNode(path, { recordBytes: 4, partBytes: 1_003 });
      const numbers = new Dataset<Uint8Array>(node)
        .map((bytes) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true))
        .batch(100).map((batch) => [...batch.data] as number[])
        .distribute({ service: cluster, processingMode: "DYNAMIC" });
      assertEquals(sorted(await read(numbers.iterator())), upTo(COUNT));
    } finally {
      await Deno.remove(path);
    }
  },
);
