/**
 * Checkpoints of a version that wrote less of an operator: what is missing is refused by its name, or
 * did not exist then; the stream is never another one.
 */
import { isPlainObject } from "../../core/tree.ts";
import { decodeIteration, encodeIteration, type SavedIteration } from "../../data/saving.ts";
import { Dataset, type DatasetIterator, LeatError, openIterator } from "../../mod.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { MemoryHost } from "./lib/memory_host.ts";
import { type Outcome, outcomesOf, readOutcomes } from "./lib/outcomes.ts";

const SEED = 11n;
const ELEMENTS_MAX = 60;

const range = () => Dataset.range(12) as Dataset<number>;
const generated = () =>
  Dataset.fromGenerator(function* () {
    for (let i = 0; i < 12; i++) yield i;
  });

/** Throws for every third element from the second on. */
function failing(x: number): number {
  if (x % 3 === 1) throw new LeatError("data_loss", `no ${x}`);
  return x;
}

const numbered = (name: string) =>
  Array.from({ length: 4 }, (_, i) => i === 2 ? "{\n" : `"${name}${i}"\n`).join("");

const FILES = {
  "/lines/a": "a0\na1\na2\na3\n",
  "/lines/b": "b0\nb1\nb2\nb3\n",
  "/lines/c": "c0\nc1\nc2\nc3\n",
  "/json/a": numbered("a"),
  "/json/b": numbered("b"),
  "/csv/a": "x,y\n1,2\n3,4\n5,6\n7,8\n",
  "/csv/b": "x,y\n9,10\n11,12\n",
};
const LINES = ["/lines/a", "/lines/b", "/lines/c"];
const JSON_LINES = ["/json/a", "/json/b"];
const CSV = ["/csv/a", "/csv/b"];

/** Stored before they are read. */
const CACHED = "/cached";
const cached = () => generated().cache(CACHED);
const snapshotted = () => range().snapshot("/snapshot", { shardFunc: (x) => x % 2 });

const pieces = () => range().map((x) => new Int32Array(x % 4 + 1).fill(x));

/** What is written where the other is not: an element has a token, or it is saved itself. */
const OTHERWISE: Record<string, string> = {
  token: "element",
  tokens: "elements",
  error: "element",
  position: "kept",
};

const PIPELINES: Record<string, () => Dataset<unknown> | Promise<Dataset<unknown>>> = {
  range,
  generated,
  map: () => range().map((x, { index, random }) => x + index + random.int(5)),
  parallelMap: () =>
    range().map(async (x, { index }) => {
      await Promise.resolve();
      return x + index;
    }, { numParallelCalls: 3 }),
  filter: () => range().filter((x) => x % 3 > 0),
  flatMap: () => range().flatMap((x, { Dataset }) => Dataset.range(x)),
  interleave: () =>
    range().interleave((x, { Dataset }) => Dataset.range(x), { cycleLength: 3, blockLength: 2 }),
  parallelInterleave: () =>
    range().interleave((x, { Dataset }) => Dataset.range(x), {
      cycleLength: 3,
      blockLength: 2,
      numParallelCalls: 2,
    }),
  groupByWindow: () =>
    range().groupByWindow({
      key: (x) => x % 2,
      reduce: (_, window) => window.batch(2),
      windowSize: 3,
    }),
  window: () => range().window(3).flatMap((window) => window),
  scan: () => range().scan(0, (sum, x) => [sum + x, sum + x] as [number, number]),
  shuffle: () => range().shuffle(5),
  shuffleByContent: () => generated().shuffle(4),
  repeat: () => range().take(4).repeat(3),
  cache: () => range().cache().repeat(2),
  skip: () => range().skip(3),
  shard: () => range().shard(3, 1),
  zip: () => range().zip(range().skip(1)),
  enumerate: () => range().enumerate(5),
  concatenate: () => range().concatenate(range()),
  prefetch: () => generated().prefetch(3),
  unbatch: () => range().batch(4).unbatch(),
  rebatch: () => range().batch(4).rebatch(3),
  unique: () => range().map((x) => x % 5).unique(),
  sample: () => Dataset.sampleFromDatasets([range(), range().skip(2)], { weights: [0.5, 0.5] }),
  choose: () => Dataset.chooseFromDatasets([range(), range()], range().map((x) => x % 2)),
  ignoreErrors: () =>
    range().map((x) => {
      if (x % 4 === 1) throw new LeatError("data_loss", `no ${x}`);
      return x;
    }).ignoreErrors({ maxErrors: 9 }),
  takeWhile: () => range().takeWhile((x) => x < 9),
  random: () => Dataset.random().take(9),
  globalShuffle: () => range().globalShuffle(),
  cacheWithin: () => range().flatMap((x, { Dataset }) => Dataset.range(x).cache().repeat(2)),
  cacheComplete: () => range().take(3).cache().repeat(3),
  ignoreErrorsUpToTheEnd: () =>
    range().map((x) => failing(x < 2 ? x : 0)).ignoreErrors({ maxFraction: 0.01 }),
  errors: () => generated().map(failing).prefetch(3),
  errorsInParallel: () =>
    generated().map(async (x) => {
      await Promise.resolve();
      return failing(x);
    }, { numParallelCalls: 3 }),
  sampleByDataset: () =>
    Dataset.sampleFromDatasets([range(), range().skip(2)], {
      weights: range().map((x) => [x, 12 - x]),
    }),
  groupByReducer: () =>
    generated().groupByReducer({
      key: (x) => x % 2,
      init: () => 0,
      reduce: (sum, x) => sum + x,
      finalize: (sum) => sum,
    }),
  rejectionResample: () =>
    range().rejectionResample({ classOf: (x) => x % 2, targetDist: [0.3, 0.7], seed: 3 }),
  pack: () => pieces().pack({ length: 5 }),
  packGenerated: () => generated().map((x) => new Int32Array(x % 4 + 1)).pack({ length: 5 }),
  packSplit: () => pieces().pack({ length: 3, overflow: "split", maxOpenBins: 2 }),
  textLines: () => Dataset.textLines(LINES),
  textLinesInParallel: () => Dataset.textLines(LINES, { numParallelReads: 2 }),
  listedLines: () => Dataset.textLines(Dataset.listFiles("/lines/*")),
  jsonLines: () => Dataset.jsonLines(JSON_LINES),
  jsonLinesInParallel: () => Dataset.jsonLines(JSON_LINES, { numParallelReads: 2 }),
  csv: () => Dataset.csv(CSV),
  csvInParallel: () => Dataset.csv(CSV, { numParallelReads: 2, header: false }),
  csvUnquoted: () => Dataset.csv(CSV, { useQuoteDelim: false }),
  fixedLengthRecords: () => Dataset.fixedLengthRecords(LINES, { recordBytes: 3 }),
  wholeFiles: () => Dataset.wav(LINES),
  load: () => Dataset.load(CACHED, { wait: true }),
  cacheReading: cached,
  snapshotReading: snapshotted,
  cacheWriting: () => generated().cache("/new"),
  snapshotWriting: () => range().snapshot("/new", { shardFunc: (x) => x % 2 }),
};

const open = (dataset: Dataset<unknown>, host?: MemoryHost) =>
  openIterator(dataset.node, { seed: SEED, ...(host && { host }) });

/** The state, once for each field anywhere in it, without that field. */
function* withoutOne(state: unknown, path: string): Generator<{ path: string; state: unknown }> {
  if (Array.isArray(state)) {
    for (const [i, part] of state.entries()) {
      for (const less of withoutOne(part, `${path}[${i}]`)) {
        yield { path: less.path, state: state.with(i, less.state) };
      }
    }
  } else if (isPlainObject(state)) {
    for (const [name, part] of Object.entries(state)) {
      const { [name]: _, ...rest } = state;
      yield { path: `${path}.${name}`, state: rest };
      for (const less of withoutOne(part, `${path}.${name}`)) {
        yield { path: less.path, state: { ...state, [name]: less.state } };
      }
    }
  }
}

/** What is left of an iterator that is restored, or the code and message with which that is refused. */
async function restored(
  iterator: DatasetIterator<unknown>,
  bytes: Uint8Array,
): Promise<Outcome[] | LeatError> {
  try {
    await iterator.restore(bytes);
  } catch (error) {
    if (error instanceof LeatError) return error;
    throw error;
  }
  return await outcomesOf(iterator, ELEMENTS_MAX);
}

/** Files, and what was stored in some. Who goes on writing takes no name of its own: files compare. */
async function prepared(): Promise<MemoryHost> {
  const host = new MemoryHost(FILES);
  host.entropy64 = () => SEED;
  for (const dataset of [cached(), snapshotted()]) await outcomesOf(open(dataset, host));
  return host;
}

for (const [name, make] of Object.entries(PIPELINES)) {
  Deno.test(`restore of ${name} refuses a state that lacks a field, or gives the same stream`, async () => {
    let refused = 0;
    for (const position of [1, 5]) {
      const host = await prepared();
      const dataset = await make();
      const saver = open(dataset, host);
      await readOutcomes(saver, position);
      const saved = decodeIteration(dataset.node, await saver.save());
      const { contents } = host;
      host.contents = new Map(contents);
      const wanted = await outcomesOf(saver, ELEMENTS_MAX);
      const stored = host.contents;
      await saver.return();
      for (const { path, state } of withoutOne(saved, "iteration")) {
        host.contents = new Map(contents);
        const bytes = encodeIteration(dataset.node, state as SavedIteration);
        const iterator = open(await make(), host);
        const found = await restored(iterator, bytes);
        await iterator.return();
        assertEquals(host.locked.size, 0, `without ${path} at ${position}`);
        if (!(found instanceof LeatError)) {
          assertEquals(found, wanted, `without ${path} at ${position}`);
          assertEquals(host.contents, stored, `without ${path} at ${position}`);
          continue;
        }
        refused++;
        assertEquals(found.code, "failed_precondition", `without ${path}: ${found.message}`);
        const field = path.slice(path.lastIndexOf(".") + 1);
        assertMatch(found.message, new RegExp(`did not write "(${field}|${OTHERWISE[field]})"`));
      }
    }
    assert(refused > 0, "there was nothing to leave out");
  });
}

Deno.test("a state that lacks a field is refused by the field's name, and the iterator is as good as before", async () => {
  const dataset = range().skip(2);
  await using iterator = open(dataset);
  await iterator.next();
  const saved = decodeIteration(dataset.node, await iterator.save());
  const { left: _, ...state } = saved.state as { left: number };
  const bytes = encodeIteration(dataset.node, { ...saved, state });
  const error = await assertRejects(() => iterator.restore(bytes), LeatError);
  assertMatch(error.message, /another version.*"left"/);
  assertEquals((await iterator.next()).value, 3);
});

/** One order for all iterations, which is drawn where nobody chose a seed. */
const once = { reshuffleEachIteration: false };

/** One that stands in the first of two repetitions. */
const inFirst = (input: unknown) => ({ repetition: 0, gave: true, ended: false, input });

/** As it was written when iterators were saved with the seed that is drawn once for a dataset. */
const shuffledInFirst = inFirst({
  held: { tokens: [3, 2] },
  draws: { drawnSeed: 42n, position: 2 },
  inputEnded: false,
  input: { position: 4 },
});

/** `state` as earlier versions wrote it, where `seeded` says whether somebody chose the seed. */
interface Older {
  readonly name: string;
  readonly make: () => Dataset<unknown>;
  readonly seeded: boolean;
  readonly state: unknown;
  readonly rest: unknown[];
}

/** The first two: before `zip` and the choosing operators knew of inputs that cannot be read. */
const OLDER: Older[] = [
  {
    name: "zip",
    make: () => Dataset.range(12).zip(Dataset.range(100, 112).shuffle(4)).prefetch(2),
    seeded: true,
    state: {
      buffer: [],
      input: {
        inputs: [{ position: 4 }, {
          held: { tokens: [6, 1, 4] },
          draws: { drawnSeed: undefined, position: 4 },
          inputEnded: false,
          input: { position: 7 },
        }],
        ended: false,
      },
    },
    rest: [[4, 107], [5, 101], [6, 108], [7, 109], [8, 106], [9, 111], [10, 104], [11, 110]],
  },
  {
    name: "sampleFromDatasets",
    make: () =>
      Dataset.sampleFromDatasets([Dataset.range(9).shuffle(3), Dataset.range(100, 109)], {
        weights: [0.5, 0.5],
      }),
    seeded: true,
    state: {
      inputs: [{
        held: { tokens: [2, 1] },
        draws: { drawnSeed: undefined, position: 3 },
        inputEnded: false,
        input: { position: 5 },
      }, { position: 1 }],
      selector: { drawnSeed: undefined, position: 8 },
    },
    rest: [1, 101, 102, 2, 6, 103, 5, 104, 105, 106, 107, 108, 7, 8],
  },
  {
    name: "shuffle, in an order that is drawn once,",
    make: () => Dataset.range(5).shuffle(3, once).repeat(2),
    seeded: false,
    state: shuffledInFirst,
    rest: [4, 2, 3, 1, 0, 4, 2, 3],
  },
  {
    name: "globalShuffle, in an order that is drawn once,",
    make: () => Dataset.range(5).globalShuffle(once).repeat(2),
    seeded: false,
    state: inFirst({ drawnSeed: 44n, indexed: { position: 2 } }),
    rest: [1, 2, 0, 4, 3, 1, 2, 0],
  },
  {
    name: "sampleFromDatasets, with draws that are the same each time,",
    make: () =>
      Dataset.sampleFromDatasets([Dataset.range(3), Dataset.range(10, 13)])
        .repeat(2),
    seeded: false,
    state: inFirst({
      inputs: [{ position: 0 }, { position: 1 }],
      selector: { drawnSeed: 46n, position: 2 },
    }),
    rest: [11, 0, 1, 12, 2, 10, 11, 0, 1, 12, 2],
  },
  {
    name: "a shuffle that a function made, in an order that was drawn once,",
    make: () =>
      Dataset.range(1).flatMap((_, { Dataset }) => Dataset.range(5).shuffle(3, once).repeat(2)),
    seeded: false,
    state: {
      current: {
        index: 0,
        outer: { tokens: [0] },
        nested: { shared: [], iterator: shuffledInFirst },
      },
      calls: 1,
      input: { position: 1 },
    },
    rest: [4, 2, 3, 1, 0, 4, 2, 3],
  },
  {
    name: "listFiles, by the numbers of names,",
    make: () => Dataset.listFiles("/lines/*", { shuffle: false }).shuffle(2, { seed: 1 }),
    seeded: false,
    state: {
      held: { tokens: [1] },
      draws: { drawnSeed: undefined, position: 1 },
      inputEnded: true,
      input: {
        position: 3,
        listing: {
          count: 3,
          digest: "104908fe3316572646d5edd7161a65825756cd62c8d0bc73dcede2833fd39fc1",
        },
      },
    },
    rest: ["/lines/b"],
  },
];

/** Restores an older state in a dataset of now. */
async function restoredOlder(
  { make, seeded, state }: Pick<Older, "make" | "seeded" | "state">,
): Promise<DatasetIterator<unknown>> {
  const dataset = make();
  const coordinates = { seed: SEED, seeded, salt: 0n, epoch: 0, split: 0, shared: [] };
  const bytes = encodeIteration(dataset.node, { ...coordinates, state });
  const iterator = openIterator(dataset.node, { host: new MemoryHost(FILES) });
  await iterator.restore(bytes);
  return iterator;
}

for (const older of OLDER) {
  Deno.test(`restore of ${older.name} reads a state as earlier versions wrote it`, async () => {
    await using iterator = await restoredOlder(older);
    await using again = openIterator(older.make().node, { host: new MemoryHost(FILES) });
    await again.restore(await iterator.save());
    assertEquals(await Array.fromAsync(iterator), older.rest);
    assertEquals(await Array.fromAsync(again), older.rest);
  });
}

Deno.test("restore refuses the number of a name whose listing is gone", async () => {
  const error = await assertRejects(() =>
    restoredOlder({
      make: () => Dataset.listFiles("/lines/*", { shuffle: false }).take(2).shuffle(9, { seed: 1 }),
      seeded: false,
      state: {
        held: { tokens: [1] },
        draws: { drawnSeed: undefined, position: 1 },
        inputEnded: true,
        input: { left: 0, input: null },
      },
    }), LeatError);
  assertEquals(error.code, "failed_precondition");
  assertMatch(error.message, /another version.*file 1 of "\/lines\/\*"/);
});
