/** Damaged data and faulty functions, through the service: a clear error, and the rest unharmed. */
import { Dataset, LeatError, type LocalCluster } from "../../../mod.ts";
import { encodeTfRecord } from "../../../data/formats/tfrecord/tfrecord.ts";
import { Images } from "../../../platform/media/images.ts";
import { Tensor } from "../../../core/tensor.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { testInline, testOnEach } from "../lib/carriers.ts";

/** Every element, or the code and message of the error in its place. */
async function outcomes<T>(dataset: Dataset<T>, service: LocalCluster): Promise<unknown[]> {
  const distributed = dataset.distribute({ service, processingMode: "DYNAMIC" });
  await using iterator = distributed.iterator();
  const seen: unknown[] = [];
  for (;;) {
    try {
      const { done, value } = await iterator.next();
      if (done) return seen;
      seen.push(value);
    } catch (error) {
      const { code, message } = LeatError.from(error);
      seen.push(`${code}: ${message}`);
    }
  }
}

async function withFile(bytes: Uint8Array, use: (path: string) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempFile({ prefix: "with a space " });
  try {
    await Deno.writeFile(path, bytes);
    await use(path);
  } finally {
    await Deno.remove(path);
  }
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}

testOnEach("one corrupt TFRecord among many is data_loss, naming the file", async (start) => {
  await using cluster = await start({ workers: 1 });
  const records = ["one", "two", "three"].map((text) =>
    encodeTfRecord(new TextEncoder().encode(text))
  );
  records[1]![12]! ^= 0xff;
  await withFile(joined(...records), async (path) => {
    const texts = Dataset.tfRecords(path).map((bytes) => new TextDecoder().decode(bytes));
    const [one, two, three, ...rest] = await outcomes(texts, cluster);
    assertEquals([one, three, rest], ["one", "three", []]);
    assertEquals(/^data_loss: .*with a space/.test(String(two)), true, String(two));
  });
});

testOnEach("a truncated JPEG is data_loss, and the next image is decoded", async (start) => {
  await using cluster = await start({ workers: 1, runners: "thread" });
  const pixels = Uint8Array.from({ length: 16 * 16 * 3 }, (_, i) => (i * 37) % 256);
  const jpeg = await new Images().encode(new Tensor("uint8", [16, 16, 3], pixels), {
    quality: 90,
  });
  const records = [jpeg.subarray(0, jpeg.length / 2), jpeg].map((bytes) => encodeTfRecord(bytes));
  await withFile(joined(...records), async (path) => {
    const images = Dataset.tfRecords(path).map((bytes, { image }) => image.decode(bytes));
    const [bad, good, ...rest] = await outcomes(images, cluster);
    assertEquals(/^data_loss: /.test(String(bad)), true, String(bad));
    assertEquals([(good as Tensor).shape, rest], [[16, 16, 3], []]);
  });
});

testOnEach("a function that throws is reported with its message", async (start) => {
  await using cluster = await start({ workers: 1 });
  const dataset = Dataset.range(3).map((x) => {
    if (x === 1) throw new TypeError("no ones here");
    return x;
  });
  const [zero, one, two] = await outcomes(dataset, cluster);
  assertEquals([zero, two], [0, 2]);
  assertEquals(String(one).includes("no ones here"), true, String(one));
});

Deno.test("a function that closes over a name is refused before it is sent, naming it", async () => {
  const factor = 3;
  const dataset = Dataset.range(3).map((x) => x * factor).distribute({
    service: "ws://127.0.0.1:1",
  });
  await using iterator = dataset.iterator();
  const error = await iterator.next().then(() => undefined, (thrown) => LeatError.from(thrown));
  assertEquals([error?.message.includes("factor"), error?.message.includes("captures")], [
    true,
    true,
  ]);
});

testInline(
  "the final error of a distributed dataset is reported once, followed by the end",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const whole = Dataset.fromGenerator(function* () {
      yield 1;
    });
    const distributed = whole.distribute({ service: cluster, processingMode: "DYNAMIC" });
    await using iterator = distributed.iterator();
    const error = await assertRejects(() => iterator.next(), LeatError);
    assertEquals(error.code, "unimplemented");
    assertEquals((await iterator.next()).done, true);
    const ignoring = await assertRejects(
      () => Array.fromAsync(distributed.ignoreErrors()),
      LeatError,
    );
    assertEquals(ignoring.code, "unimplemented", "no element has failed");
  },
);
