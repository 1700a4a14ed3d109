/**
 * `deno task bench:memory` measures how much memory a long stream of records takes, and whether it
 * grows.
 *
 * TFRecords of 16 KB go through `shuffle(1000)` and `batch(64)` for several epochs. Resident memory
 * is sampled throughout, and its peak above the start is printed for every epoch. The program ends with
 * status 1 if a peak is above the limit, or if the last epoch's peak exceeds the first epoch's by more
 * than a tenth of the limit.
 */

import { EXIT_FAILURE, runProgram } from "../../cli/lib/args.ts";
import { integer, type Values } from "../../cli/lib/options.ts";
import { renderTable } from "../../cli/lib/table.ts";
import { encodeTfRecord } from "../../data/formats/tfrecord/tfrecord.ts";
import { Dataset } from "../../mod.ts";

const RECORD_BYTES = 16 * 1024;
const RECORDS_PER_FILE = 16 * 1024;
const MEGABYTES_PER_FILE = RECORD_BYTES * RECORDS_PER_FILE / 2 ** 20;
const FOLDER = ".cache/bench-memory";

/** The program's options and help. */
export const PROGRAM = {
  usage: "deno task bench:memory",
  summary: "Streams TFRecords of 16 KB through shuffle(1000) and batch(64) and prints the memory " +
    "it takes. Ends with status 1 above the limit, or if it grows from epoch to epoch.",
  options: {
    epochs: integer({ help: "How many times everything is read.", default: 4, min: 2 }),
    megabytes: integer({
      help: `How much an epoch reads, rounded up to files of ${MEGABYTES_PER_FILE} MB.`,
      placeholder: "MB",
      default: 2048,
      min: 256,
      max: 1_000_000,
    }),
    limitMb: integer({ help: "Resident memory allowed above the start.", default: 150, min: 1 }),
  },
};

if (import.meta.main) await runProgram(PROGRAM, main);

async function main(
  { epochs, megabytes, limitMb }: Values<typeof PROGRAM.options>,
): Promise<void> {
  const count = Math.ceil(megabytes / MEGABYTES_PER_FILE);
  const files = await writeFiles(count);
  const records = Dataset.tfRecords(files).shuffle(1000).batch(64);
  const startBytes = residentBytes();
  const rows: [number, number, number, number][] = [];
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const startedAtMs = performance.now();
    const { peakBytes, readBytes } = await readAll(records);
    const seconds = (performance.now() - startedAtMs) / 1000;
    rows.push([
      epoch,
      readBytes / 2 ** 20,
      readBytes / 2 ** 20 / seconds,
      above(peakBytes, startBytes),
    ]);
    console.error(`epoch ${epoch} of ${epochs}: ${rows.at(-1)![3].toFixed(1)} MB above the start`);
  }
  const columns = ["epoch", "MB read", "MB/s", "peak MB above start"];
  console.log(renderTable({
    title: `Resident memory of shuffle(1000) and batch(64); ${
      (startBytes / 2 ** 20).toFixed(1)
    } MB at the start`,
    columns: columns.map((heading, i) => ({ heading, digits: i === 3 ? 1 : 0 })),
    rows,
  }));
  const peaks = rows.map((row) => row[3]);
  const grown = peaks.at(-1)! - peaks[0]!;
  const passed = Math.max(...peaks) <= limitMb && grown <= limitMb / 10;
  console.log(
    `peak ${Math.max(...peaks).toFixed(1)} of ${limitMb} MB; last epoch ${
      grown.toFixed(1)
    } MB above the first`,
  );
  if (!passed) Deno.exitCode = EXIT_FAILURE;
}

/** Reads everything once. Samples resident memory after every batch. */
async function readAll(
  records: Dataset<unknown>,
): Promise<{ peakBytes: number; readBytes: number }> {
  let peakBytes = 0;
  let readBytes = 0;
  for await (const batch of records) {
    readBytes += (batch as { byteLength: number }).byteLength;
    peakBytes = Math.max(peakBytes, residentBytes());
  }
  return { peakBytes, readBytes };
}

/** Writes files of records, unless they exist. Returns their paths. */
async function writeFiles(count: number): Promise<string[]> {
  await Deno.mkdir(FOLDER, { recursive: true });
  const record = encodeTfRecord(new Uint8Array(RECORD_BYTES).map((_, i) => i * 31));
  const chunk = new Uint8Array(record.length * 256);
  for (let offset = 0; offset < chunk.length; offset += record.length) chunk.set(record, offset);
  const paths = Array.from({ length: count }, (_, i) => `${FOLDER}/${i}.tfrecord`);
  for (const path of paths) {
    const size = await Deno.stat(path).then((stat) => stat.size, () => 0);
    if (size === record.length * RECORDS_PER_FILE) continue;
    console.error(`writing ${path}`);
    using file = await Deno.open(path, { write: true, create: true, truncate: true });
    const writer = file.writable.getWriter();
    for (let i = 0; i < RECORDS_PER_FILE / 256; i++) await writer.write(chunk);
    writer.releaseLock();
  }
  return paths;
}

function residentBytes(): number {
  return Deno.memoryUsage().rss;
}

function above(bytes: number, startBytes: number): number {
  return (bytes - startBytes) / 2 ** 20;
}
