/**
 * Images in TFRecord files of `tf.train.Example`s: two workers decode, resize, flip and batch them.
 *
 *     deno run -P examples/images_from_tfrecords.ts
 */
import { encode } from "@cwasm/lodepng";
import { AUTOTUNE, Dataset, encodeExample, encodeTfRecord, LocalCluster } from "../mod.ts";

const SHARDS = 4;
const IMAGES_PER_SHARD = 32;

const folder = await Deno.makeTempDir();
try {
  await writeShards(folder);
  await using cluster = await LocalCluster.start({ workers: 2 });

  const batches = Dataset.tfRecords(Dataset.listFiles(`${folder}/*.tfrecord`))
    .shuffle(64)
    .parseExamples({ png: "bytes", label: "int64" })
    .map(async ({ png, label }, { image, random }) => ({
      // `random` depends on the seed and the element alone: an augmentation is the same on every host.
      image: await image.decode(png, {
        resize: { width: 24, height: 24 },
        flip: random.next() < 0.5,
      }),
      label,
    }), { numParallelCalls: AUTOTUNE })
    .batch(16)
    .distribute({ service: cluster, processingMode: "DYNAMIC" });

  let images = 0;
  const perClass = [0, 0, 0, 0];
  for await (const { image, label } of batches) {
    console.log(`image ${image.dtype} [${image.shape}], label ${label.dtype} [${label.shape}]`);
    images += image.shape[0]!;
    for (const value of label.data) perClass[Number(value)]!++;
  }
  console.log(`${images} images, of each class ${perClass.join(", ")}`);
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** A PNG of one colour for each class, 32 pixels wide and 40 high. */
async function writeShards(folder: string): Promise<void> {
  const [width, height] = [32, 40];
  for (let shard = 0; shard < SHARDS; shard++) {
    const records = Array.from({ length: IMAGES_PER_SHARD }, (_, index) => {
      const label = index % 4;
      const data = new Uint8Array(4 * width * height).fill(60 * label + shard);
      const png = encode({ width, height, data });
      return encodeTfRecord(encodeExample({ png, label: BigInt(label) }));
    });
    const file = await new Blob(records).bytes();
    await Deno.writeFile(`${folder}/images-${shard}.tfrecord`, file);
  }
}
