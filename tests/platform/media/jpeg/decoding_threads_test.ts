/** JPEGs that threads decode and transform, against the same JPEGs without threads. */

import { assertEquals, assertRejects } from "../../../assert.ts";
import { until } from "../../../lib/until.ts";
import { type DTypeArrays, TYPED_ARRAYS } from "../../../../core/dtype.ts";
import { RandomStream } from "../../../../core/philox.ts";
import { type DecodedTensor, Images, LeatError, Tensor } from "../../../../mod.ts";
import type { ImageDecodeOptions } from "../../../../data/host.ts";
import { decoderPool } from "../../../../platform/media/jpeg/decoder_pool.ts";
import { decodingThreads } from "../../../../platform/media/jpeg/decoding_threads.ts";
import { turboLibraryPath } from "../../../../platform/media/jpeg/turbo_library.ts";

// With one core there are none.
const ignore = turboLibraryPath() === undefined || navigator.hardwareConcurrency < 2;
const WIDTH = 301, HEIGHT = 207;
const NORMALIZE = { mean: [0.4, 0.5, 0.6], std: 0.25 };

/** Options, of each kind and combination. */
function* everyOptions(): Generator<ImageDecodeOptions> {
  const crop = { x: 33, y: 17, width: 120, height: 90 };
  for (const channels of [1, 3, 4] as const) {
    for (const dtype of ["uint8", "float16", "float32"] as const) {
      for (const layout of ["HWC", "CHW"] as const) {
        const kind = { channels, dtype, layout };
        yield { ...kind, flip: true };
        yield { ...kind, crop };
        yield { ...kind, crop, resize: { width: 64, height: 99 }, flip: channels === 3 };
      }
    }
  }
  yield { normalize: NORMALIZE, resize: { width: 32, height: 32 } };
}

/** Decodes until threads have started, and ends them afterwards. */
async function withThreads(images: Images, jpeg: Uint8Array, test: () => Promise<void>) {
  decodingThreads.worked(1_000);
  try {
    await until(async () => {
      await images.decode(jpeg, { flip: true });
      return decodingThreads.ready > 0;
    });
    await test();
  } finally {
    await decodingThreads.close();
    await decoderPool.empty();
  }
}

function noise(width: number, height: number, seed: bigint): Tensor<"uint8"> {
  const random = new RandomStream(seed, []);
  const data = Uint8Array.from({ length: width * height * 3 }, () => random.int(256));
  return new Tensor("uint8", [height, width, 3], data);
}

Deno.test({
  name: "a thread gives every image the values that it has without threads",
  ignore,
  fn: async () => {
    const images = new Images();
    const jpeg = await images.encode(noise(WIDTH, HEIGHT, 1n));
    const options = [...everyOptions()];
    const here: DecodedTensor[] = [];
    for (const one of options) {
      // Threads start once images have taken long, which they may on a busy machine.
      await decodingThreads.close();
      here.push(await images.decode(jpeg, one));
    }
    assertEquals(decodingThreads.ready, 0);
    await withThreads(images, jpeg, async () => {
      // One after the other, so that a thread decodes each; then many at once.
      const before = decodingThreads.decoded;
      for (let i = 0; i < options.length; i++) {
        assertEquals(await images.decode(jpeg, options[i]), here[i], JSON.stringify(options[i]));
      }
      assertEquals(decodingThreads.decoded - before, options.length);
      assertEquals(await Promise.all(options.map((one) => images.decode(jpeg, one))), here);
    });
  },
});

Deno.test({
  name: "a thread writes an image to shared memory where that is wanted",
  ignore,
  fn: async () => {
    const images = new Images();
    const jpeg = await images.encode(noise(WIDTH, HEIGHT, 2n));
    const options = [...everyOptions()];
    await withThreads(images, jpeg, async () => {
      for (const one of options) {
        const expected = await images.decode(jpeg, one);
        let asked = 0;
        const image = await images.decode(jpeg, one, (dtype, length) => {
          asked++;
          const Values = TYPED_ARRAYS[dtype];
          const memory = new SharedArrayBuffer((length + 2) * Values.BYTES_PER_ELEMENT);
          const values = new Values(memory, 2 * Values.BYTES_PER_ELEMENT, length);
          return values as DTypeArrays[typeof dtype];
        });
        assertEquals(image.data.buffer instanceof SharedArrayBuffer, true);
        assertEquals([...image.data], [...expected.data], JSON.stringify(one));
        // It would be asked for again, for a copy, if the thread had not written there.
        assertEquals(asked, 1);
      }
    });
  },
});

Deno.test({
  name: "threads that were ended while they started are replaced",
  ignore,
  fn: async () => {
    const images = new Images();
    const jpeg = await images.encode(noise(WIDTH, HEIGHT, 3n));
    decodingThreads.worked(1_000);
    // Has a thread start, which is soon enough only on a busy machine.
    await images.decode(jpeg, { flip: true });
    await decodingThreads.close();
    await withThreads(images, jpeg, async () => {
      await images.decode(jpeg, { flip: true });
    });
  },
});

Deno.test({
  name: "a program that may read none of Leat's files decodes without threads",
  ignore,
  permissions: { ffi: true, read: false },
  fn: async () => {
    const images = new Images();
    const jpeg = await images.encode(noise(WIDTH, HEIGHT, 4n));
    decodingThreads.worked(1_000);
    for (let i = 0; i < 3; i++) {
      assertEquals((await images.decode(jpeg, { flip: true })).shape, [HEIGHT, WIDTH, 3]);
    }
    assertEquals(decodingThreads.ready, 0);
    await decodingThreads.close();
    await decoderPool.empty();
  },
});

// Each would reserve half a gigabyte by default: a host process with a limit would end.
Deno.test({
  name: "eight threads fit the memory that a host process has by default",
  ignore: ignore || Deno.build.os !== "linux",
  fn: async () => {
    const program = `${import.meta.dirname}/fixture_many_threads.ts`;
    const shell = `ulimit -d ${4 * 2 ** 20} && exec deno run --no-check --allow-ffi --allow-read ` +
      `"${program}"`;
    const { stdout, stderr } = await new Deno.Command("sh", { args: ["-c", shell] }).output();
    assertEquals(new TextDecoder().decode(stdout), "8\n", new TextDecoder().decode(stderr));
  },
});

Deno.test({
  name: "a damaged image costs only itself on a thread",
  ignore,
  fn: async () => {
    const images = new Images();
    const jpeg = await images.encode(noise(WIDTH, HEIGHT, 2n));
    const whole = await images.decode(jpeg, { flip: true });
    await withThreads(images, jpeg, async () => {
      for (let round = 0; round < 5; round++) {
        const before = decodingThreads.decoded;
        const cut = images.decode(jpeg.subarray(0, 2_000), { flip: true });
        const error = await assertRejects(() => Promise.resolve(cut), LeatError);
        assertEquals(error.code, "data_loss");
        assertEquals(await images.decode(jpeg, { flip: true }), whole);
        assertEquals(decodingThreads.decoded - before, 2);
      }
    });
  },
});
