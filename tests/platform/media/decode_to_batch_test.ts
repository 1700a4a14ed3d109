/** Images that are decoded to the memory of their batch. */

import { assert, assertEquals } from "../../assert.ts";
import { RandomStream } from "../../../core/philox.ts";
import { Tensor } from "../../../core/tensor.ts";
import { Dataset, releaseElement } from "../../../mod.ts";
import type { ImageCodec } from "../../../data/host.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { chainOf } from "../../../data/deterministic/chain.ts";
import { openSplit } from "../../../data/deterministic/split_run.ts";
import { BatchMemory } from "../../../data/elements/batch_rows.ts";
import { reuseElement } from "../../../data/elements/released.ts";
import { returnsImages } from "../../../data/udf/returned_images.ts";
import { areElementsSeen } from "../../../data/udf/seen_elements.ts";
import { Images } from "../../../platform/media/images.ts";
import { LeatError } from "../../../core/error.ts";
import { crc32c } from "../../../data/formats/tfrecord/crc32c.ts";
import { imageTest } from "../../lib/image_test.ts";

/** Large enough to be decoded on another thread. */
const [WIDTH, HEIGHT] = [160, 120];

async function jpegs(count: number): Promise<Uint8Array[]> {
  const images = new Images(), random = new RandomStream(7n, ["jpegs"]);
  const made: Uint8Array[] = [];
  for (let i = 0; i < count; i++) {
    const data = Uint8Array.from({ length: WIDTH * HEIGHT * 3 }, () => random.int(256));
    made.push(await images.encode(new Tensor("uint8", [HEIGHT, WIDTH, 3], data)));
  }
  return made;
}

/** Decodes whole images, or a changing part of them to floats. */
function decoded(files: Uint8Array[], isWhole: boolean, numParallelCalls?: number) {
  const dataset = Dataset.from(files);
  const options = numParallelCalls === undefined ? {} : { numParallelCalls };
  return isWhole
    ? dataset.map((jpeg, { image }) => image.decode(jpeg), options)
    : dataset.map((jpeg, { image, random }) => {
      const crop = { x: random.int(20), y: random.int(20), width: 90, height: 80 };
      return image.decode(jpeg, { crop, resize: { width: 32, height: 40 }, dtype: "float32" });
    }, options);
}

/** Shapes and checksums of batches, and the codes of errors. */
async function outcomes(dataset: Dataset<Tensor>): Promise<unknown[]> {
  await using iterator = dataset.iterator();
  const found: unknown[] = [];
  for (;;) {
    try {
      const { done, value } = await iterator.next();
      if (done) return found;
      const { buffer, byteOffset, byteLength } = value.data as Uint8Array<ArrayBuffer>;
      found.push([value.shape, crc32c(new Uint8Array(buffer, byteOffset, byteLength))]);
    } catch (error) {
      found.push(LeatError.from(error).code);
    }
  }
}

imageTest(
  "decoding to a batch gives what decoding and copying gives, errors included",
  async () => {
    const files = await jpegs(23);
    for (const broken of [5, 6, 16]) files[broken] = files[broken]!.slice(0, 2_000);
    for (const isWhole of [true, false]) {
      for (const calls of [undefined, 1, 4, 16]) {
        const batches = decoded(files, isWhole, calls).batch(4).withOptions({ seed: 7 });
        const copied = batches.withOptions({ optimizations: { mapAndBatchFusion: false } });
        const found = await outcomes(batches);
        assertEquals(found, await outcomes(copied), `whole: ${isWhole}, calls: ${calls}`);
        assertEquals(found.length, 5 + 3);
      }
    }
  },
);

imageTest(
  "decoding to a batch gives what decoding and copying gives, odd sizes included",
  async () => {
    const files = await jpegs(23);
    const odd = await new Images().encode(Tensor.zeros("uint8", [HEIGHT + 8, WIDTH, 3]));
    for (const places of [[0], [4, 5], [3, 12, 13], [8, 9, 10]]) {
      const mixed = files.map((file, i) => places.includes(i) ? odd : file);
      for (const calls of [undefined, 1, 4, 16]) {
        const batches = decoded(mixed, true, calls).batch(4);
        const copied = batches.withOptions({ optimizations: { mapAndBatchFusion: false } });
        assertEquals(await outcomes(batches), await outcomes(copied), `${places}, calls: ${calls}`);
      }
    }
  },
);

imageTest("images inside of objects are decoded to their batch, errors included", async () => {
  const files = await jpegs(23);
  for (const broken of [5, 6, 16]) files[broken] = files[broken]!.slice(0, 2_000);
  const make = (numParallelCalls: number) =>
    Dataset.from(files).map(async (jpeg, { image, index, random }) => {
      const flip = random.next() < 0.5;
      return { index, image: await image.decode(jpeg, { flip, dtype: "float32" }) };
    }, { numParallelCalls }).batch(4).withOptions({ seed: 7 });
  const imagesOf = (batches: Dataset<{ index: Tensor; image: Tensor }>) =>
    batches.map(({ image }) => image as Tensor<"float32">);
  for (const calls of [1, 4, 16]) {
    const copied = make(calls).withOptions({ optimizations: { mapAndBatchFusion: false } });
    const found = await outcomes(imagesOf(make(calls)));
    assertEquals(found, await outcomes(imagesOf(copied)), `${calls} calls`);
    assertEquals(found.length, 5 + 3);
  }
  // Whether there is a place is known only when the function has returned.
  const places = new Set<unknown>();
  let placed = 0;
  const images = new Images();
  const decode: ImageCodec["decode"] = async (bytes, options, placeOf) => {
    const image = await images.decode(bytes, options, (dtype, length) => {
      const place = placeOf?.(dtype, length);
      places.add(place);
      return place;
    });
    if (places.has(image.data)) placed++;
    return image;
  };
  const host = new DenoHost({ images: { decode, size: (bytes) => images.size(bytes) } });
  await using iterator = openIterator(make(4).node, { host });
  while (!(await iterator.next().catch(() => ({ done: false }))).done);
  assertEquals(placed, 20);
});

imageTest("a released batch is empty for whoever kept it, and later ones are right", async () => {
  const files = await jpegs(24);
  const make = () =>
    Dataset.from(files).map(
      async (jpeg, { image }) => ({ image: await image.decode(jpeg) }),
      { numParallelCalls: 4 },
    ).batch(4).prefetch(1);
  const expected: number[] = [];
  for await (const { image } of make()) {
    expected.push(crc32c(image.data as Uint8Array<ArrayBuffer>));
  }
  const found: number[] = [], kept: Tensor[] = [];
  let previous: unknown;
  for await (const batch of make()) {
    found.push(crc32c(batch.image.data as Uint8Array<ArrayBuffer>));
    kept.push(batch.image as Tensor);
    releaseElement(previous);
    previous = batch;
  }
  assertEquals(found, expected);
  assertEquals(kept.map(({ data }) => data.length > 0), [false, false, false, false, false, true]);
});

imageTest("releasing a batch leaves those that an operator gives again", async () => {
  const files = await jpegs(16);
  const batches = () =>
    Dataset.from(files).map((jpeg, { image }) => image.decode(jpeg), { numParallelCalls: 4 })
      .batch(2);
  const given: Record<string, () => Dataset<Tensor>> = {
    window: () => batches().window(3, { shift: 1 }).flatMap((window) => window as Dataset<Tensor>),
    groupByWindow: () =>
      batches().groupByWindow({
        key: () => 0,
        reduce: (_key, window) => (window as Dataset<Tensor>).repeat(2),
        windowSize: 2,
      }),
    scan: () =>
      batches().scan(null as Tensor | null, (state, batch) => [state ?? batch, state ?? batch]),
  };
  for (const [operator, make] of Object.entries(given)) {
    const read = async (releases: boolean) => {
      const found: number[] = [];
      for await (const batch of make()) {
        found.push(crc32c(batch.data as Uint8Array<ArrayBuffer>));
        if (releases) releaseElement(batch);
      }
      return found;
    };
    assertEquals(await read(true), await read(false), operator);
  }
});

imageTest("only images that their function cannot keep are decoded to a batch", () => {
  const functions: [boolean, string][] = [
    [true, "async (jpeg, { image }) => ({ image: await image.decode(jpeg) })"],
    [
      true,
      "async (x, { image, side }) => { return { label: x.y, a: await image.decode(x, {side}) }; }",
    ],
    [
      true,
      "async function (x, { image }) { image.size(x); return { image: await image.decode(x) }; }",
    ],
    [true, "(jpeg, { image }) => image.decode(jpeg)"],
    [true, "async (jpeg, { image }) => await image.decode(jpeg)"],
    [
      true,
      "(x, { image, random }) => { const side = random.int(9); return image.decode(x, side); }",
    ],
    [false, "(x, { image }) => kept = image.decode(x)"],
    [false, "(x, { image }) => { const y = image.decode(x); return y; }"],
    [false, "(x, { image }) => { return (kept ??= image.decode(x)); }"],
    [false, "(x, { image }) => image.decode(x).then(keep)"],
    [false, "(x, { image }) => [1].map(() => { return image.decode(x); })"],
    [false, "async (x, { image }) => { const y = await image.decode(x); return { y }; }"],
    [false, "async (x, { image }) => ({ y: keep(await image.decode(x)) })"],
    [false, "async (x, { image }) => ({ y: (z = await image.decode(x)) })"],
    [false, "async (x, { image }) => ({ y: { z: await image.decode(x) } })"],
    [false, "async (x, { image }) => keep({ y: await image.decode(x) })"],
    [
      false,
      "async (x, { image }) => { const f = () => { return { y: await image.decode(x) }; }; return f(); }",
    ],
    [false, "async (x, { image }) => ({ get: image, y: await image.decode(x) })"],
    [
      false,
      "async (x, { image }) => { const { decode } = image; return { y: await image.decode(x) }; }",
    ],
    [false, "async (x, { image }) => ({ y: await image['decode'](x) })"],
    [false, "async (x, { image: i }) => ({ y: await i.decode(x) })"],
    [false, "async (x, extra) => ({ y: await extra.image.decode(x) })"],
    [false, "(x, { image }) => ({ y: image.decode(x) })"],
    [true, "async (x, { image, side = 2 }) => ({ y: await image.decode(x.image, { side }) })"],
    [false, "async (x, { image, y = image.decode(x) }) => ({ z: keep(await y) })"],
    [false, "async (x, { image, image: other }) => ({ y: keep(await other.decode(x)) })"],
    [false, "async (x, { image, ['image']: other }) => ({ y: keep(await other.decode(x)) })"],
    [false, "async function (x, { image }) { return keep(await arguments[1].image.decode(x)); }"],
    [false, "async (x, { image }) => keep(await eval('image').decode(x))"],
  ];
  for (const [expected, source] of functions) {
    assertEquals(returnsImages(source, 1), expected, source);
  }
});

imageTest("a function that keeps its images keeps them", async () => {
  const kept: Tensor[] = [];
  const dataset = Dataset.from(await jpegs(8)).map(async (jpeg, { image }) => {
    const pixels = await image.decode(jpeg);
    kept.push(pixels);
    return pixels;
  }, { numParallelCalls: 4 }).batch(4);
  for await (const batch of dataset) (batch as Tensor<"uint8">).data.fill(0);
  assert(kept.every(({ data }) => (data as Uint8Array).some((value) => value > 0)));
  assert(kept.every(({ data }) => (data as Uint8Array).buffer.byteLength === data.length));
});

imageTest("splits that run one after another share the memory of their batches", async () => {
  const files = await jpegs(12);
  const dataset = Dataset.from(files)
    .map((jpeg, { image }) => image.decode(jpeg, { dtype: "float32" }), { numParallelCalls: 4 })
    .batch(4);
  const chain = chainOf(dataset.node)!;
  const read = async (batchMemory?: BatchMemory) => {
    // The arrays are kept here, because the garbage collector may free unused ones.
    const found: number[] = [], arrays = new Set<Float32Array>();
    for (let index = 0; index < 3; index++) {
      const split = { start: 4 * index, stop: 4 * index + 4 };
      const onRemainder = () => {};
      await using iterator = openSplit(chain, {
        ...{ seed: 7n, epoch: 0, index, split, onRemainder, batchMemory },
      });
      for await (const batch of iterator) {
        const { data } = batch as Tensor<"float32">;
        const { buffer, byteOffset, byteLength } = data;
        found.push(crc32c(new Uint8Array(buffer, byteOffset, byteLength).slice()));
        arrays.add(data);
        reuseElement(batch);
      }
    }
    return { found, buffers: new Set([...arrays].map(({ buffer }) => buffer)).size };
  };
  // Without memory that splits share, rows are copied, to the memory that the last batch gave back.
  const alone = await read();
  assertEquals(alone.buffers, 1);
  assertEquals(await read(new BatchMemory()), { found: alone.found, buffers: 1 });
  assertEquals(await read(new BatchMemory(true)), { found: alone.found, buffers: 1 });
});

imageTest("a released batch in shared memory stays with whoever kept it", async () => {
  const files = await jpegs(16);
  const make = () =>
    Dataset.from(files).map((jpeg, { image }) => image.decode(jpeg, { flip: true }), {
      numParallelCalls: 4,
    }).batch(4);
  const kept: Uint8Array[] = [];
  await using iterator = openIterator(make().node, { host: new DenoHost({ sharesBatches: true }) });
  for await (const batch of iterator) {
    const { data } = batch as Tensor<"uint8">;
    assert(data.buffer instanceof SharedArrayBuffer);
    kept.push(data);
    releaseElement(batch);
  }
  const found = kept.map((data) => crc32c(data.slice()));
  const expected: number[] = [];
  for await (const { data } of make()) expected.push(crc32c(data as Uint8Array<ArrayBuffer>));
  assertEquals(found, expected);
});

/** Checksums of elements, each of which is freed once it is read, as far as the pipeline allows. */
async function checksums(dataset: Dataset<unknown>, frees: boolean): Promise<number[]> {
  const found: number[] = [];
  const host = new DenoHost({ sharesBatches: true });
  await using iterator = openIterator(dataset.node, { host });
  for await (const element of iterator) {
    found.push(crc32c((element as Tensor<"uint8">).data.slice()));
    if (frees && !areElementsSeen(dataset.node)) reuseElement(element);
  }
  return found;
}

imageTest("no image changes that a function before or after the batch has kept", async () => {
  const files = await jpegs(24);
  const batches = Dataset.from(files)
    .map((jpeg, { image }) => image.decode(jpeg), { numParallelCalls: 4 }).batch(4);
  const kept: { batch: Tensor | undefined; images: Map<number, Promise<Tensor>> } = {
    batch: undefined,
    images: new Map(),
  };
  const pipelines: Record<string, () => Dataset<unknown>> = {
    scan: () =>
      batches.scan({ last: null as Tensor | null, count: 0 }, ({ last, count }, batch) => {
        return [{ last: batch, count: count + 1 }, count % 2 === 0 ? batch : last];
      }),
    map: () =>
      batches.map((batch) => {
        const last = kept.batch ?? batch;
        kept.batch = kept.batch === undefined ? batch : undefined;
        return last;
      }).prefetch(1),
    memo: () =>
      Dataset.range(48).map((x, { image }) => {
        const at = x < 4 || x >= 44 ? x % 4 : 4 + x % 20;
        const known = x < 4 || x >= 44 ? kept.images.get(at) : undefined;
        const pixels = known ?? image.decode(files[at]!) as Promise<Tensor>;
        if (x < 4) kept.images.set(at, pixels);
        return pixels;
      }, { numParallelCalls: 2 }).batch(4),
  };
  for (const [name, make] of Object.entries(pipelines)) {
    const read = (frees: boolean) => {
      kept.images.clear();
      kept.batch = undefined;
      return checksums(make(), frees);
    };
    assertEquals(await read(true), await read(false), name);
  }
});

Deno.test("elements are seen by functions that are given them, not by those below a batch", () => {
  const numbers = Dataset.range(8), service = "ws://127.0.0.1:9";
  const batches = numbers.map((x) => x + 1).batch(2);
  const mapped = batches.map((batch) => batch);
  const ordered = { service, processingMode: "DETERMINISTIC" } as const;
  const pipelines: [boolean, Dataset<unknown>][] = [
    [false, batches],
    [false, batches.prefetch(2).take(3)],
    [false, mapped.distribute({ service })],
    [false, batches.distribute(ordered)],
    [false, batches.offload({ service })],
    [true, mapped],
    [true, mapped.prefetch(2)],
    [true, batches.concatenate(batches.filter(() => true))],
    [true, mapped.distribute(ordered)],
    [true, mapped.offload({ service })],
    [true, Dataset.fromId(service, "1", { processingMode: "DETERMINISTIC" })],
  ];
  for (const [expected, { node }] of pipelines) {
    assertEquals(areElementsSeen(node), expected, node.kind);
  }
});
