/** JPEGs by the shared library, against the addon of the same library. */

import { assert, assertEquals, assertRejects, assertThrows } from "../../../assert.ts";
import { RandomStream } from "../../../../core/philox.ts";
import { LeatError } from "../../../../core/error.ts";
import { Dataset, type ImageDecodeOptions, Images, Tensor } from "../../../../mod.ts";
import { loadJpegAddon } from "../../../../platform/media/jpeg/jpeg_addon.ts";
import { type DecodeRequest, TurboDecoder } from "../../../../platform/media/jpeg/turbo_decoder.ts";
import { decodePlan } from "../../../../platform/media/decode_plan.ts";
import { readJpegHeader } from "../../../../platform/media/jpeg/header.ts";
import { DecoderPool, decoderPool } from "../../../../platform/media/jpeg/decoder_pool.ts";
import { TurboJpeg } from "../../../../platform/media/jpeg/turbo_jpeg.ts";
import {
  openTurboLibrary,
  type TurboLibrary,
  turboLibraryPath,
} from "../../../../platform/media/jpeg/turbo_library.ts";
import type { Channels, Region } from "../../../../platform/media/image_format.ts";
import { imageTest } from "../../../lib/image_test.ts";

const ignore = turboLibraryPath() === undefined;
const CHANNELS: readonly Channels[] = [1, 3, 4];

interface Kind {
  readonly subsampling: number;
  readonly progressive: number;
  /** Further parameters of the library, by number. */
  readonly others?: Readonly<Record<number, number>>;
}

/** Noise, which shows every wrong neighbour. */
function noise(width: number, height: number, random: RandomStream): Tensor<"uint8"> {
  const data = Uint8Array.from({ length: width * height * 3 }, () => random.int(256));
  return new Tensor("uint8", [height, width, 3], data);
}

/** Encodes with the library's own numbers of subsampling, which Leat's encoder does not offer. */
function encode({ symbols }: TurboLibrary, image: Tensor<"uint8">, kind: Kind): Uint8Array {
  const [height, width] = image.shape as [number, number];
  const handle = symbols.tj3Init(0);
  symbols.tj3Set(handle, 3, 85);
  symbols.tj3Set(handle, 4, kind.subsampling);
  symbols.tj3Set(handle, 12, kind.progressive);
  for (const [number, value] of Object.entries(kind.others ?? {})) {
    assertEquals(symbols.tj3Set(handle, Number(number), value), 0);
  }
  const address = new BigUint64Array(1), byteLength = new BigUint64Array(1);
  const out = [address, byteLength] as const;
  assertEquals(symbols.tj3Compress8(handle, image.data, width, 0, height, 0, ...out), 0);
  const jpeg = new Uint8Array(Number(byteLength[0]));
  symbols.copyOut(jpeg, address[0]!, byteLength[0]!);
  symbols.tj3Free(address[0]!);
  symbols.tj3Destroy(handle);
  return jpeg;
}

/** Of 160 × 120 pixels: large enough to be decoded on another thread. */
function smallJpeg(library: TurboLibrary): Uint8Array {
  const image = noise(160, 120, new RandomStream(7n, []));
  return encode(library, image, { subsampling: 0, progressive: 0 });
}

/** Handles and blocks of native memory that are not freed, of libraries that are opened below. */
let taken = 0;
// Compressing allocates the JPEG.
const STEPS = { tj3Init: 1, tj3Alloc: 1, tj3Compress8: 1, tj3Free: -1, tj3Destroy: -1 };
const { dlopen } = Deno;
Deno.dlopen = (path, symbols) => {
  const library = dlopen(path, symbols);
  const counted = { ...library.symbols } as Record<string, (...args: unknown[]) => unknown>;
  for (const [name, step] of Object.entries(STEPS)) {
    const call = counted[name];
    if (call === undefined) continue;
    counted[name] = (...args) => {
      // Freeing nothing is allowed.
      if (args[0] !== 0n) taken += step;
      return call(...args);
    };
  }
  return { symbols: counted as never, close: () => library.close() };
};

/** A request for an image, by its header. */
function requestOf(jpeg: Uint8Array, options: ImageDecodeOptions = {}): DecodeRequest {
  const header = readJpegHeader(jpeg);
  return { ...header, plan: decodePlan(options, header), libraryBytes: 0, scansMax: 200 };
}

function cut(pixels: Uint8Array, from: Region, wanted: Region, channels: number): Uint8Array {
  const rows = [];
  for (let y = wanted.y - from.y; y < wanted.y - from.y + wanted.height; y++) {
    const at = (y * from.width + wanted.x - from.x) * channels;
    rows.push(...pixels.subarray(at, at + wanted.width * channels));
  }
  return Uint8Array.from(rows);
}

imageTest(
  "TurboJpeg decodes a crop to the pixels that the addon gives, for every kind of JPEG",
  async () => {
    const library = openTurboLibrary()!;
    const turbo = new TurboJpeg(library), addon = await loadJpegAddon();
    const random = new RandomStream(5n, []);
    let smaller = 0;
    for (let round = 0; round < 42; round++) {
      const width = 1 + random.int(150), height = 1 + random.int(150);
      const kind = { subsampling: round % 7, progressive: round % 2 };
      const jpeg = encode(library, noise(width, height, random), kind);
      for (const channels of CHANNELS) {
        const all = { x: 0, y: 0, width, height };
        // The addon has no other method.
        const request = (crop: Region) =>
          requestOf(jpeg, { channels, crop, dctMethod: "INTEGER_FAST" });
        const whole = new Uint8Array(width * height * channels);
        addon.decode(jpeg, request(all)).read(whole);
        for (let part = 0; part < 6; part++) {
          const x = random.int(width), y = random.int(height);
          const size = { width: 1 + random.int(width - x), height: 1 + random.int(height - y) };
          const wanted = { x, y, ...size };
          using decoded = await turbo.decode(jpeg, request(wanted));
          const { region } = decoded;
          const pixels = new Uint8Array(region.width * region.height * channels);
          decoded.read(pixels);
          assertEquals(
            cut(pixels, region, wanted, channels),
            cut(whole, all, wanted, channels),
            JSON.stringify({ kind, width, height, wanted, channels }),
          );
          if (pixels.length < whole.length) smaller++;
        }
      }
    }
    assert(smaller > 500, `${smaller} decoded less than the whole image`);
  },
  { ignore },
);

imageTest("TurboJpeg encodes what the addon encodes", async () => {
  const size = { width: 61, height: 35 };
  const pixels = noise(size.width, size.height, new RandomStream(1n, [])).data;
  const turbo = new TurboJpeg(openTurboLibrary()!), addon = await loadJpegAddon();
  for (const quality of [1, 75, 100]) {
    assertEquals(turbo.encode(pixels, size, quality), addon.encode(pixels, size, quality));
  }
}, { ignore });

imageTest("decode of a large JPEG uses the bytes as they were when it was called", async () => {
  const images = new Images();
  const image = noise(200, 200, new RandomStream(2n, []));
  const jpeg = await images.encode(image);
  const expected = (await images.decode(jpeg)).data.slice();
  const changed = jpeg.slice(), transferred = jpeg.slice();
  const decoding = [images.decode(changed), images.decode(transferred)];
  changed.fill(0);
  structuredClone(transferred, { transfer: [transferred.buffer] });
  assertEquals((await decoding[0]!).data, expected);
  // On a machine with one core the second image waits, and its bytes are gone.
  const second = await Promise.try(() => decoding[1]!).catch(LeatError.from);
  if (second instanceof LeatError) assertEquals(second.code, "data_loss");
  else assertEquals(second.data, expected);
});

imageTest("a damaged JPEG among many in flight costs its element only", async () => {
  const images = new Images();
  const good = await images.encode(noise(160, 140, new RandomStream(3n, [])));
  const bad = good.slice();
  bad.set([0xff, 0xc0], good.length >> 1);
  const dataset = Dataset.range(40).map(
    (i, { image, good, bad }) => image.decode(i % 10 === 3 ? bad as Uint8Array : good),
    { numParallelCalls: 8, captures: { good, bad } },
  );
  const iterator = dataset.iterator();
  const outcomes: string[] = [];
  for (;;) {
    const outcome = await iterator.next().then(
      ({ done, value }) => done === true ? undefined : (value as Tensor).shape.join(),
      (error) => (error as LeatError).code,
    );
    if (outcome === undefined) break;
    outcomes.push(outcome);
  }
  const expected = Array.from({ length: 40 }, (_, i) => i % 10 === 3 ? "data_loss" : "140,160,3");
  assertEquals(outcomes, expected);
});

imageTest(
  "iterators that are disposed while they decode leave no native memory behind",
  async () => {
    await decoderPool.empty();
    assertEquals(taken, 0);
    const images = new Images();
    const jpeg = await images.encode(noise(256, 256, new RandomStream(4n, [])));
    const dataset = Dataset.range(8).map((_, { image, jpeg }) => image.decode(jpeg), {
      numParallelCalls: 2,
      captures: { jpeg },
    });
    for (let i = 0; i < 50; i++) {
      const iterator = dataset.iterator();
      await iterator.next();
      await iterator[Symbol.asyncDispose]();
      await images.decode(jpeg); // after those that were in flight
    }
    // Four decoders for each core have a handle, the file and the pixels.
    const most = 4 * 3 * navigator.hardwareConcurrency;
    assert(taken > 0 && taken <= most, `${taken} are taken`);
    await decoderPool.empty();
    assertEquals(taken, 0);
  },
  { ignore },
);

imageTest(
  "TurboDecoder's pixels of a whole image are the result, of a crop they are not",
  async () => {
    const library = openTurboLibrary()!;
    const crop = { x: 4, y: 4, width: 100, height: 100 };
    const jpeg = smallJpeg(library);
    const decoder = new TurboDecoder(library);
    library.hold();
    const isTransformed = async (options: ImageDecodeOptions) => {
      return (await decoder.decode(jpeg, requestOf(jpeg, options))).isTransformed;
    };
    // Otherwise the calling thread would copy the pixels once more, as if it transformed them.
    assertEquals([await isTransformed({}), await isTransformed({ crop })], [true, false]);
    library.release();
    decoder.free();
  },
  { ignore },
);

imageTest(
  "TurboDecoder decodes on another thread, except where there is only one core",
  async () => {
    const library = openTurboLibrary()!;
    const jpeg = smallJpeg(library);
    const decompressAsync = library.decompressAsync.bind(library);
    let onThreads = 0;
    library.decompressAsync = (...args) => {
      onThreads++;
      return decompressAsync(...args);
    };
    library.hold();
    for (const [cores, expected] of [[1, 0], [2, 1]] as const) {
      const decoder = new TurboDecoder(library, cores);
      await decoder.decode(jpeg, requestOf(jpeg));
      assertEquals(onThreads, expected, `${cores} cores`);
      decoder.free();
    }
    library.release();
  },
  { ignore },
);

imageTest(
  "TurboDecoder claims no reason of the library for a failure on another thread",
  async () => {
    const library = openTurboLibrary()!;
    const jpeg = smallJpeg(library);
    jpeg.set([0xff, 0xc0], jpeg.length >> 1);
    const decoder = new TurboDecoder(library, 2);
    library.hold();
    const { message } = await assertRejects(
      async () => await decoder.decode(jpeg, requestOf(jpeg)),
      Error,
    );
    assertEquals(message, "libjpeg-turbo refused the image on another thread");
    library.release();
    decoder.free();
  },
  { ignore },
);

imageTest(
  "TurboJpeg tells lack of memory from damage, which the library reports in the same way",
  () => {
    const library = openTurboLibrary()!;
    const image = noise(16, 16, new RandomStream(8n, []));
    const jpeg = encode(library, image, { subsampling: 0, progressive: 1 });
    const { tj3Alloc } = library.symbols;
    const symbols = {
      ...library.symbols,
      tj3Decompress8: () => -1,
      tj3Alloc: (byteLength: bigint) => byteLength > 1_000_000n ? 0n : tj3Alloc(byteLength),
    };
    const turbo = new TurboJpeg(Object.assign(library, { symbols }));
    const code = (libraryBytes: number) => {
      const request = { ...requestOf(jpeg), libraryBytes };
      const error = assertThrows(() => turbo.decode(jpeg, request));
      return error instanceof LeatError ? error.code : "the library's";
    };
    assertEquals([code(1_000_001), code(0)], ["resource_exhausted", "the library's"]);
  },
  { ignore },
);

imageTest("decode reads arithmetic and lossless JPEGs", async () => {
  const library = openTurboLibrary()!;
  const image = noise(40, 30, new RandomStream(9n, []));
  const decoded = async (progressive: number, others: Record<number, number>) => {
    const jpeg = encode(library, image, { subsampling: 0, progressive, others });
    return await new Images().decode(jpeg);
  };
  for (const progressive of [0, 1]) {
    assertEquals(await decoded(progressive, { 14: 1 }), await decoded(progressive, {}));
  }
  assertEquals(await decoded(0, { 15: 1 }), image);
}, { ignore });

imageTest(
  "DecoderPool makes at most its number of decoders, serves in order, and frees them",
  async () => {
    const library = openTurboLibrary()!;
    let made = 0;
    const create = () => {
      made++;
      return new TurboDecoder(library);
    };
    const pool = new DecoderPool(2);
    const first = await pool.take(create), second = await pool.take(create);
    assert(first !== second);
    const served: string[] = [];
    const third = Promise.resolve(pool.take(create)).then((decoder) => {
      served.push("third");
      return decoder;
    });
    const fourth = Promise.resolve(pool.take(create)).then(() => served.push("fourth"));
    pool.give(first);
    assertEquals(await third, first);
    assertEquals([served, made], [["third"], 2]);
    pool.give(first);
    await fourth;
    let isEmpty = false;
    const emptied = pool.empty().then(() => isEmpty = true);
    pool.give(first);
    await Promise.resolve();
    assert(!isEmpty, "one is busy");
    pool.give(second);
    await emptied;
    pool.give(await pool.take(create));
    assertEquals(made, 3);
    await pool.empty();
  },
  { ignore },
);

imageTest(
  "DecoderPool serves the next waiting image if no decoder can be made for the first",
  async () => {
    const library = openTurboLibrary()!;
    const create = () => new TurboDecoder(library);
    const pool = new DecoderPool(1);
    const failed = await pool.take(create);
    const refused = assertRejects(async () => {
      await pool.take(() => {
        throw new LeatError("resource_exhausted", "no memory for a decoder");
      });
    }, LeatError);
    const next = pool.take(create);
    pool.discard(failed);
    await refused;
    pool.give(await next);
    await pool.empty();
  },
  { ignore },
);

imageTest("a thread that is ended while it decodes harms no other", async () => {
  const images = new Images();
  const jpeg = await images.encode(noise(700, 500, new RandomStream(6n, [])));
  for (let round = 0; round < 8; round++) {
    const thread = new Worker(import.meta.resolve("./fixture_decoding_thread.ts"), {
      type: "module",
    });
    const begun = new Promise((resolve) => thread.onmessage = resolve);
    thread.postMessage(jpeg);
    await begun;
    thread.terminate();
  }
  assertEquals((await images.decode(jpeg)).shape, [500, 700, 3]);
});

Deno.test({
  name: "Images decodes with the permission for one file",
  ignore,
  permissions: { ffi: ignore ? [] : [turboLibraryPath()!] },
  fn: async () => {
    const images = new Images();
    const jpeg = await images.encode(noise(200, 150, new RandomStream(7n, [])));
    const crop = { x: 20, y: 30, width: 100, height: 90 };
    assertEquals((await images.decode(jpeg, { crop })).shape, [90, 100, 3]);
    const damaged = jpeg.slice(0, -40);
    const error = await assertRejects(async () => await images.decode(damaged), LeatError);
    assertEquals((error as LeatError).code, "data_loss");
  },
});
