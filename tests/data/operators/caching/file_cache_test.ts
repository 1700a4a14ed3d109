/** `cache(path)`: what its folder holds, who may write it, and what is read back. */
import { inOrder } from "../../../../data/deterministic/chain.ts";
import { openIterator } from "../../../../data/dataset_iterator.ts";
import { Dataset, type DatasetIterator, LeatError, tensor } from "../../../../mod.ts";
import type { NewFiles } from "../../../../data/host.ts";
import { DenoHost } from "../../../../platform/deno_host.ts";
import { DenoNewFiles } from "../../../../platform/storage/new_files.ts";
import {
  assert,
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
} from "../../../assert.ts";
import { assertCheckpointLaw } from "../../lib/checkpoint_law.ts";
import { collectWithErrors, failingOn, turn } from "../../lib/collect.ts";
import { outcomesOf, readOutcomes } from "../../lib/outcomes.ts";
import { inFolder } from "../../../lib/temp_folder.ts";

/** The names in a folder; for chunks without the parts that differ between runs. */
async function namesIn(folder: string): Promise<string[]> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  return names.map((name) => name.replace(/^[0-9a-f]{16}-/, "")).sort();
}

async function chunkIn(folder: string): Promise<string> {
  for await (const { name } of Deno.readDir(folder)) {
    if (name.endsWith(".tfrecord")) return `${folder}/${name}`;
  }
  throw new Error(`no chunk in ${folder}`);
}

/** This machine, with a hook before a file is begun. */
class HostWithEvents extends DenoHost {
  override readonly newFiles: NewFiles;

  constructor({ beforeCreate }: { readonly beforeCreate: () => Promise<void> }) {
    super();
    const files = new DenoNewFiles();
    this.newFiles = {
      create: async (path) => (await beforeCreate(), await files.create(path)),
      remove: (path) => files.remove(path),
    };
  }
}

class WarningsHost extends DenoHost {
  readonly warnings: string[] = [];

  override warn(message: string): void {
    this.warnings.push(message);
  }
}

/** A dataset that counts its elements when they are made. */
function counted(
  n: number,
  randomState = false,
): { dataset: Dataset<unknown>; made: () => number } {
  let made = 0;
  const dataset = Dataset.range(n).map((
    x,
    { random },
  ) => (made++, randomState ? random.next() : x));
  return { dataset, made: () => made };
}

async function codeOf(iterator: DatasetIterator<unknown>): Promise<string> {
  const { code } = await assertRejects(() => iterator.next(), LeatError);
  assertEquals((await iterator.next()).done, true);
  return code;
}

Deno.test("cache in files gives the same elements once they are written, and makes none again", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a/b`;
    const elements = [
      { x: tensor([[1, 2], [3, 4]]), y: "é", z: [1n, null, -0] },
      { x: tensor([[5, 6]]), y: "", z: [2n, null, NaN] },
    ];
    const { dataset, made } = counted(2);
    const mapped = dataset.map((x, { elements }) => elements[Number(x)]!, {
      captures: { elements },
    });
    const first = mapped.cache(path);
    const wanted = await outcomesOf(Dataset.from(elements).iterator());
    assertEquals(await outcomesOf(first.iterator()), wanted);
    assertEquals(await outcomesOf(first.iterator()), wanted);
    assertEquals(await namesIn(path), ["000000.tfrecord", "DONE"]);
    assertEquals(await outcomesOf(mapped.cache(path).iterator()), wanted);
    assertEquals(made(), 2);
  });
});

Deno.test("cache in files is filled by repeat, and by empty datasets", async () => {
  await inFolder(async (folder) => {
    const { dataset, made } = counted(4, true);
    const elements = await Array.fromAsync(dataset.cache(`${folder}/a`).repeat(3));
    assertEquals(elements.slice(4), [...elements.slice(0, 4), ...elements.slice(0, 4)]);
    assertEquals(made(), 4);
    for (let pass = 0; pass < 2; pass++) {
      assertEquals(await Array.fromAsync(counted(0).dataset.cache(`${folder}/b`)), []);
    }
  });
});

Deno.test("cache in files leaves nothing of a pass that is abandoned, or fails", async () => {
  await inFolder(async (path) => {
    const { dataset, made } = counted(5);
    for await (const x of dataset.cache(path)) if (x === 2) break;
    assertEquals(await namesIn(path), []);
    assertEquals(await Array.fromAsync(dataset.cache(path).take(5)), [0, 1, 2, 3, 4]); // no end seen
    assertEquals(await namesIn(path), []);
    const failing = Dataset.range(4).map(failingOn(1)).cache(path);
    for (let pass = 0; pass < 2; pass++) {
      assertEquals(await collectWithErrors(failing), [0, "error data_loss", 2, 3]);
    }
    assertEquals(await namesIn(path), []);
    const odd = Dataset.from([1, new Map(), 3]).cache(path);
    assertEquals(await collectWithErrors(odd), [1, "error failed_precondition", 3]);
    assertEquals(await namesIn(path), []);
    const before = made();
    await Array.fromAsync(dataset.cache(path));
    await Array.fromAsync(dataset.cache(path));
    assertEquals(made() - before, 5);
  });
});

Deno.test("cache in files refuses a second writer while there is one", async () => {
  await inFolder(async (path) => {
    const dataset = counted(3).dataset.cache(path);
    await using first = dataset.iterator();
    await first.next();
    await using second = dataset.iterator();
    const error = await assertRejects(() => second.next(), LeatError);
    assertEquals(error.code, "already_exists");
    assert(error.message.includes(`${path}/DONE.partial`));
    assertEquals((await second.next()).done, true);
    assertEquals(await Array.fromAsync(first), [1, 2]);
    assertEquals(await Array.fromAsync(dataset), [0, 1, 2]);
  });
});

Deno.test("a checkpoint of a cache that refused a second writer begins again", async () => {
  await inFolder(async (path) => {
    const dataset = Dataset.range(3).cache(path);
    await using first = dataset.iterator();
    await first.next();
    await using second = dataset.ignoreErrors().iterator();
    const { code } = await assertRejects(() => second.next(), LeatError);
    assertEquals(code, "already_exists");
    const state = await second.save();
    await Array.fromAsync(first);
    await second.restore(state);
    assertEquals(await Array.fromAsync(second), [0, 1, 2]);
  });
});

Deno.test("cache in files refuses elements that another pipeline made, or that were saved there", async () => {
  await inFolder(async (path) => {
    await Array.fromAsync(Dataset.range(3).cache(path));
    assertEquals(await Array.fromAsync(Dataset.range(3).cache(path)), [0, 1, 2]);
    const withNulls = () => Dataset.from([{ x: 1, y: null }]).cache(`${path}/nulls`);
    assertEquals(await Array.fromAsync(withNulls()), await Array.fromAsync(withNulls()));
    await Dataset.range(3).save(`${path}/saved`);
    for (
      const refused of [
        Dataset.from([{ x: 1 }]).cache(path),
        Dataset.range(9).cache(path),
        Dataset.range(3).map((x) => -x).cache(path),
        Dataset.range(3).cache(`${path}/saved`),
      ]
    ) {
      const { code, message } = await assertRejects(() => refused.iterator().next(), LeatError);
      assertEquals(code, "failed_precondition");
      assert(message.includes(path));
    }
  });
});

Deno.test("snapshot refuses elements that another pipeline put into its folder", async () => {
  await inFolder(async (path) => {
    const snapshot = () => Dataset.range(3).snapshot(path);
    await Array.fromAsync(snapshot());
    const [{ name }] = await Array.fromAsync(Deno.readDir(path)) as [Deno.DirEntry];
    await Deno.remove(`${path}/${name}`, { recursive: true });
    await Array.fromAsync(Dataset.range(7, 9).cache(`${path}/${name}`));
    const { code } = await assertRejects(() => snapshot().iterator().next(), LeatError);
    assertEquals(code, "failed_precondition");
  });
});

Deno.test("a seed of withOptions after cache in files or snapshot counts like one before", async () => {
  await inFolder(async (folder) => {
    const numbers = () => Dataset.range(9).map((_, { random }) => random.int(1_000));
    const one = await Array.fromAsync(numbers().cache().withOptions({ seed: 1 }));
    const two = await Array.fromAsync(numbers().cache().withOptions({ seed: 2 }));
    const cached = (seed: number) => numbers().cache(`${folder}/cache`).withOptions({ seed });
    assertEquals(await Array.fromAsync(cached(1)), one);
    assertEquals(await Array.fromAsync(cached(1)), one);
    const { code, message } = await assertRejects(() => cached(2).iterator().next(), LeatError);
    assertEquals(code, "failed_precondition");
    assert(message.includes("another seed"), message);
    const before = numbers().withOptions({ seed: 1 }).cache(`${folder}/cache`);
    assertEquals(await Array.fromAsync(before), one);
    assertEquals(await Array.fromAsync(before.withOptions({ seed: 1 })), one);
    assertEquals(await codeOf(before.withOptions({ seed: 2 }).iterator()), "failed_precondition");
    const stored = (seed: number) => numbers().snapshot(`${folder}/snapshot`).withOptions({ seed });
    assertEquals(await Array.fromAsync(stored(1)), one);
    assertEquals(await Array.fromAsync(stored(2)), two);
    assertEquals(await Array.fromAsync(stored(1)), one);
    assertEquals((await namesIn(`${folder}/snapshot`)).length, 2);
  });
});

Deno.test("a cache in files of a dataset that a function makes counts the pipeline's seed", async () => {
  await inFolder(async (path) => {
    const made = (seed: number) =>
      Dataset.range(1)
        .flatMap((_, { Dataset, path }) => Dataset.range(9).shuffle(9).cache(path), {
          captures: { path },
        })
        .withOptions({ seed });
    await Array.fromAsync(made(1));
    assertEquals(await codeOf(made(2).iterator()), "failed_precondition");
  });
});

Deno.test("a cache in files of datasets that functions return counts the pipeline's seed", async () => {
  await inFolder(async (folder) => {
    const inner = Dataset.range(9).shuffle(9);
    const read = () =>
      Dataset.range(9).snapshot(`${folder}/read`, {
        readerFunc: (shards) => shards.flatMap((shard) => shard).shuffle(9),
      });
    await Array.fromAsync(read());
    const cases: Readonly<Record<string, Dataset<number>>> = {
      outer: Dataset.range(1).flatMap(() => inner),
      captured: Dataset.range(1).flatMap((_, { inner }) => inner, { captures: { inner } }),
      interleave: Dataset.range(1).interleave((_, { inner }) => inner, { captures: { inner } }),
      window: Dataset.range(9).window(9).flatMap((window) => window.shuffle(9)),
      groupByWindow: Dataset.range(9).groupByWindow({
        key: () => 0,
        reduce: (_, window) => window.shuffle(9),
        windowSize: 9,
      }),
      snapshot: read(),
    };
    for (const [name, dataset] of Object.entries(cases)) {
      const kept = (seed: number) => dataset.cache(`${folder}/${name}`).withOptions({ seed });
      await Array.fromAsync(kept(1));
      assertEquals(await codeOf(kept(2).iterator()), "failed_precondition", name);
    }
  });
});

Deno.test("a cache in files of what draws no numbers is read with any seed", async () => {
  await inFolder(async (folder) => {
    const quiet = (seed: number) =>
      Dataset.range(9).map((x, { index }) => x + index).shuffle(9, { seed: 3 })
        .cache(`${folder}/quiet`).shuffle(9).withOptions({ seed });
    const sorted = async (seed: number) =>
      (await Array.fromAsync(quiet(seed))).sort((a, b) => a - b);
    assertEquals(await sorted(2), await sorted(1));
    const drawing: Readonly<Record<string, (dataset: Dataset<number>) => Dataset<unknown>>> = {
      shuffle: (dataset) => dataset.shuffle(9),
      map: (dataset) => dataset.map((x, { random }) => x + random.next()),
      extra: (dataset) => dataset.map((x, extra) => x + extra.random.next()),
      sample: (dataset) => Dataset.sampleFromDatasets([dataset, dataset]),
      random: (dataset) => Dataset.zip([dataset, Dataset.random()]),
      interleave: (dataset) =>
        dataset.interleave((x, { Dataset }) => Dataset.range(x).shuffle(3), { captures: {} }),
    };
    for (const [name, draw] of Object.entries(drawing)) {
      const kept = (seed: number) =>
        draw(Dataset.range(9)).cache(`${folder}/${name}`).withOptions({ seed });
      await Array.fromAsync(kept(1));
      assertEquals(await codeOf(kept(2).iterator()), "failed_precondition", name);
    }
  });
});

Deno.test("cache(path) and snapshot store elements in order, so that ranks read what any program has stored", async () => {
  let made = 0;
  const firstLast = async (x: number) => {
    made++;
    if (x === 0) await turn();
    return x;
  };
  const free = { numParallelCalls: 2, deterministic: false };
  const two = Dataset.range(2);
  const cases: Readonly<Record<string, Dataset<number>>> = {
    call: two.map(firstLast, free),
    setting: two.map(firstLast, { numParallelCalls: 2 }).withOptions({ deterministic: false }),
    "setting after it": two.map(firstLast, { numParallelCalls: 2 }),
    nested: Dataset.range(1).flatMap(() => two.map(firstLast, free)),
  };
  await inFolder(async (folder) => {
    for (const [name, dataset] of Object.entries(cases)) {
      for (
        const stored of [
          dataset.cache(`${folder}/${name}`),
          dataset.snapshot(`${folder}/${name} of snapshot`),
        ]
      ) {
        made = 0;
        const filling = stored.withOptions({ deterministic: false });
        assertEquals(await Array.fromAsync(filling), [0, 1], name);
        const ofRank = new Dataset<number>(inOrder(filling.node)).iterator({ needsOrder: true });
        assertEquals(await Array.fromAsync(ofRank), [0, 1], name);
        assertEquals(made, 2, name);
      }
    }
  });
});

Deno.test("cache in files detects damage", async () => {
  await inFolder(async (folder) => {
    const write = async (name: string) => {
      const path = `${folder}/${name}`;
      const dataset = Dataset.range(50).map((x) => "x".repeat(x)).cache(path);
      await Array.fromAsync(dataset);
      return { path, chunk: await chunkIn(path), dataset };
    };
    for (const keep of [0, 16, 17, 1000]) {
      const { chunk, dataset } = await write(`cut${keep}`);
      await Deno.truncate(chunk, keep);
      const answers = await collectWithErrors(dataset);
      assertEquals(answers.pop(), "error data_loss");
      assert(answers.every((x) => typeof x === "string" && /^x*$/.test(x)));
    }
    const { chunk, dataset } = await write("flipped");
    const bytes = await Deno.readFile(chunk);
    bytes[bytes.length >> 1]! ^= 1;
    await Deno.writeFile(chunk, bytes);
    assert((await collectWithErrors(dataset)).includes("error data_loss"));
    const { path, dataset: other } = await write("manifest");
    const manifest = await Deno.readTextFile(`${path}/DONE`);
    for (const text of [manifest.replace("50", "51"), manifest.slice(0, -9), ""]) {
      await Deno.writeTextFile(`${path}/DONE`, text);
      assertEquals(await codeOf(other.iterator()), "data_loss");
    }
    const { chunk: gone, dataset: third } = await write("gone");
    await Deno.remove(gone);
    assertEquals(await collectWithErrors(third), ["error not_found"]);
  });
});

Deno.test("cache in files removes what an earlier process left, and nothing else", async () => {
  await inFolder(async (path) => {
    await Deno.writeTextFile(`${path}/0123456789abcdef-000000.tfrecord`, "left");
    await Deno.writeTextFile(`${path}/0123456789abcdef-000001.tfrecord.partial`, "left");
    await Deno.writeTextFile(`${path}/DONE.partial`, "left");
    await Deno.writeTextFile(`${path}/mine.tfrecord`, "mine");
    await using iterator = Dataset.range(2).cache(path).iterator();
    await iterator.next();
    const begun = ["000000.tfrecord.partial", "DONE.partial", "mine.tfrecord"];
    assertEquals(await namesIn(path), begun);
    await Array.fromAsync(iterator);
    assertEquals(await namesIn(path), ["000000.tfrecord", "DONE", "mine.tfrecord"]);
  });
});

Deno.test("cache in files is refused in tasks that see a part of the dataset", async () => {
  await inFolder(async (path) => {
    const splits = {
      next: () => Promise.reject(new Error("unused")),
      total: () => Promise.resolve(1),
    };
    await using iterator = openIterator(Dataset.range(3).cache(path).node, { splits });
    assertEquals(await codeOf(iterator), "failed_precondition");
  });
});

Deno.test("a checkpoint of a cache in files continues reading at its position", async () => {
  await inFolder(async (path) => {
    await assertCheckpointLaw(() => Dataset.range(5).shuffle(3).cache(path).repeat(2));
    await assertCheckpointLaw(() =>
      Dataset.range(3).flatMap((_, { Dataset, inner }) => Dataset.range(9).cache(inner).skip(3), {
        captures: { inner: `${path}/inner` },
      })
    );
    const other = `${path}/other`;
    await Array.fromAsync(Dataset.range(2).cache(other));
    await using iterator = Dataset.range(2).cache(other).iterator();
    await iterator.next();
    const state = await iterator.save();
    await Deno.remove(other, { recursive: true });
    await Array.fromAsync(Dataset.range(2).cache(other));
    await using restored = Dataset.range(2).cache(other).iterator();
    const error = await assertRejects(() => restored.restore(state), LeatError);
    assertEquals(error.code, "failed_precondition");
  });
});

Deno.test("a checkpoint of a cache that is being filled continues to fill it", async () => {
  await inFolder(async (folder) => {
    let number = 0;
    for (const position of [0, 1, 3, 4]) {
      const path = `${folder}/${number++}`;
      const make = () => counted(4, true);
      const open = ({ dataset }: { dataset: Dataset<unknown> }, at = path) =>
        openIterator(dataset.cache(at).repeat(2).node, { seed: 7n });
      const whole = await outcomesOf(open(make(), `${path}-whole`));
      const saver = open(make());
      const before = await readOutcomes(saver, position);
      const state = await saver.save();
      await readOutcomes(saver, 1);
      await saver.return(); // as if its process had ended
      const restoredFrom = make();
      await using restored = open(restoredFrom);
      await restored.restore(state);
      assertEquals([...before, ...await outcomesOf(restored)], whole, `position ${position}`);
      assertEquals(restoredFrom.made(), 4 - position);
      assert((await namesIn(path)).includes("DONE"));
    }
  });
});

Deno.test("an iterator restored in place continues to fill its cache", async () => {
  await inFolder(async (folder) => {
    for (const operator of ["cache", "snapshot"] as const) {
      const path = `${folder}/${operator}`;
      const { dataset, made } = counted(4);
      await using iterator = dataset[operator](path).iterator();
      await readOutcomes(iterator, 1);
      const state = await iterator.save();
      await readOutcomes(iterator, 2);
      await iterator.restore(state);
      await iterator.restore(await iterator.save()); // before the first `next()`
      assertEquals(await Array.fromAsync(iterator), [1, 2, 3]);
      const count = made();
      assertEquals(await Array.fromAsync(dataset[operator](path)), [0, 1, 2, 3]);
      assertEquals(made(), count, "read back");
    }
  });
});

Deno.test("a checkpoint of a cache that is being filled continues unstored next to another writer", async () => {
  await inFolder(async (path) => {
    const dataset = counted(4).dataset.cache(path);
    await using saver = dataset.iterator();
    await saver.next();
    const state = await saver.save();
    await using restored = dataset.iterator();
    await restored.restore(state);
    assertEquals(await Array.fromAsync(restored), [1, 2, 3]);
    assertEquals(await Array.fromAsync(saver), [1, 2, 3]);
    assertEquals(await Array.fromAsync(dataset), [0, 1, 2, 3]);
  });
});

Deno.test("a checkpoint of a cache that is being filled warns if its elements are gone, and continues unstored", async () => {
  await inFolder(async (folder) => {
    for (const operator of ["cache", "snapshot"] as const) {
      const path = `${folder}/${operator}`;
      const { dataset } = counted(4);
      const saver = dataset[operator](path).iterator();
      await readOutcomes(saver, 2);
      const state = await saver.save();
      await saver.return();
      for (const isGone of [false, true]) {
        if (isGone) await Deno.remove(path, { recursive: true });
        const host = new WarningsHost();
        await using restored = openIterator(dataset[operator](path).node, { host });
        await restored.restore(state);
        await restored.next();
        assertEquals(host.warnings.length, isGone ? 1 : 0, operator);
        for (const warning of host.warnings) {
          assertStringIncludes(warning, `${operator}: ${path}`);
          assertStringIncludes(warning, "no longer holds the elements");
        }
        if (isGone) assertEquals(await Array.fromAsync(restored), [3]);
      }
    }
  });
});

Deno.test("a cache that two continue from one checkpoint holds the elements of the last one", async () => {
  await inFolder(async (path) => {
    let made = 0;
    const dataset = Dataset.range(4).map((x) => [x, made++]).cache(path);
    const first = dataset.iterator();
    await readOutcomes(first, 2);
    const state = await first.save();
    await first.return();
    const second = dataset.iterator();
    await second.restore(state);
    await second.next();
    const later = await second.save();
    await second.return();
    // Another one continues from the first checkpoint, and writes a chunk of the same size.
    const third = dataset.iterator();
    await third.restore(state);
    await third.next();
    await third.save();
    await third.return();
    await using last = dataset.iterator();
    await last.restore(later);
    assertEquals(await Array.fromAsync(last), [[3, 4]]);
    assertEquals(await Array.fromAsync(dataset), [[0, 0], [1, 1], [2, 2], [3, 4]]);
  });
});

Deno.test("a cache that was filled meanwhile is not filled again from an earlier checkpoint", async () => {
  await inFolder(async (path) => {
    let made = 0;
    const dataset = Dataset.range(4).map((x) => [x, made++]).cache(path);
    const first = dataset.iterator();
    await readOutcomes(first, 2);
    const state = await first.save();
    await first.return();
    // It starts when there is no cache, and reaches the lock when there is one.
    const late = openIterator(dataset.node, {
      host: new HostWithEvents({
        beforeCreate: async () => {
          if (made > 2) return;
          await using other = dataset.iterator();
          await other.restore(state);
          assertEquals(await Array.fromAsync(other), [[2, 2], [3, 3]]);
        },
      }),
    });
    await late.restore(state);
    assertEquals(await Array.fromAsync(late), [[2, 4], [3, 5]]);
    assertEquals(await Array.fromAsync(dataset), [[0, 0], [1, 1], [2, 2], [3, 3]]);
  });
});

Deno.test("cache in files is read by other processes", async () => {
  await inFolder(async (path) => {
    await Array.fromAsync(Dataset.range(6).batch(2).cache(path));
    const script = `import { Dataset } from "${new URL("../../../../mod.ts", import.meta.url)}";
      for await (const x of Dataset.range(6).batch(2).cache("${path}")) console.log(String(x.toArray()));`;
    const { stdout } = await new Deno.Command("deno", { args: ["eval", script] }).output();
    assertEquals(new TextDecoder().decode(stdout), "0,1\n2,3\n4,5\n");
  });
});

Deno.test("cache in files is written by a zip with a dataset of the same length", async () => {
  await inFolder(async (folder) => {
    for (const isFirst of [true, false]) {
      const { dataset, made } = counted(3);
      const cached = dataset.cache(`${folder}/${isFirst}`);
      const names = Dataset.from("abc");
      const zipped: Dataset<unknown> = isFirst ? cached.zip(names) : names.zip(cached);
      for (let epoch = 0; epoch < 2; epoch++) {
        assertEquals((await Array.fromAsync(zipped)).length, 3);
      }
      assertEquals(made(), 3);
    }
  });
});

Deno.test("a snapshot that a pipeline opens twice holds the elements of the first, however fast it is", async () => {
  await inFolder(async (folder) => {
    const called = Promise.withResolvers<void>();
    const drawn = Dataset.range(3).map((_, { random }) => (called.resolve(), random.next()));
    const stored = drawn.snapshot(folder);
    let created = 0;
    const host = new HostWithEvents({
      beforeCreate: async () => void (created++ === 0 && await called.promise), // by the second
    });
    const zipped = Dataset.zip([stored, stored]).withOptions({ seed: 1 });
    await using iterator = openIterator<[number, number]>(zipped.node, { host });
    const [first, second] = [[] as number[], [] as number[]];
    for await (const [one, two] of iterator) first.push(one), second.push(two);
    assertNotEquals(first, second);
    assertEquals(await Array.fromAsync(stored.withOptions({ seed: 1 })), first);
  });
});

Deno.test("a snapshot is written by its second use if the first one ends early", async () => {
  await inFolder(async (folder) => {
    const { dataset, made } = counted(4);
    const stored = dataset.snapshot(folder);
    assertEquals(await Array.fromAsync(stored.take(2).concatenate(stored)), [0, 1, 0, 1, 2, 3]);
    assertEquals([await Array.fromAsync(stored), made()], [[0, 1, 2, 3], 6]);
  });
});

Deno.test("cache(path) and snapshot write captures once in an iteration", async () => {
  await inFolder(async (folder) => {
    for (const kind of ["cache", "snapshot"] as const) {
      let walks = 0;
      const words = new Proxy({ a: 1 }, {
        ownKeys: (target) => (walks++, Reflect.ownKeys(target)),
      });
      const mapped = Dataset.range(3).map((x, { words }) => x + words.a, { captures: { words } });
      const stored = mapped[kind](`${folder}/${kind}`);
      const repeated = stored.repeat(3);
      const nested = Dataset.range(3).flatMap((_, { stored }) => stored, { captures: { stored } });
      await Array.fromAsync(stored);
      const walksIn = async (dataset: Dataset<unknown>, elements: number) => {
        walks = 0;
        assertEquals((await Array.fromAsync(dataset)).length, elements);
        return walks;
      };
      const once = await walksIn(stored, 3);
      assertEquals([await walksIn(repeated, 9), await walksIn(nested, 9)], [once, once], kind);
    }
  });
});
