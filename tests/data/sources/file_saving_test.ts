/**
 * Checkpoints of file sources: the checkpoint law at every position, and files that changed since.
 */

import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { LeatError } from "../../../core/error.ts";
import { encodeTfRecord } from "../../../data/formats/tfrecord/tfrecord.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset } from "../../../data/mod.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { concat } from "../formats/reading.ts";
import "../lib/collect.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { splitsOf } from "./running.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);

const LINES = {
  "1.txt": "a\nb\r\n\nc",
  "2.txt": "",
  "3.txt": "\ufeffü\n🙂\n",
  "4.txt": "last",
};
const JSONL = { "1.jsonl": '{"a": 1}\n\nbad\n[2]\nworse', "2.jsonl": '"x"\n' };

/** Two good records, one with damaged data, a good one, and a truncated one. */
const DAMAGED = (() => {
  const [first, second, third] = ["one", "two", "three"].map((text) => encodeTfRecord(utf8(text)));
  const flipped = new Uint8Array(second!);
  flipped[13]! ^= 1;
  return concat(first!, flipped, third!, third!.subarray(0, 14));
})();
const RECORDS = {
  "1.tfrecord": DAMAGED,
  "2.tfrecord": encodeTfRecord(utf8("four")),
  "3.tfrecord": new Uint8Array(0),
};

const CSV = {
  "1.csv": 'x,n\n"a\n",1\nb,two\n\nc"d,3\ne,4',
  "2.csv": "n,x\r\n5,y\r\n",
  "3.csv": "n\n",
  "4.csv": "none\n1",
};
const FIXED = { "1.bin": "haabbcc", "2.bin": "haabbc", "3.bin": "h" };

const COMPRESS = {
  none: (bytes: Uint8Array) => bytes,
  gzip: (bytes: Uint8Array) => new Uint8Array(gzipSync(bytes)),
  zlib: (bytes: Uint8Array) => new Uint8Array(deflateSync(bytes)),
  zstd: (bytes: Uint8Array) => new Uint8Array(zstdCompressSync(bytes)),
} as const;
/** The numbers of parallel reads that are tested. */
const READS = { none: [1, 3], gzip: [3], zlib: [1], zstd: [3] } as const;

Deno.test("a file source continues from a checkpoint, for every compression and number of parallel reads", async () => {
  for (const [compression, compress] of Object.entries(COMPRESS)) {
    const files = Object.fromEntries(
      Object.entries({ ...LINES, ...JSONL, ...RECORDS, ...CSV, ...FIXED })
        .map(([name, data]) => [name, compress(typeof data === "string" ? utf8(data) : data)]),
    );
    await withFiles(files, async (folder) => {
      for (const numParallelReads of READS[compression as keyof typeof COMPRESS]) {
        const options = {
          numParallelReads,
          compression: compression === "none" ? undefined : compression as "gzip",
        };
        const list = (pattern: string) =>
          Dataset.listFiles(`${folder}/${pattern}`, { shuffle: false });
        await assertCheckpointLaw(() => Dataset.textLines(list("*.txt"), options));
        await assertCheckpointLaw(() => Dataset.jsonLines(list("*.jsonl"), options));
        await assertCheckpointLaw(() => Dataset.tfRecords(list("*.tfrecord"), options));
        for (const useQuoteDelim of [true, false]) {
          await assertCheckpointLaw(() =>
            Dataset.csv(list("*.csv"), { ...options, useQuoteDelim, columns: { n: "int32" } })
          );
        }
        await assertCheckpointLaw(() =>
          Dataset.fixedLengthRecords(list("*.bin"), { ...options, recordBytes: 2, headerBytes: 1 })
        );
      }
    });
  }
});

Deno.test("the checkpoint law holds for missing, shuffled and repeated files", async () => {
  await withFiles(LINES, async (folder) => {
    const paths = [`${folder}/1.txt`, `${folder}/missing`, `${folder}/4.txt`];
    for (const numParallelReads of [1, 3]) {
      await assertCheckpointLaw(() => Dataset.textLines(paths, { numParallelReads }));
      const shuffled = () => Dataset.textLines(Dataset.listFiles(`${folder}/*.txt`));
      await assertCheckpointLaw(() => shuffled().repeat(2));
      await assertCheckpointLaw(() => shuffled().shuffle(3));
    }
    await assertCheckpointLaw(() => Dataset.textLines(paths).batch(2).prefetch(1));
    await assertCheckpointLaw(() => Dataset.listFiles(`${folder}/*.txt`).repeat(2));
    await assertCheckpointLaw(() => Dataset.listFiles(`${folder}/*.txt`).shuffle(2));
    await assertCheckpointLaw(() => Dataset.listFiles(`${folder}/none*`));
  });
});

async function savedAfter(dataset: Dataset<unknown>, count: number): Promise<Uint8Array> {
  await using iterator = dataset.iterator();
  for (let i = 0; i < count; i++) await iterator.next();
  return await iterator.save();
}

Deno.test("restoring refuses a file whose size has changed, and names it", async () => {
  await withFiles(LINES, async (folder) => {
    for (const numParallelReads of [1, 2]) {
      const path = `${folder}/1.txt`;
      await Deno.writeTextFile(path, LINES["1.txt"]);
      const dataset = Dataset.textLines([path, `${folder}/4.txt`], { numParallelReads });
      const state = await savedAfter(dataset, 1);
      await Deno.writeTextFile(path, "a\nb\n");
      await using iterator = dataset.iterator();
      const error = await assertRejects(() => iterator.restore(state), LeatError, path);
      assertEquals(error.code, "failed_precondition");
      assertStringIncludes(error.message, "7 bytes then, and has 4 now");
      // What it was before stays. To the end, so that no file is being opened when the test ends.
      assertEquals((await Array.fromAsync(iterator))[0], "a");
    }
  });
});

Deno.test("restoring refuses a listing that has changed, and names the pattern", async () => {
  await withFiles(LINES, async (folder) => {
    const dataset = Dataset.listFiles(`${folder}/*.txt`);
    const [before, after] = [await savedAfter(dataset, 0), await savedAfter(dataset, 1)];
    await Deno.rename(`${folder}/4.txt`, `${folder}/5.txt`);
    await using iterator = dataset.iterator();
    const error = await assertRejects(() => iterator.restore(after), LeatError, `${folder}/*.txt`);
    assertEquals(error.code, "failed_precondition");
    await iterator.restore(before); // nothing had been listed
    assertEquals((await Array.fromAsync(iterator)).length, 4);
  });
});

Deno.test("an iterator that reads splits of files cannot be saved", async () => {
  await withFiles(LINES, async (folder) => {
    const datasets = [
      Dataset.textLines(`${folder}/1.txt`),
      Dataset.tfRecords(`${folder}/1.txt`),
      Dataset.tfRecords(Dataset.listFiles(`${folder}/*`)),
    ];
    for (const { node } of datasets) {
      await using iterator = openIterator(node, { splits: splitsOf([0, 1]) });
      const error = await assertRejects(() => iterator.save(), LeatError);
      assertEquals(error.code, "failed_precondition");
    }
  });
});
