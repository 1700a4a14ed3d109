/**
 * Checkpoints of a version that wrote less of an operator: what is missing is refused by its name, or
 * did not exist then; the stream is never another one.
 */
import { isPlainObject } from "../../core/tree.ts";
import {
  decodeIteration,
  encodeIteration,
  type SavedIteration,
} from "../../data/checkpoint/saving.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import { Dataset, type DatasetIterator, LeatError } from "../../mod.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import {
  ELEMENTS_MAX,
  FILES,
  open,
  PIPELINES,
  prepared,
  range,
  SEED,
} from "./lib/checkpoint_pipelines.ts";
import { MemoryHost } from "./lib/memory_host.ts";
import { type Outcome, outcomesOf, readOutcomes } from "./lib/outcomes.ts";

/** What is written where the other is not: an element has a token, or it is saved itself. */
const OTHERWISE: Record<string, string> = {
  token: "element",
  tokens: "elements",
  error: "element",
  position: "kept",
};

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

for (const [name, make] of Object.entries(PIPELINES)) {
  Deno.test(`restore of ${name} refuses a state without a field, or gives the same stream`, async () => {
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

Deno.test("restore names a missing field and leaves the iterator usable", async () => {
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
  Deno.test(`restore of ${older.name} reads a state of earlier versions`, async () => {
    await using iterator = await restoredOlder(older);
    await using again = openIterator(older.make().node, { host: new MemoryHost(FILES) });
    await again.restore(await iterator.save());
    assertEquals(await Array.fromAsync(iterator), older.rest);
    assertEquals(await Array.fromAsync(again), older.rest);
  });
}

Deno.test("restore refuses the index of a file whose listing is gone", async () => {
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
