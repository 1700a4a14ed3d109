/**
 * Saved iterators: what `save()` writes and what `restore()` refuses.
 */
import { Dataset, LeatError } from "../../../mod.ts";
import { hashBytes } from "../../../core/hash.ts";
import { signatureOf } from "../../../data/checkpoint/saving.ts";
import { restoreShared, saveShared } from "../../../data/checkpoint/shared_state.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { withInputs } from "../../../data/deterministic/chain.ts";
import { PartInputNode } from "../../../data/foreign/part_input.ts";
import type { CacheNode } from "../../../data/operators/caching/cache.ts";
import { rootContext } from "../../../data/root_context.ts";
import { graphText, ValueWriter } from "../../../data/wire.ts";
import { assert, assertEquals, assertNotEquals, assertRejects } from "../../assert.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { MemoryHost } from "../lib/memory_host.ts";

Deno.test("a checkpoint of indexed sources, take, skip and shuffle continues at its position", async () => {
  await assertCheckpointLaw(() => Dataset.range(7));
  await assertCheckpointLaw(() => Dataset.range(9).shuffle(4).skip(2).take(5));
  await assertCheckpointLaw(() => Dataset.from(["a", null, { x: [1n, undefined] }]).shuffle(2));
  await assertCheckpointLaw(() => Dataset.range(6).shuffle(3).shuffle(2));
});

Deno.test("restore refuses garbage, damage and other pipelines by their codes", async () => {
  const dataset = Dataset.range(9).shuffle(4);
  await using iterator = dataset.iterator();
  const state = await iterator.save();
  const codeOf = async (bytes: unknown, other = dataset as Dataset<unknown>) => {
    await using fresh = other.iterator();
    const error = await assertRejects(() => fresh.restore(bytes as Uint8Array), LeatError);
    assertEquals((await fresh.next()).done, false); // and it is as good as before
    return error.code;
  };
  assertEquals(await codeOf(undefined), "invalid_argument");
  assertEquals(await codeOf(new Uint8Array(0)), "invalid_argument");
  assertEquals(await codeOf(new Uint8Array(200)), "invalid_argument");
  assertEquals(await codeOf(state.subarray(0, -1)), "data_loss");
  for (let at = 8; at < state.length; at += 7) {
    const damaged = state.slice();
    damaged[at]! ^= 1;
    assertEquals(await codeOf(damaged), "data_loss", `byte ${at}`);
  }
  assertEquals(await codeOf(state, Dataset.range(10).shuffle(4)), "failed_precondition");
  assertEquals(await codeOf(state, Dataset.range(9)), "failed_precondition");
});

Deno.test("save writes no text as long as the data in memory", async () => {
  const data = new Float32Array(1_000);
  const make = (x: Float32Array) => Dataset.fromTensorSlices({ x }).batch(4);
  const { toBase64 } = Uint8Array.prototype;
  Uint8Array.prototype.toBase64 = function (): string {
    assert(this.length < data.byteLength, "the data as text");
    return toBase64.call(this);
  };
  let state: Uint8Array;
  try {
    await using iterator = make(data).iterator();
    state = await iterator.save();
  } finally {
    Uint8Array.prototype.toBase64 = toBase64;
  }
  await using same = make(data.slice()).iterator();
  await same.restore(state);
  await using other = make(data.fill(1, 999)).iterator();
  await assertRejects(() => other.restore(state), LeatError, "from another pipeline");
});

Deno.test("signatureOf writes short arrays as they are serialised, and only long ones as digests", () => {
  const { node: short } = Dataset.from([new Uint8Array(48), new Float64Array(1)]);
  assertEquals(signatureOf(short), hashBytes(graphText(short, new ValueWriter())));
  const long = new Uint8Array(49);
  const alike = Uint8Array.fromBase64(hashBytes(long));
  assertNotEquals(signatureOf(Dataset.from([long]).node), signatureOf(Dataset.from([alike]).node));
});

Deno.test("restore says which operators and arguments differ from those of the saved pipeline", async () => {
  const make = (
    { size = 4, options = { seed: 9n } as { seed?: bigint }, add = 1, secret = "s1", parts = 2 },
  ) =>
    Dataset.from([secret, "b"]).map((x, { add }) => x + add, { captures: { add } }).batch(size)
      .withOptions(options).shard(parts, parts - 2);
  await using iterator = make({}).iterator();
  const state = await iterator.save();
  const differenceTo = async (other: Dataset<unknown>) => {
    await using fresh = other.iterator();
    const { message } = await assertRejects(() => fresh.restore(state), LeatError);
    return message.match(/^This iterator was saved from another pipeline: (.*)\. Make sure/)?.[1];
  };
  assertEquals(await differenceTo(make({ size: 5 })), "batch: size was 4 and is 5");
  assertEquals(
    await differenceTo(make({ options: { seed: 8n } })),
    "withOptions: seed was 9 and is 8",
  );
  const unseeded = await differenceTo(make({ options: {} }));
  assertEquals(
    unseeded,
    "that one had from,map,batch,withOptions,shard, and this one has from,map,batch,shard",
  );
  assertEquals(
    await differenceTo(make({ parts: 3 })),
    "shard: numShards was 2 and is 3, shard: index was 0 and is 1",
  );
  assertEquals(await differenceTo(make({ add: 2 })), "map: fn is another");
  assertEquals(await differenceTo(make({ secret: "s2" })), "from: elements is another");
  assertEquals(
    await differenceTo(make({}).take(3)),
    "that one had from,map,batch,withOptions,shard, " +
      "and this one has from,map,batch,withOptions,shard,take",
  );
  assertEquals(new TextDecoder().decode(state).includes("s1"), false);
});

Deno.test("restore takes a state saved with other settings that change no elements, wherever they are", async () => {
  const seeded = () => Dataset.range(20).shuffle(20).withOptions({ seed: 2 });
  const drawn = (dataset: Dataset<number>) =>
    dataset.map((x, { random }) => x + random.next(), { numParallelCalls: 2 }).batch(3);
  const settings = { threads: false, optimizations: false, autotune: false };
  const pipelines = [
    drawn(seeded()),
    drawn(seeded()).withOptions(settings),
    drawn(seeded().withOptions(settings)).withOptions({ threads: false }).withOptions({}),
  ];
  for (const saved of pipelines) {
    await using iterator = saved.iterator();
    await iterator.next();
    const state = await iterator.save();
    const rest = await Array.fromAsync(iterator);
    for (const other of pipelines) {
      await using restored = other.iterator();
      await restored.restore(state);
      assertEquals(await Array.fromAsync(restored), rest);
    }
    for (const options of [{ deterministic: false }, { seed: 3 }]) {
      await using other = saved.withOptions(options).iterator();
      const error = await assertRejects(() => other.restore(state), LeatError);
      assertEquals(error.code, "failed_precondition");
    }
  }
});

/** Wraps a dataset in settings that change no elements, or leaves it as it is. */
type Setting = <T>(dataset: Dataset<T>) => Dataset<T>;

/** Pipelines with each kind of state that iterators share, with settings above their first operators. */
const SHARING: Record<string, (set: Setting) => Dataset<unknown>> = {
  shuffle: (set) => set(Dataset.range(6)).shuffle(6, { reshuffleEachIteration: false }).repeat(3),
  globalShuffle: (set) =>
    set(Dataset.range(6).globalShuffle({ reshuffleEachIteration: false })).repeat(3),
  random: (set) => set(Dataset.random()).take(5).repeat(3),
  sampleFromDatasets: (set) =>
    Dataset.sampleFromDatasets([Dataset.range(3), set(Dataset.range(3, 6))], {
      rerandomizeEachIteration: false,
    }).repeat(3),
  cache: (set) => set(Dataset.range(6).shuffle(6)).cache().repeat(3),
  "caches of equal length": (set) =>
    Dataset.zip([
      set(Dataset.range(6).shuffle(6)).cache(),
      set(Dataset.range(6, 12).shuffle(6)).cache(),
    ]).repeat(3),
  "a cache of a dataset that a function made": (set) =>
    Dataset.range(2).flatMap((_, { Dataset }) =>
      set(Dataset.range(5).shuffle(5).cache()).repeat(2)
    ),
  snapshot: (set) => set(Dataset.range(6).shuffle(6)).snapshot("/snapshot").repeat(3),
};

for (const [name, make] of Object.entries(SHARING)) {
  Deno.test(`restore of ${name} finds shared state though settings that change no elements differ`, async () => {
    const none: Setting = (dataset) => dataset;
    const threads: Setting = (dataset) => dataset.withOptions({ threads: false });
    const pipelines = {
      "no settings": () => make(none),
      "settings on top": () => threads(make(none)),
      "settings in the middle": () => make(threads),
      "settings in both places": () => threads(threads(make(threads))),
    };
    for (const [before, saved] of Object.entries(pipelines)) {
      const host = new MemoryHost();
      await using iterator = openIterator(saved().node, { host });
      for (let i = 0; i < 8; i++) await iterator.next();
      const state = await iterator.save();
      const contents = new Map(host.contents);
      const rest = await Array.fromAsync(iterator);
      assert(rest.length > 0);
      for (const [after, other] of Object.entries(pipelines)) {
        host.contents = new Map(contents);
        await using restored = openIterator(other().node, { host });
        await restored.restore(state);
        assertEquals(await Array.fromAsync(restored), rest, `${before}, then ${after}`);
      }
    }
  });
}

Deno.test("PartInputNode numbers shared state behind it as if settings that change no elements were not there", async () => {
  const partOf = (...settings: object[]) => {
    const below = settings.reduce<Dataset<number>>(
      (at, set) => at.withOptions(set),
      Dataset.range(1),
    );
    const above = settings.reduce<Dataset<number>>((at, set) => at.withOptions(set), below.take(1));
    const zip = Dataset.zip([above, Dataset.range(3).cache()]).node;
    return withInputs(zip, [PartInputNode.of(above.node, 0), zip.inputs[1]!]);
  };
  const part = partOf({ threads: false });
  await Array.fromAsync(openIterator(part.inputs[1]!));
  const states = saveShared(part, rootContext(part, {}));
  const equal = partOf();
  restoreShared(equal, states, rootContext(equal, {}));
  assertEquals((equal.inputs[1] as CacheNode).isFull, true);
});

Deno.test("save and restore go by what captures held when their iterators began", async () => {
  const make = (captures: { s: number }) => Dataset.range(4).map((x, { s }) => x * s, { captures });
  const captures = { s: 1 };
  const dataset = make(captures);
  const saved = async () => {
    await using iterator = dataset.iterator();
    await iterator.next();
    return await iterator.save();
  };
  for (const s of [1, 10]) {
    captures.s = s;
    const state = await saved();
    await using same = make({ s }).iterator();
    await same.restore(state);
    assertEquals(await Array.fromAsync(same), [s, 2 * s, 3 * s]);
    await using other = make({ s: 2 }).iterator();
    await assertRejects(() => other.restore(state), LeatError, "map: fn is another");
  }
});

Deno.test("restore takes a state of the same iterator, whose functions write to their captures", async () => {
  const memo: Record<number, number> = {};
  const squares = Dataset.range(9).map((x, { memo }) => memo[x] ??= x * x, { captures: { memo } });
  await using iterator = squares.iterator();
  await iterator.next();
  const state = await iterator.save();
  for (let i = 0; i < 2; i++) {
    await iterator.next();
    await iterator.restore(state);
    assertEquals(await iterator.save(), state);
    assertEquals((await iterator.next()).value, 1);
  }
  await using other = squares.iterator(); // the memo is an argument like others
  await assertRejects(() => other.restore(state), LeatError, "map: fn is another");
  await iterator.restore(await other.save());
  assertEquals((await iterator.next()).value, 0);
});

Deno.test("save writes captures once for each iterator", async () => {
  let walks = 0;
  const words = new Proxy({ a: 1 }, {
    ownKeys: (target) => (walks++, Reflect.ownKeys(target)),
  });
  const dataset = Dataset.range(4).map((x, { words }) => x + words.a, { captures: { words } });
  await using iterator = dataset.iterator();
  await iterator.next();
  const first = await iterator.save();
  const before = walks;
  assertEquals(await iterator.save(), first);
  assertEquals(walks, before);
});

Deno.test("save includes the seed of an unseeded iteration, and so the epoch after it", async () => {
  const make = () => Dataset.range(30).shuffle(30);
  const first = make();
  await using iterator = first.iterator();
  await iterator.next();
  const state = await iterator.save();
  const second = make();
  await using restored = second.iterator();
  await restored.restore(state);
  assertEquals(await Array.fromAsync(restored), await Array.fromAsync(iterator));
  const seeded = () => Dataset.range(30).shuffle(30).withOptions({ seed: 5 });
  const before = seeded();
  const epochs = [await Array.fromAsync(before), await Array.fromAsync(before)];
  await using third = before.iterator();
  const atThird = await third.save();
  const after = seeded();
  await using again = after.iterator();
  await again.restore(atThird);
  const [a, b] = [await Array.fromAsync(again), await Array.fromAsync(after)];
  assertEquals(a, await Array.fromAsync(third));
  assertEquals(b, await Array.fromAsync(before)); // the fourth epoch of both
  assertEquals(new Set([...epochs, a, b].map(String)).size, 4);
});

Deno.test("save, restore and next complete in the order of their calls", async () => {
  const dataset = Dataset.range(5).shuffle(2, { seed: 3, reshuffleEachIteration: false });
  const whole = await Array.fromAsync(dataset);
  await using iterator = dataset.iterator();
  const answers = [iterator.next(), iterator.save(), iterator.next()] as const;
  const [, state, second] = await Promise.all(answers);
  assertEquals(second.value, whole[1]);
  await iterator.restore(state);
  assertEquals(await Array.fromAsync(iterator), whole.slice(1));
});
