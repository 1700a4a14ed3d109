/** The helper of a Python program: what it does with elements that the program has received. */
import { Feed } from "../../cli/python/feed.ts";
import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor } from "../../core/tensor.ts";
import { Dataset, LocalCluster } from "../../mod.ts";
import { Images } from "../../platform/media/images.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";

Deno.test("Feed frees the memory of a service's elements that the program has received", async () => {
  await using cluster = await LocalCluster.start({ workers: 1, logLevel: "off" });
  const dataset = Dataset.range(4).map((x) => new Uint8Array(200_000).fill(x));
  const feed = new Feed(1, dataset.distribute({ service: cluster }).iterator(), true);
  const first = await feed.take(0);
  const second = await feed.take(0);
  const lengths = ({ elements }: typeof first) =>
    (elements as Uint8Array[]).map(({ length }) => length);
  assertEquals([lengths(first), lengths(second)], [[200_000], [200_000]]);
  await feed.take(1);
  assertEquals([lengths(first), lengths(second)], [[0], [200_000]]);
  await feed.close();
});

Deno.test("Feed uses the memory of batches of images again, as it is", async () => {
  const jpeg = await new Images().encode(Tensor.zeros("uint8", [120, 160, 3]));
  const dataset = Dataset.from(Array(24).fill(jpeg))
    .map((jpeg: Uint8Array, { image }) => image.decode(jpeg), { numParallelCalls: 2 }).batch(2);
  const feed = new Feed(1, dataset.iterator(), true);
  const buffers: ArrayBuffer[] = [];
  for (let received = 0; buffers.length < 12; received++) {
    for (const { data } of (await feed.take(received)).elements as Tensor<"uint8">[]) {
      buffers.push(data.buffer as ArrayBuffer);
    }
  }
  assertEquals([new Set(buffers).size < 12, buffers.some(({ detached }) => detached)], [
    true,
    false,
  ]);
  await feed.close();
});

/** An iterator that gives 0 and 1, and then fails to read. */
function failing() {
  let given = 0;
  const iterator = {
    hasReadingFailed: false,
    next: () => {
      if (given < 2) return Promise.resolve({ done: false, value: given++ });
      if (iterator.hasReadingFailed) return Promise.resolve({ done: true, value: undefined });
      iterator.hasReadingFailed = true;
      return Promise.reject(new LeatError("unavailable", "no worker"));
    },
    save: () => Promise.resolve(new Uint8Array([given])),
    return: () => Promise.resolve(),
  };
  return iterator as unknown as ConstructorParameters<typeof Feed>[1];
}

Deno.test("Feed tells a failure of reading from the error of an element", async () => {
  const feed = new Feed(1, failing(), true);
  const answers = [await feed.take(0), await feed.take(1), await feed.take(2)];
  assertEquals(answers.flatMap(({ elements }) => elements), [0, 1]);
  const failed = answers.filter(({ error }) => error !== undefined);
  assertEquals(failed.map(({ hasReadingFailed }) => hasReadingFailed), [true]);
});

Deno.test("Feed saves the position after the first element, even if saving is slow", async () => {
  let given = 0;
  const later = () => new Promise((resolve) => setTimeout(resolve, 30));
  const iterator = {
    next: () => Promise.resolve({ done: false, value: given++ }),
    save: () => later().then(() => new Uint8Array([given])),
    return: () => Promise.resolve(),
  };
  const feed = new Feed(1, iterator as unknown as ConstructorParameters<typeof Feed>[1], true);
  const beginning = await feed.beginning();
  await later();
  const first = await feed.take(0);
  const second = await feed.take(1);
  const states = [beginning, first, second].map(({ state }) => state?.[0]);
  assertEquals([states, first.elements], [[0, undefined, 1], [0]]);
});

Deno.test("Feed sends no position to skip from if the order may change", async () => {
  const feed = new Feed(1, Dataset.range(3).iterator(), true, false);
  const answers = [await feed.beginning(), await feed.take(0), await feed.take(1)];
  assertEquals(answers.map(({ state }) => state), [undefined, undefined, undefined]);
  assertEquals(answers[0]!.isUnsaved, true);
  await feed.close();
});

Deno.test("Feed.skip rejects when reading fails", async () => {
  await new Feed(1, failing(), true).skip(2);
  await assertRejects(() => new Feed(1, failing(), true).skip(3), LeatError, "no worker");
});

Deno.test("Feed keeps the element that next() is computing when the position cannot be saved", async () => {
  let given = 0;
  const iterator = {
    next: () => Promise.resolve({ done: false, value: new Uint8Array(given++ === 0 ? 1 : 1e5) }),
    save: () => Promise.reject(new LeatError("unimplemented", "no state")),
    return: () => Promise.resolve(),
  };
  const feed = new Feed(1, iterator as unknown as ConstructorParameters<typeof Feed>[1], true);
  const lengths: number[] = [];
  while (given < 9) {
    const { elements } = await feed.take(0);
    lengths.push(...elements.map((element) => (element as Uint8Array).length));
    await assertRejects(() => feed.save(), LeatError, "no state");
  }
  assert(lengths.length >= given - 1, `${lengths.length} of ${given} came`);
});

Deno.test("Feed.save leaves the element before its position to an answer that has no other", async () => {
  let given = 0;
  const iterator = {
    // Each second element comes too late for the answer of the one before it.
    next: async () => {
      const value = given++;
      for (let i = 0; value % 2 === 1 && i < 20; i++) await undefined;
      return { done: false, value };
    },
    save: () => Promise.resolve(Uint32Array.of(given)),
    return: () => Promise.resolve(),
  };
  const feed = new Feed(1, iterator as unknown as ConstructorParameters<typeof Feed>[1], true);
  let taken = 0;
  const take = async () => taken += (await feed.take(0)).elements.length;
  let savedBeforeOne = 0;
  while (savedBeforeOne < 3) {
    await take();
    const { after, isNextBefore } = await feed.save();
    if (isNextBefore) {
      assertEquals(taken, after[0]! - 1);
      savedBeforeOne++;
      await take();
    }
    assertEquals(taken, after[0]);
  }
});

Deno.test("Feed counts the bytes of texts, so that an answer of several elements fits the pipe", async () => {
  for (const text of ["a".repeat(3000), "é".repeat(1500), "日".repeat(1000), "🙂".repeat(750)]) {
    const feed = new Feed(1, Dataset.from(Array(40).fill(text)).iterator(), false);
    await feed.take(0); // its time is unknown
    const { elements } = await feed.take(0);
    assert(encodeMessage(elements).byteLength < 48 * 2 ** 10);
    await feed.close();
  }
});

Deno.test("Feed estimates no element too low, so that an answer of several elements fits the pipe", async () => {
  const elements: Record<string, unknown> = {
    "long keys": { ["k".repeat(3000)]: 1 },
    "short arrays": Array.from({ length: 100 }, () => new Float32Array(1)),
    "small tensors": Array.from({ length: 100 }, () => Tensor.zeros("int8", Array(32).fill(1))),
    "short texts": Array(500).fill(""),
    "tensors of short texts": Array(50).fill(new Tensor("string", [20], Array(20).fill(""))),
    "tensors of few bytes": Array(50).fill(
      new Tensor("bytes", [20], Array(20).fill(Uint8Array.of(1))),
    ),
    "ragged tensors": Array(50).fill(
      new RaggedTensor(Tensor.zeros("int8", [0]), BigInt64Array.of(0n)),
    ),
  };
  for (const [what, element] of Object.entries(elements)) {
    const feed = new Feed(1, Dataset.from(Array(300).fill(element)).iterator(), false);
    for (let i = 0; i < 4; i++) {
      const { elements } = await feed.take(i);
      const { byteLength } = encodeMessage(elements);
      assert(elements.length === 1 || byteLength < 56 * 2 ** 10, `${what}: ${byteLength} bytes`);
    }
    await feed.close();
  }
});

Deno.test("an element that no Python program can have costs itself, and none that is sent with it", async () => {
  let nested: unknown = 1;
  for (let i = 0; i < 126; i++) nested = [nested];
  const long = 2 ** 32 - 1;
  const bytes = Uint8Array.of(1, 2);
  const rowSplits = BigInt64Array.of(0n);
  const absurd: Record<string, unknown> = {
    "no elements, with axes that have 2^96": new Tensor(
      "int8",
      [0, long, long, long],
      new Int8Array(0),
    ),
    "33 axes": new Tensor("int8", Array(33).fill(1), new Int8Array(1)),
    "a longer axis than a message has": new Tensor("int8", [0, 2 ** 33], new Int8Array(0)),
    "126 lists in each other": nested,
    "a key that is none": JSON.parse('{"__proto__": 1}'),
    "a key with half a surrogate pair": [{ "\ud83d": 1 }],
    "a number in a tensor of strings": new Tensor("string", [1], [5] as unknown as string[]),
    "a string in a tensor of bytes": new Tensor("bytes", [1], ["a"] as unknown as Uint8Array[]),
    "floats in a tensor of bytes": new Tensor("bytes", [1], [
      new Float32Array(1),
    ] as unknown as Uint8Array[]),
    "a bool that is neither 0 nor 1": new Tensor("bool", [1], Uint8Array.of(255)),
    "an array whose buffer was transferred": bytes,
    "a tensor whose buffer was transferred": new Tensor("uint8", [2], bytes),
    "bytes whose buffer was transferred": new Tensor("bytes", [1], [bytes]),
    "row splits whose buffer was transferred": new RaggedTensor(
      Tensor.zeros("int8", [0]),
      rowSplits,
    ),
  };
  for (const { buffer } of [bytes, rowSplits]) buffer.transfer();
  for (const [what, element] of Object.entries(absurd)) {
    const elements = [1, 2, element, 4];
    const iterator = elements.values();
    const feed = new Feed(
      1,
      {
        next: () => Promise.resolve(iterator.next()),
        save: () => Promise.resolve(new Uint8Array()),
        return: () => Promise.resolve(),
      } as unknown as ConstructorParameters<typeof Feed>[1],
      true,
    );
    const given: unknown[] = [];
    let errors = 0;
    for (let answers = 0; given.length + errors < elements.length && answers < 10; answers++) {
      const answer = await feed.take(answers);
      // The message that the program gets.
      encodeMessage({ kind: "reply", body: answer });
      given.push(...answer.elements);
      errors += answer.error === undefined ? 0 : 1;
    }
    assertEquals([given, errors], [[1, 2, 4], 1], what);
  }
});
