/** Images that are decoded to the memory of their batch, which further batches use again. */
import { RandomStream } from "../../../core/philox.ts";
import { crc32c } from "../../../data/formats/tfrecord/crc32c.ts";
import { Dataset, LocalCluster, releaseElement, Tensor } from "../../../mod.ts";
import { Images } from "../../../platform/media/images.ts";
import { assertEquals } from "../../assert.ts";
import { imageTest } from "../../lib/image_test.ts";

const COUNT = 40, WIDTH = 160, HEIGHT = 120;

async function writeImages(folder: string): Promise<void> {
  const images = new Images(), random = new RandomStream(3n, ["images"]);
  await Deno.mkdir(`${folder}/noise`);
  for (let i = 0; i < COUNT; i++) {
    const data = Uint8Array.from({ length: WIDTH * HEIGHT * 3 }, () => random.int(256));
    const jpeg = await images.encode(new Tensor("uint8", [HEIGHT, WIDTH, 3], data));
    await Deno.writeFile(`${folder}/noise/${i}.jpg`, jpeg);
  }
}

/** The checksums of all rows, ascending. */
async function rowsOf(batches: Dataset<{ image: Tensor }>): Promise<number[]> {
  const rows: number[] = [];
  for await (const batch of batches) {
    const { shape: [count], data } = batch.image as Tensor<"float32">;
    const length = data.length / count!;
    for (let row = 0; row < count!; row++) {
      const { buffer, byteOffset, byteLength } = data.subarray(row * length, (row + 1) * length);
      rows.push(crc32c(new Uint8Array(buffer, byteOffset, byteLength).slice()));
    }
    releaseElement(batch);
  }
  return rows.sort((a, b) => a - b);
}

imageTest("no image of a service or of offload() has pixels of another one", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await writeImages(folder);
    const batches = Dataset.imageFolder(folder, { decode: false })
      .map(async ({ image: jpeg }, { image }) => ({
        image: await image.decode(jpeg, { resize: { width: 48, height: 32 }, dtype: "float32" }),
      }), { numParallelCalls: 8 })
      .batch(4)
      .prefetch(2);
    const wanted = await rowsOf(batches);
    assertEquals(new Set(wanted).size, COUNT);
    await using service = await LocalCluster.start({
      ...{ workers: 1, carrier: "thread", runners: "thread", logLevel: "off" },
    });
    for (const processingMode of ["DYNAMIC", "DETERMINISTIC"] as const) {
      const read = batches.distribute({ service, processingMode });
      assertEquals(await rowsOf(read), wanted, processingMode);
    }
    for (const ratio of [0, 0.5]) {
      const plan = { candidate: "p'3", ratio };
      assertEquals(await rowsOf(batches.offload({ service, plan })), wanted, `ratio ${ratio}`);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
