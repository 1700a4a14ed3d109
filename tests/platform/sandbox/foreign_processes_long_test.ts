/**
 * Functions of pipelines that this program did not build, in processes of their own, give the same
 * as in this process when their author is trusted.
 */
import { fileURLToPath } from "node:url";
import {
  Dataset,
  type DatasetIterator,
  type ForeignLimits,
  LeatError,
  LocalCluster,
  registerDataset,
} from "../../../mod.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { hurried } from "../../data/lib/hurried.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

/** An element, or code and message of its error. */
type Given = { readonly value: unknown } | { readonly error: unknown };

async function take(iterator: DatasetIterator<unknown>, count = Infinity): Promise<Given[]> {
  const given: Given[] = [];
  while (given.length < count) {
    try {
      const { done, value } = await iterator.next();
      if (done) break;
      given.push({ value });
    } catch (error) {
      const { code, message } = LeatError.from(error);
      given.push({ error: `${code} ${message}` });
    }
  }
  return given;
}

function built(dataset: Dataset<unknown>, trustPipeline: boolean): Dataset<unknown> {
  return Dataset.deserialize(dataset.serialize(), { trustPipeline });
}

const seeded = { seed: 7 };

/** Pipelines whose streams depend on everything that must be the same. */
const PIPELINES: Readonly<Record<string, Dataset<unknown>>> = {
  "random numbers of functions": Dataset.range(12).map((
    x,
    { random, index },
  ) => [x, random.int(1000), index])
    .withOptions(seeded),
  "operators above and below": Dataset.range(30).shuffle(8).filter((x) => x % 3 > 0).batch(4)
    .map((batch, { random }) => ({ batch, drawn: random.next() })).shuffle(3).prefetch(2)
    .withOptions(seeded),
  "errors in their places": Dataset.range(9).map((x) => {
    if (x % 4 === 2) throw new RangeError(`no ${x}`);
    return x;
  }).withOptions(seeded),
  "datasets made of elements": Dataset.range(6).flatMap((x, { Dataset, random }) =>
    (Dataset as typeof import("../../../mod.ts").Dataset).range(1 + random.int(4)).map(
      (y) => 10 * x + y,
      {
        captures: { x },
      },
    )
  ).withOptions(seeded),
  "two functions over one": Dataset.zip([
    Dataset.range(8).map((_, { random }) => random.int(100)),
    Dataset.range(8).shuffle(4).map((x, { random }) => x + random.int(100)),
  ]).withOptions(seeded),
  "repeated with other random numbers": Dataset.range(5).map((x, { random }) => x * random.int(50))
    .shuffle(5)
    .repeat(3).withOptions(seeded),
  "windows and groups": Dataset.range(10).window(3, { dropRemainder: true }).flatMap((w) =>
    w.batch(3)
  )
    .scan(0, (sum: number, batch) => [sum + batch.shape[0]!, { sum, batch }] as const)
    .withOptions(seeded),
  "images": Dataset.range(2).map((_, { image }) =>
    image.size(
      Uint8Array.of(
        137,
        80,
        78,
        71,
        13,
        10,
        26,
        10,
        0,
        0,
        0,
        13,
        73,
        72,
        68,
        82,
        0,
        0,
        0,
        2,
        0,
        0,
        0,
        3,
        8,
      ),
    )
  ).withOptions(seeded),
};

for (const [name, dataset] of Object.entries(PIPELINES)) {
  Deno.test(`foreign functions give the same elements as trusted ones, also after a restore: ${name}`, async () => {
    await using trusted = built(dataset, true).iterator();
    const expected = await take(trusted);
    assert(expected.length > 1);
    const middle = Math.floor(expected.length / 2);
    const places = name === "windows and groups" ? [0, middle, expected.length - 1] : [middle];
    for (const at of places) {
      await using before = built(dataset, false).iterator();
      assertEquals(await take(before, at), expected.slice(0, at));
      const state = await before.save();
      // Saving leaves the iterator unchanged.
      assertEquals(await take(before), expected.slice(at), `goes on at ${at}`);
      await using after = built(dataset, false).iterator();
      await after.restore(state);
      assertEquals(await take(after), expected.slice(at), `restored at ${at}`);
    }
  });
}

Deno.test("foreign functions draw one order for all iterations where trusted ones do", async () => {
  const dataset = built(
    Dataset.range(40).shuffle(40, { reshuffleEachIteration: false }).map((x) => x),
    false,
  );
  const first = await Array.fromAsync(dataset);
  assertEquals(await Array.fromAsync(dataset), first);
  assert(first.some((x, i) => x !== i));
});

Deno.test("datasets that foreign functions make keep their order where the iteration does", async () => {
  const { node } = built(hurried(Dataset.range(2)), false);
  await using iterator = openIterator(node, { needsOrder: true });
  assertEquals(await Array.fromAsync(iterator), [0, 1, 2, 3]);
});

Deno.test("an element that cannot be sent fails alone among those of one answer", async () => {
  const dataset = Dataset.range(600).map((x) => x === 400 ? { x: new Date(0) } : x);
  await using iterator = built(dataset as Dataset<unknown>, false).iterator();
  const given = await take(iterator);
  assertEquals(given.length, 600);
  const failed = given.flatMap((answer, i) => "error" in answer ? [i] : []);
  assertEquals(failed, [400]);
});

Deno.test("save() includes elements that the process sent ahead, with their errors", async () => {
  const dataset = Dataset.range(900).map((x, { random }) => {
    if (x % 100 === 99) throw new RangeError(`no ${x}`);
    return x + random.int(1000);
  }).withOptions(seeded);
  await using trusted = built(dataset, true).iterator();
  const expected = await take(trusted);
  for (const at of [120, 250, 555]) {
    await using before = built(dataset, false).iterator();
    assertEquals(await take(before, at), expected.slice(0, at));
    await using after = built(dataset, false).iterator();
    await after.restore(await before.save());
    assertEquals(await take(after), expected.slice(at));
  }
});

Deno.test("reductions and reads by index give the same with foreign functions", async () => {
  const dataset = built(Dataset.range(5).map((x) => x * x), false) as Dataset<number>;
  assertEquals(await dataset.reduce(0, (sum, x) => sum + x), 30);
  assertEquals(await dataset.at(3), 9);
  const shuffled = (trust: boolean) =>
    Array.fromAsync(
      (built(Dataset.range(50).map((x) => x + 1), trust)).globalShuffle({ seed: 3 }),
    );
  assertEquals(await shuffled(false), await shuffled(true));
});

async function assertRefused({ trusts, hint }: { trusts: boolean; hint: string }): Promise<void> {
  const dataset = PIPELINES["random numbers of functions"]!;
  await using saver = built(dataset, trusts).iterator();
  await saver.next();
  await using restored = built(dataset, !trusts).iterator();
  const state = await saver.save();
  const error = await assertRejects(() => restored.restore(state), LeatError);
  assertEquals(error.code, "failed_precondition");
  assertStringIncludes(error.message, hint);
}

Deno.test("a state of a trusted pipeline is refused by an untrusted one, which says why", () =>
  assertRefused({ trusts: true, hint: "Restore it with trustPipeline: true" }));

Deno.test("a state of an untrusted pipeline is refused by a trusted one, which says why", () =>
  assertRefused({ trusts: false, hint: "Restore it without trustPipeline" }));

const processingMode = "DETERMINISTIC";

/** Pipelines of which a DETERMINISTIC reader runs a part. */
const REGISTERED: Readonly<Record<string, Dataset<unknown>>> = {
  "batches over the ends of splits": Dataset.range(64).batch(5).map((batch, { random }) => ({
    batch,
    drawn: random.next(),
  })).withOptions(seeded),
  "what is no chain": Dataset.range(48).batch(2).map((b, { random }) => [b, random.int(100)]).skip(
    1,
  )
    .enumerate().map((pair, { random }) => ({ pair, drawn: random.next() })).withOptions(seeded),
  "two streams": Dataset.zip([
    Dataset.range(32).map((x, { random }) => x + random.int(9)),
    Dataset.range(32).shuffle(6),
  ]).map(([a, b], { random }) => [a, b, random.int(100)]).repeat(2).withOptions(seeded),
};

for (const [name, dataset] of Object.entries(REGISTERED)) {
  Deno.test(`a reader runs its part of a registered pipeline in a separate process, with the same stream: ${name}`, async () => {
    await using cluster = await LocalCluster.start({ workers: 2 });
    const datasetId = await registerDataset(cluster, dataset);
    const read = (trustPipeline: boolean) =>
      Dataset.fromId(cluster, datasetId, { processingMode, trustPipeline }).iterator();
    await using trusted = read(true);
    const expected = await take(trusted);
    assert(expected.length > 4);
    const at = Math.floor(expected.length / 2) + 1;
    await using before = read(false);
    assertEquals(await take(before, at), expected.slice(0, at));
    const state = await before.save();
    assertEquals(await take(before), expected.slice(at));
    await using after = read(false);
    await after.restore(state);
    assertEquals(await take(after), expected.slice(at));
  });
}

/** A function that runs this text, whose names are forbidden in serialised functions. */
function doing(what: string): Dataset<unknown> {
  return Dataset.range(3).map((x, { what }) => x === 1 ? new Function(what)() : x, {
    captures: { what },
  });
}

Deno.test("a process that ends itself ends its iteration, which says so, and nothing else", async () => {
  const what = 'globalThis.process.kill(globalThis.process.pid, "SIGKILL")';
  for (
    const end of ["Deno.exit(3)", what, "Deno.stdout.writeSync(new Uint8Array(4096).fill(255))"]
  ) {
    await using iterator = built(doing(end), false).ignoreErrors().iterator();
    assertEquals(await iterator.next(), { done: false, value: 0 });
    const error = await assertRejects(() => iterator.next(), LeatError);
    assertStringIncludes(error.message, "The runner is gone");
    assertEquals(error.details?.["reason"], "runner_died");
    assertEquals(await iterator.next(), { done: true, value: undefined });
  }
  assertEquals(await Array.fromAsync(built(Dataset.range(2).map((x) => x), false)), [0, 1]);
});

Deno.test("an endless loop, and memory without end, end their iteration by their limits", async () => {
  const endOf = async (what: string, limits: ForeignLimits) => {
    const host = new DenoHost({ foreign: limits });
    await using iterator = openIterator(built(doing(what), false).node, { host });
    const read = async () => {
      // On a busy machine the limit may end the process before its first element.
      while (!(await iterator.next()).done);
    };
    return await assertRejects(read, LeatError);
  };
  // It sleeps: a loop that spins would keep a core busy for the whole limit.
  const sleeping = "for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)";
  const [loop, memory] = await Promise.all([
    endOf(sleeping, { stallTimeoutMs: 1_000 }),
    endOf("const all = []; for (;;) all.push(new Array(100_000).fill(0.5))", {
      heapBytesMax: 128 * 2 ** 20,
    }),
  ]);
  assertEquals(loop.code, "deadline_exceeded", loop.message);
  assertStringIncludes(loop.message, "stallTimeoutMs");
  assertEquals(memory.code, "resource_exhausted", memory.message);
  assertStringIncludes(memory.message, "heapBytesMax");
});

/** An image of one pixel, in base64. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

Deno.test("where no process can be started, foreign functions are refused, with what to grant", async () => {
  await using folder = await TempFolder.make();
  const mod = import.meta.resolve("../../../mod.ts");
  const program = `${folder.path}/program.ts`;
  await Deno.writeTextFile(
    program,
    `import { Dataset } from ${JSON.stringify(mod)};
    const png = Uint8Array.fromBase64("${PNG}");
    const decode = async (x, { image, png }) => (await image.decode(png), x);
    const decoded = Dataset.range(3).map(decode, { captures: { png } });
    const foreign = Dataset.deserialize(decoded.serialize());
    const kept = foreign.iterator();
    console.log(await kept.next().then(({ value }) => value, ({ code, message }) => code + " " + message));`,
  );
  const run = async (...flags: string[]) => {
    const config = fileURLToPath(import.meta.resolve("../../../deno.json"));
    const { stdout, stderr } = await new Deno.Command("deno", {
      args: ["run", "--no-check", "--no-prompt", "--config", config, ...flags, program],
    }).output();
    return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  };
  const refused = await run("--allow-read", "--allow-env");
  assertStringIncludes(refused, "permission_denied");
  assertStringIncludes(refused, "--allow-run=deno");
  const noFolder = await run("--allow-read", "--allow-env", "--allow-run=deno");
  assertStringIncludes(noFolder, "permission_denied");
  assertStringIncludes(noFolder, "write access");
  // An unclosed iterator does not keep the program alive, and nor does what decodes its images.
  const granted = await run("--allow-read", "--allow-env", "--allow-write", "--allow-run=deno");
  assertEquals(granted, "0\n");
});
