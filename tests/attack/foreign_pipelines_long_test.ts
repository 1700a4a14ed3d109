/**
 * An untrusted pipeline must not run in the process that reads it: not while it is deserialised,
 * inspected or registered, and not when it is iterated, unless the user of that process trusts its
 * author. Its functions run in a separate process, without permissions.
 */
import { Dataset, LeatError, LocalCluster, registerDataset, udf } from "../../mod.ts";
import { analyzeFunction } from "../../data/udf/free_names.ts";
import { deserializeFunction } from "../../data/udf/user_function.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";

/** The mark that a payload sets on `Array` when it runs in this thread. */
const MARK = "__leat_foreign_code_ran";
const scope = Array as unknown as Record<string, unknown>;

/** Runs an attack and returns whether its payload ran here. */
async function ran(attack: () => unknown): Promise<boolean> {
  delete scope[MARK];
  try {
    await attack();
    return MARK in scope;
  } finally {
    delete scope[MARK];
  }
}

/** A serialised graph whose `map` has this text as its function. */
function graphWith(source: string): Uint8Array {
  const honest = new TextDecoder().decode(Dataset.range(3).map((x) => x).serialize());
  const graph = JSON.parse(honest, (key, value) => key === "source" ? source : value);
  return new TextEncoder().encode(JSON.stringify(graph));
}

async function gives(dataset: AsyncIterable<unknown>, elements: unknown[]): Promise<void> {
  assertEquals(await Array.fromAsync(dataset), elements);
}

async function refusal(dataset: AsyncIterable<unknown>): Promise<LeatError> {
  const error = await assertRejects(() => Array.fromAsync(dataset), LeatError);
  assertEquals(error.code, "permission_denied", error.message);
  return error;
}

/**
 * Texts that one grammar reads as a function and another as a statement, or that escape their
 * brackets.
 */
const TWO_FACED = [
  `(a) => a <!--a + (\`\n, Array.${MARK} = 1, () => 1 // \`)`,
  `(a) => (a\n--> 0, \`\n, 1), Array.${MARK} = 1, (() => 1 // \`)`,
  `() => 1); Array.${MARK} = 1; (() => 1`,
  `() => 1\n); Array.${MARK} = 1; (function f() {}`,
  `(Array.${MARK} = 1, () => 1)`,
  `(() => Array.${MARK} = 1)()`,
  `class { static { Array.${MARK} = 1; } }`,
  `class { static [Array.${MARK} = 1]() {} }`,
  `{ toString() { Array.${MARK} = 1; } }`,
  `async () => 1) ?? (Array.${MARK} = 1`,
  `() => 1}); Array.${MARK} = 1; ({a`,
  `/*`,
  `() => 1 /*`,
  `() => 1 //\u2028); Array.${MARK} = 1; (() => 1`,
  `import("data:text/javascript,Array.${MARK}=1")`,
];

/**
 * Functions whose parameters, keys or body do the harm: they may be parsed, and must not be called.
 */
const HARMFUL = [
  `(x) => { Array.${MARK} = 1; return x; }`,
  `(x, y, z = Array.${MARK} = 1) => x`,
  `({ [Array.${MARK} = 1]: x }) => x`,
  `function (x) { class A { static { Array.${MARK} = 1; } } return x; }`,
  `async function* (x) { yield Array.${MARK} = 1; }`,
];

Deno.test("deserialising a pipeline evaluates no text, be it written as a script or as a module", async () => {
  for (const source of TWO_FACED) {
    const isRun = await ran(() => {
      assertThrows(() => deserializeFunction({ source }), LeatError);
      assertThrows(() => Dataset.deserialize(graphWith(source)), LeatError);
    });
    assertEquals(isRun, false, source);
  }
});

Deno.test("syntax that differs between scripts and modules is refused already when a function is serialised", () => {
  for (const source of ["(a, b) => a<!--b", "(a) => (a\n--> 0)"]) {
    const error = assertThrows(() => analyzeFunction(source), LeatError) as LeatError;
    assertEquals(error.code, "invalid_argument");
    assert(error.message.includes("write `< !--` or `-- >`"), error.message);
  }
});

Deno.test("a foreign pipeline may be looked at and sent on, and none of its functions runs", async () => {
  for (const source of HARMFUL) {
    const isRun = await ran(() => {
      const dataset = Dataset.deserialize(graphWith(source));
      String(dataset.explain());
      dataset.fingerprint();
      dataset.serialize();
      dataset.cardinality();
      void dataset.elementSpec;
      dataset.distribute({ service: "ws://127.0.0.1:1", processingMode: "DETERMINISTIC" });
    });
    assertEquals(isRun, false, source);
  }
});

Deno.test("a foreign pipeline that is iterated runs apart, and here once its author is trusted", async () => {
  for (const source of HARMFUL.slice(0, 2)) {
    const bytes = graphWith(source);
    const foreign = Dataset.deserialize(bytes) as Dataset<number>;
    assertEquals(await ran(() => gives(foreign, [0, 1, 2])), false, source);
    const behind = foreign.map((x) => x + 1).filter((x) => x > 1);
    assertEquals(await ran(() => gives(behind, [2, 3])), false, source);
    const trusted = Dataset.deserialize(bytes, { trustPipeline: true });
    assertEquals(await ran(() => gives(trusted, [0, 1, 2])), true, source);
  }
});

Deno.test("a foreign pipeline imports its modules in a separate process", async () => {
  const module = `data:text/javascript,Array.${MARK}=1;export const f=(x)=>x;`;
  const foreign = Dataset.deserialize(Dataset.range(3).map(udf(module, "f")).serialize());
  assertEquals(await ran(() => gives(foreign, [0, 1, 2])), false);
});

Deno.test("foreign functions read no file and no environment, dial nobody and start no program", async () => {
  const folder = await Deno.makeTempDir();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  let dialled = 0;
  const accepting = (async () => {
    for await (const connection of listener) {
      dialled++;
      connection.close();
    }
  })();
  await Deno.writeTextFile(`${folder}/secret.txt`, "secret");
  const attempts = [
    `Deno.readTextFileSync("${folder}/secret.txt")`,
    `Deno.writeTextFileSync("${folder}/made.txt", "x")`,
    `Deno.env.get("HOME")`,
    `Deno.connect({ hostname: "127.0.0.1", port: ${listener.addr.port} })`,
    `fetch("http://127.0.0.1:${listener.addr.port}/")`,
    `new Deno.Command("true").outputSync()`,
    `import("file://${folder}/secret.txt")`,
    `Deno.readTextFileSync("/proc/self/environ")`,
  ];
  try {
    const attempting = Dataset.from(attempts).map((what) => new Function(`return ${what}`)());
    await using iterator = Dataset.deserialize(attempting.serialize()).iterator();
    for (const attempt of attempts) {
      const error = await assertRejects(() => iterator.next(), LeatError);
      assertEquals(error.code, "permission_denied", `${attempt}: ${error.message}`);
      assert(error.message.includes("trustPipeline"), error.message);
    }
    assertEquals((await iterator.next()).done, true);
    assertEquals([...Deno.readDirSync(folder)].map(({ name }) => name), ["secret.txt"]);
  } finally {
    listener.close();
    await accepting;
    await Deno.remove(folder, { recursive: true });
  }
  assertEquals(dialled, 0);
});

Deno.test("foreign functions that change built-in objects change nothing in this process", async () => {
  const names = ["next", "then", "get", "set", "toJSON", "length", "push"];
  const source = `(x) => {
    for (const name of ${JSON.stringify(names)}) {
      Object.defineProperty(Object.prototype, name + "_", { get() { return 1; }, configurable: true });
      Object.defineProperty(Array.prototype, name + "_", { value: () => 1, configurable: true });
    }
    JSON.parse = () => ({ harm: 1 });
    return { x };
  }`;
  const before = Object.getOwnPropertyNames(Object.prototype);
  await gives(Dataset.deserialize(graphWith(source)), [{ x: 0 }, { x: 1 }, { x: 2 }]);
  assertEquals(Object.getOwnPropertyNames(Object.prototype), before);
  assertEquals(JSON.parse("1"), 1);
  for (const name of names) assertEquals(name + "_" in [], false);
});

Deno.test("operators that ignore failed elements do not hide that a pipeline is refused", async () => {
  const lines = Dataset.textLines("/etc/passwd").map((line) => line).ignoreErrors();
  await refusal(Dataset.deserialize(lines.serialize()));
});

Deno.test("a foreign pipeline opens, makes and removes no file here", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/secret.txt`, "one\ntwo\n");
    const pipelines = {
      read: Dataset.textLines(`${folder}/secret.txt`),
      list: Dataset.listFiles(`${folder}/*`),
      cache: Dataset.range(3).cache(`${folder}/cache`),
      snapshot: Dataset.range(3).snapshot(`${folder}/snapshot`),
      readBelow: Dataset.textLines(`${folder}/secret.txt`).map((line) => line),
      cacheBelow: Dataset.range(3).cache(`${folder}/cache`).filter(() => true),
    };
    for (const [name, dataset] of Object.entries(pipelines)) {
      await refusal(Dataset.deserialize((dataset as Dataset<unknown>).serialize()));
      const names = [...Deno.readDirSync(folder)].map((entry) => entry.name);
      assertEquals(names, ["secret.txt"], name);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the refusal to open a file of a foreign pipeline tells no secret of its URL", async () => {
  for (
    const url of ["https://USER:PASSWORD@host/a?sig=SECRET", "https://USER:PASSWORD@h/*?sig=SECRET"]
  ) {
    for (const dataset of [Dataset.textLines(url), Dataset.listFiles(url)]) {
      const { message } = await refusal(
        Dataset.deserialize((dataset as Dataset<unknown>).serialize()),
      );
      assertEquals(message.match(/USER|PASSWORD|SECRET/g), null, message);
    }
  }
});

Deno.test("a foreign pipeline makes this process dial nobody", async () => {
  let dialled = 0;
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const accepting = (async () => {
    for await (const connection of listener) {
      dialled++;
      connection.close();
    }
  })();
  const service = `ws://127.0.0.1:${listener.addr.port}`;
  const served = [
    Dataset.range(3).distribute({ service }),
    Dataset.range(3).distribute({ service, processingMode: "DETERMINISTIC" }),
    Dataset.fromId(service, "d"),
    Dataset.fromId(service, "d", { processingMode: "DETERMINISTIC", trustPipeline: true }),
    Dataset.range(3).distribute({ service }).map((x) => x),
    Dataset.range(1).map((_, { Dataset }) => Dataset).flatMap(
      (Dataset, { service }) => Dataset.fromId(service, "d"),
      { captures: { service } },
    ),
  ] as Dataset<unknown>[];
  for (const dataset of served) await refusal(Dataset.deserialize(dataset.serialize()));
  listener.close();
  await accepting;
  assertEquals(dialled, 0);
});

Deno.test("a dataset in a stored dataset is foreign to who loads it", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const inner = Dataset.deserialize(graphWith(HARMFUL[0]!), { trustPipeline: true });
    const datasets = Dataset.range(1).map((_, { inner }) => inner, { captures: { inner } });
    await datasets.save(`${folder}/saved`);
    const loaded = await Dataset.load(`${folder}/saved`) as Dataset<Dataset<unknown>>;
    const elements = loaded.flatMap((dataset) => dataset);
    assertEquals(await ran(() => gives(elements, [0, 1, 2])), false);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a dataset in a stored dataset stays foreign in the state of an iterator", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const inner = Dataset.deserialize(graphWith(HARMFUL[0]!), { trustPipeline: true });
    const datasets = Dataset.range(8).map((_, { inner }) => inner, { captures: { inner } });
    await datasets.save(`${folder}/saved`);
    const loaded = await Dataset.load(`${folder}/saved`) as Dataset<Dataset<unknown>>;
    /** The rest of the elements, from a state that was saved after the first. */
    const restOf = async (dataset: Dataset<unknown>) => {
      await using saved = dataset.iterator();
      await saved.next();
      await using restored = dataset.iterator();
      await restored.restore(await saved.save());
      return await Array.fromAsync(restored);
    };
    const held = await restOf(loaded.shuffle(4, { seed: 1 })) as Dataset<unknown>[];
    assertEquals(await ran(() => gives(held[0]!, [0, 1, 2])), false);
    const open = loaded.take(1).flatMap((dataset) => dataset);
    assertEquals(await ran(async () => assertEquals(await restOf(open), [1, 2])), false);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a registered function runs on workers and apart, and in no trainer that has not said that it is trusted", async () => {
  await using cluster = await LocalCluster.start({ workers: 2 });
  // `map` after `batch` runs at the reader if a batch has rows of several splits.
  const harmful = Dataset.deserialize(graphWith(HARMFUL[0]!), { trustPipeline: true });
  const registered: Record<string, Dataset<unknown>> = {
    "behind the batch": Dataset.range(64).batch(5).map((batch) => {
      Reflect.set(Array, "__leat_foreign_code_ran", 1);
      return batch;
    }),
    "no chain": harmful.batch(2).skip(1).map((batch) => {
      Reflect.set(Array, "__leat_foreign_code_ran", 1);
      return batch;
    }),
  };
  const processingMode = "DETERMINISTIC";
  for (const [name, dataset] of Object.entries(registered)) {
    const id = await registerDataset(cluster, dataset);
    let apart: unknown[] = [];
    let here: unknown[] = [];
    const foreign = Dataset.fromId(cluster, id, { processingMode });
    assertEquals(await ran(async () => apart = await Array.fromAsync(foreign)), false, name);
    const trusted = Dataset.fromId(cluster, id, { processingMode, trustPipeline: true });
    assertEquals(await ran(async () => here = await Array.fromAsync(trusted)), true, name);
    assertEquals(apart, here, name);
  }
  // A pipeline that runs by splits alone needs no trust: all of it runs on workers.
  const id = await registerDataset(cluster, harmful);
  const onWorkers = Dataset.fromId(cluster, id, { processingMode });
  let elements: unknown[] = [];
  assertEquals(await ran(async () => elements = await Array.fromAsync(onWorkers)), false);
  assertEquals(elements, [0, 1, 2]);
});
