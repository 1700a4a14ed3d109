/**
 * A custom file format as a source: two workers read files of measurements with the reader that this module exports,
 * each file once.
 *
 *     deno run -P examples/custom_format.ts
 */
import { Dataset, type Extra, LeatError, LocalCluster, udf } from "../mod.ts";

const MAGIC = "WTHR";
/** A uint32 of seconds, an int16 of hundredths of a degree, and two unused bytes. */
const RECORD_BYTES = 8;

interface Measurement {
  readonly station: string;
  readonly seconds: number;
  readonly degrees: number;
}

/** The reader. Workers import this module, so the reader may use its other declarations. */
export function measurements(path: string, { Dataset }: Extra): Dataset<Measurement> {
  return Dataset.fromGenerator(async function* () {
    const bytes = await Deno.readFile(path);
    const records = (bytes.length - MAGIC.length) / RECORD_BYTES;
    if (!new TextDecoder().decode(bytes).startsWith(MAGIC) || !Number.isInteger(records)) {
      throw new LeatError("data_loss", `${path} is no file of measurements`);
    }
    const station = path.slice(path.lastIndexOf("/") + 1, path.lastIndexOf("."));
    const view = new DataView(bytes.buffer, MAGIC.length);
    for (let at = 0; at < view.byteLength; at += RECORD_BYTES) {
      const [seconds, degrees] = [view.getUint32(at, true), view.getInt16(at + 4, true) / 100];
      yield { station, seconds, degrees };
    }
  });
}

if (import.meta.main) {
  const folder = await Deno.makeTempDir();
  try {
    for (const [index, station] of ["aosta", "bern", "chur"].entries()) {
      await writeMeasurements(`${folder}/${station}.wthr`, 20 + index);
    }
    await Deno.writeTextFile(`${folder}/damaged.wthr`, "something else");
    await using cluster = await LocalCluster.start({ workers: 2 });
    const batches = Dataset.listFiles(`${folder}/*.wthr`)
      .interleave(udf<typeof measurements>(import.meta.url, "measurements"), { cycleLength: 2 })
      .ignoreErrors({ logWarning: true })
      .batch(100)
      .distribute({ service: cluster, processingMode: "DYNAMIC" });
    const warmest = new Map<string, number>();
    let count = 0;
    for await (const { station, degrees } of batches) {
      for (const [row, name] of (station.data as string[]).entries()) {
        warmest.set(name, Math.max(degrees.data[row] as number, warmest.get(name) ?? -Infinity));
        count++;
      }
    }
    for (const [station, degrees] of [...warmest].sort()) console.log(`${station}: ${degrees} °C`);
    console.log(`${count} measurements`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function writeMeasurements(path: string, degrees: number): Promise<void> {
  const view = new DataView(new ArrayBuffer(MAGIC.length + 1_000 * RECORD_BYTES));
  const bytes = new Uint8Array(view.buffer);
  new TextEncoder().encodeInto(MAGIC, bytes);
  for (let at = 0; at < 1_000; at++) {
    view.setUint32(MAGIC.length + at * RECORD_BYTES, 60 * at, true);
    view.setInt16(MAGIC.length + at * RECORD_BYTES + 4, 100 * degrees - at % 500, true);
  }
  await Deno.writeFile(path, bytes);
}
