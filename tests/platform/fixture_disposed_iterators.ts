/** Opens iterators and disposes them midway; prints what the process holds early and at the end. */
import { Dataset, encodeTfRecord } from "../../mod.ts";
import { Images } from "../../platform/media/images.ts";
import { Tensor } from "../../core/tensor.ts";

const ITERATORS = 14_000;
/** By then the thread pool, the decoders and the heap have their size. */
const WARM_UP = 4_000;

const path = await Deno.makeTempFile();
const pixels = new Tensor("uint8", [32, 32, 3], new Uint8Array(3_072).map((_, i) => i * 7));
const record = encodeTfRecord(await new Images().encode(pixels));
await Deno.writeFile(path, record);
await Deno.writeFile(path, record, { append: true });
const pipelines = [
  Dataset.tfRecords([path, path], { numParallelReads: 2 }).repeat()
    .map((jpeg, { image }) => image.decode(jpeg, { resize: { width: 8, height: 8 } }), {
      numParallelCalls: 2,
    }).batch(2).prefetch(2),
  Dataset.range(1_000).map((x) => x + 1, { numParallelCalls: 2 }).shuffle(10).prefetch(2)
    .withOptions({ threads: true }),
];
for (let i = 0; i < ITERATORS; i++) {
  if (i === WARM_UP) console.log(JSON.stringify(held()));
  const iterator = pipelines[i % 2]!.iterator();
  const first = iterator.next();
  if (i % 3 > 0) await first;
  await iterator.return();
  await first;
}
console.log(JSON.stringify(held()));
await Deno.remove(path);

function held() {
  (globalThis as { gc?: () => void }).gc?.();
  const count = (folder: string) => [...Deno.readDirSync(`/proc/self/${folder}`)].length;
  return { handles: count("fd"), threads: count("task"), bytes: Deno.memoryUsage().rss };
}
