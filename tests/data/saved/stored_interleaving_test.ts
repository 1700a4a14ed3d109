/**
 * Two writers of one folder: one of them is paused, or killed, before each of its steps in turn,
 * while the other one does all its steps. A reader reads the folder from the beginning.
 */
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, type DatasetIterator, LeatError } from "../../../mod.ts";
import { TailLoadNode } from "../../../data/saved/tail_load.ts";
import { DistributedSaver } from "../../../data/saved/distributed/distributed_saver.ts";
import type { Begun, RunReport, WrittenRun } from "../../../data/saved/distributed/work.ts";
import { fileNameOf, readManifest } from "../../../data/saved/manifest.ts";
import { saveGraph } from "../../../data/saved/save.ts";
import { assert, assertEquals } from "../../assert.ts";
import { DiskProcess, SharedDisk } from "../lib/shared_disk.ts";
import fc from "../../lib/properties.ts";

const FOLDER = "/saved";
const SPLITS = 3;
/** Every writer takes more steps than this, … */
const STEPS_MIN = 10;
/** … and some about this many. */
const STEPS_HELD_MAX = 60;

/** A writer of a dataset. */
interface Writer {
  readonly what: string;
  readonly dataset: Dataset<unknown>;
  readonly write: (process: DiskProcess) => Promise<unknown>;
}

type Way = "held up" | "killed";

const one = Dataset.range(0, SPLITS);
/** Rows of several splits fill a batch. */
const batches = Dataset.range(7).filter((x) => x % 3 > 0).batch(2).map((batch) =>
  String(batch.toArray())
);
const another = Dataset.range(10, 10 + SPLITS);

function solo(dataset: Dataset<unknown>, overwrite = false): Writer {
  const settings = { overwrite, chunkBytesMax: 1 };
  return {
    what: `save${overwrite ? " over" : ""}`,
    dataset,
    write: (host) => saveGraph(dataset.node, FOLDER, settings, undefined, { host }),
  };
}

function caching(dataset: Dataset<unknown>): Writer {
  return {
    what: "cache",
    dataset,
    write: async (host) => {
      const iterator = openIterator(dataset.cache(FOLDER).node, { host });
      while (!(await iterator.next()).done);
    },
  };
}

/** Writes runs of `length` splits, with an entry for each. */
function joint(dataset: Dataset<unknown>, length: number, overwrite = false): Writer {
  const owner = `cluster-${length}/1`;
  const write = async (host: DiskProcess) => {
    const fingerprint = dataset.fingerprint();
    const settings = { folder: FOLDER, overwrite, fingerprint, chunkBytesMax: 1 };
    const save = new DistributedSaver(dataset.node, settings, 0n, host);
    const { id, table, entries, upTo, runs } = await save.do({ work: "begin", owner }) as Begun;
    const splits = table[0]!.map((split, index) => ({ ...split, index }));
    for (let [first, number] = [upTo, entries], isLast = false; !isLast; number++) {
      let run: WrittenRun | undefined = runs.find((run) => run.first === first);
      if (run === undefined && first < splits.length) {
        const next = Math.min(
          first + length,
          ...runs.map((run) => run.first).filter((at) => at > first),
        );
        const part = splits.slice(first, next);
        const report = await save.do({ work: "run", owner, id, first, splits: part }) as RunReport;
        run = { first, count: part.length, attempt: report.attempt };
      }
      first += run?.count ?? 0;
      isLast = first === splits.length;
      const some = run === undefined ? [] : [run];
      await save.do({ work: "entry", owner, id, number, runs: some, upTo: first, isLast });
    }
  };
  return { what: `joint save by ${length}${overwrite ? " over" : ""}`, dataset, write };
}

async function elementsOf(dataset: Dataset<unknown>): Promise<unknown[]> {
  return await Array.fromAsync(dataset);
}

/** Reads the folder while it is written. */
function reading(disk: SharedDisk) {
  const node = new TailLoadNode(FOLDER, { pollMs: 1, timeoutMs: 1e9 });
  const iterator = openIterator(node, { host: new DiskProcess(disk) });
  const found: unknown[] = [];
  const read = async () => {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      found.push(next.value);
    }
  };
  const over = read().then(() => ({ found, failure: undefined }), (error) => ({
    found,
    failure: LeatError.from(error).message,
  }));
  return { over, stop: async () => (await iterator.return(), await over) };
}

async function loaded(disk: SharedDisk): Promise<unknown[]> {
  const node = new TailLoadNode(FOLDER, { pollMs: 1, timeoutMs: 1e9 });
  const host = new DiskProcess(disk);
  const iterator = openIterator(node, { host });
  const found: unknown[] = [];
  const all = (async () => {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      found.push(next.value);
    }
    return "all";
  })();
  const how = await Promise.race([all, host.sleeps.then(() => "waits")]);
  await iterator.return();
  await all.catch(() => {});
  assertEquals(how, "all");
  return found;
}

/** Before which of their steps the two are paused; 0: never. */
interface Places {
  readonly first: number;
  readonly second?: number;
}

/** Runs the scenario and checks the result. Calls `onOver` if the first one took fewer steps. */
async function play(
  { before, first, second, isSame = false }: Pair,
  way: Way,
  places: Places,
  onOver: () => void,
): Promise<void> {
  const disk = new SharedDisk();
  const streams = [await elementsOf(first.dataset), await elementsOf(second.dataset)];
  if (before !== undefined) {
    streams.push(await elementsOf(before.dataset));
    await before.write(new DiskProcess(disk));
  }
  const reader = reading(disk);
  const [a, b] = [new DiskProcess(disk), new DiskProcess(disk)];
  const there = way === "killed" ? a.killAt(places.first) : a.holdAt(places.first);
  const thereToo = b.holdAt(places.second ?? 0);
  const outcome = (writing: Promise<unknown>) =>
    writing.then(() => undefined, (error) => LeatError.from(error));
  const firstDone = outcome(first.write(a));
  const gotThere = await Promise.race([there.then(() => true), firstDone.then(() => false)]);
  if (!gotThere) onOver();
  const isKilled = way === "killed" && gotThere;
  const secondDone = outcome(second.write(b));
  await Promise.race([secondDone, thereToo, b.sleeps]);
  a.letGo();
  if (!isKilled) await Promise.race([firstDone, a.sleeps]);
  b.letGo();
  const failedSecond = await secondDone;
  const failedFirst = isKilled ? new LeatError("cancelled", "killed") : await firstDone;

  const told = [failedFirst, failedSecond].map((error) =>
    error && `${error.code}: ${error.message}`
  );
  const at = Object.values(places).join(" and ");
  const where = `${first.what}, ${way} before step ${at}, and ${second.what}: ${told}`;
  const wanted = [failedFirst, failedSecond].flatMap((error, i) =>
    error === undefined || (i === 0 && isKilled) ? [streams[i]!] : []
  );
  if (before !== undefined && wanted.length === 0) wanted.push(streams[2]!);
  assert(wanted.length > 0, `nobody has saved anything: ${where}`);
  if (isKilled && failedSecond?.code === "already_exists" && !disk.contents.has(`${FOLDER}/DONE`)) {
    assert(second.what === "save" || second.what === "cache", where);
    await reader.stop();
    return;
  }
  const found = await loaded(disk).catch((error) => error.message);
  assert(wanted.some((stream) => String(stream) === String(found)), `holds ${found}: ${where}`);
  const manifest = await readManifest(new DiskProcess(disk), FOLDER);
  const kept = new Set(["DONE", ...manifest!.chunks.map(({ name }) => name)]);
  const stray = disk.names.map(fileNameOf).filter((name) => !kept.has(name));
  // What a killed writer left is removed by the next save, or used if the same save is resumed.
  if (!isKilled || isSame) assert(stray.length === 0, `leaves ${stray}: ${where}`);
  const read = await reader.over;
  const isStart = (stream: unknown[]) => read.found.every((x, i) => x === stream[i]);
  assert(streams.some(isStart), `read ${read.found}: ${where}`);
  const isWhole = streams.some((stream) => String(read.found) === String(stream));
  assert(
    isWhole || (read.failure !== undefined && !isSame),
    `read ${read.found}, ${read.failure}: ${where}`,
  );
}

/** Two writers of one folder. */
interface Pair {
  readonly what: string;
  readonly before?: Writer;
  readonly first: Writer;
  readonly second: Writer;
  /** They write the same save together: a reader receives all of it. */
  readonly isSame?: boolean;
}

const third = Dataset.range(20, 20 + SPLITS);

const PAIRS: readonly Pair[] = [
  { what: "two saves", first: solo(one, true), second: solo(another, true) },
  {
    what: "two saves over another",
    before: solo(third),
    first: solo(one, true),
    second: solo(another, true),
  },
  {
    what: "two joint saves of the same",
    first: joint(one, 1),
    second: joint(one, 3),
    isSame: true,
  },
  {
    what: "two joint saves of the same, other runs",
    first: joint(one, 3),
    second: joint(one, 1),
    isSame: true,
  },
  {
    what: "two joint saves of the same batches",
    first: joint(batches, 1),
    second: joint(batches, 3),
    isSame: true,
  },
  {
    what: "two joint saves over another",
    before: joint(third, 1),
    first: joint(one, 2, true),
    second: joint(another, 3, true),
  },
  {
    what: "a joint save and another over it",
    first: joint(one, 2),
    second: joint(another, 3, true),
  },
  { what: "a save and a joint save over it", first: solo(one), second: joint(another, 2, true) },
  { what: "a joint save and a save over it", first: joint(one, 2), second: solo(another, true) },
  { what: "a save over a joint one", first: solo(one, true), second: joint(another, 2) },
  { what: "a save and a joint one", first: solo(one), second: joint(another, 2) },
  { what: "a joint one and a save", first: joint(one, 2), second: solo(another) },
  { what: "two caches", first: caching(one), second: caching(one) },
  { what: "a cache and a save over it", first: caching(one), second: solo(another, true) },
  { what: "a save over it and a cache", first: solo(one, true), second: caching(another) },
  { what: "a joint save and a cache", first: joint(one, 2), second: caching(another) },
  { what: "a cache and a joint save", first: caching(one), second: joint(another, 2) },
];

for (const pair of PAIRS) {
  for (const way of ["held up", "killed"] as const) {
    Deno.test(`${pair.what}, one of them ${way} before any of its steps, leave a complete saved dataset`, async () => {
      let isOver = false;
      let step = 0;
      while (!isOver) await play(pair, way, { first: ++step }, () => isOver = true);
      assert(step > STEPS_MIN, `${step} steps`);
    });
  }
}

Deno.test("a cache that is abandoned before any of its steps removes nothing of the next one", async () => {
  const open = (host: DiskProcess) => openIterator(one.cache(FOLDER).node, { host });
  const readAll = async (iterator: DatasetIterator<unknown>) => {
    for (; !(await iterator.next()).done;);
  };
  let isOver = false;
  let step = 0;
  while (!isOver) {
    const disk = new SharedDisk();
    const [a, b] = [new DiskProcess(disk), new DiskProcess(disk)];
    const there = a.holdAt(++step).then(() => false);
    const givenUp = open(a);
    const firstDone = readAll(givenUp).catch(() => {});
    isOver = await Promise.race([there, firstDone.then(() => true)]);
    const returned = givenUp.return();
    const secondDone = readAll(open(b)).then(() => "", (error) => LeatError.from(error).code);
    await Promise.race([secondDone, b.sleeps]);
    a.letGo();
    await Promise.all([firstDone, returned]);
    const told = await secondDone;
    // Pending steps still hold the lock.
    if (told === "already_exists") await readAll(open(b));
    else assertEquals(told, "", `given up before step ${step}`);
    assertEquals(await loaded(disk), await elementsOf(one), `given up before step ${step}`);
  }
  assert(step > STEPS_MIN, `${step} steps`);
});

Deno.test("two writers of one folder, both paused somewhere, leave a complete saved dataset", async () => {
  const sample = fc.record({
    pair: fc.constantFrom(...PAIRS),
    first: fc.integer({ min: 1, max: STEPS_HELD_MAX }),
    second: fc.integer({ min: 1, max: STEPS_HELD_MAX }),
  });
  await fc.assert(
    fc.asyncProperty(sample, async ({ pair, ...places }) => {
      await play(pair, "held up", places, () => {});
    }),
    { numRuns: 150 },
  );
});
