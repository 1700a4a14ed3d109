/**
 * Checkpoints of a version that wrote less of an operator: what is missing is refused by its name, or
 * did not exist then; the stream is never another one.
 */
import { isPlainObject } from "../../core/tree.ts";
import { decodeIteration, encodeIteration } from "../../data/saving.ts";
import { Dataset, type DatasetIterator, LeatError, openIterator } from "../../mod.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { type Outcome, outcomesOf, readOutcomes } from "./lib/outcomes.ts";

const SEED = 11n;
const ELEMENTS_MAX = 60;

const range = () => Dataset.range(12) as Dataset<number>;
const generated = () =>
  Dataset.fromGenerator(function* () {
    for (let i = 0; i < 12; i++) yield i;
  });

const PIPELINES: Record<string, () => Dataset<unknown>> = {
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
};

const open = (dataset: Dataset<unknown>) => openIterator(dataset.node, { seed: SEED });

/** The state, once for each field anywhere in it, without that field. */
function* withoutOne(state: unknown, path = "state"): Generator<{ path: string; state: unknown }> {
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
  Deno.test(`restore of ${name} refuses a state that lacks a field, or gives the same stream`, async () => {
    let refused = 0;
    for (const position of [1, 5]) {
      const dataset = make();
      await using saver = open(dataset);
      await readOutcomes(saver, position);
      const saved = decodeIteration(dataset.node, await saver.save());
      const wanted = await outcomesOf(saver, ELEMENTS_MAX);
      for (const { path, state } of withoutOne(saved.state)) {
        const bytes = encodeIteration(dataset.node, { ...saved, state });
        await using iterator = open(make());
        const found = await restored(iterator, bytes);
        if (!(found instanceof LeatError)) {
          assertEquals(found, wanted, `without ${path} at ${position}`);
          continue;
        }
        refused++;
        assertEquals(found.code, "failed_precondition", `without ${path}: ${found.message}`);
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

/** As they were written before `zip` and the choosing operators knew of inputs that cannot be read. */
const OLDER = [
  {
    name: "zip",
    make: () => Dataset.range(12).zip(Dataset.range(100, 112).shuffle(4)).prefetch(2),
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
];

for (const { name, make, state, rest } of OLDER) {
  Deno.test(`restore of ${name} reads a state without the fields that came since`, async () => {
    const dataset: Dataset<unknown> = make();
    const coordinates = { seed: SEED, seeded: true, salt: 0n, epoch: 0, split: 0, shared: [] };
    const bytes = encodeIteration(dataset.node, { ...coordinates, state });
    await using iterator = open(dataset);
    await iterator.restore(bytes);
    assertEquals(await Array.fromAsync(iterator), rest);
  });
}
