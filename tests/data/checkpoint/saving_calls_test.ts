/** The law of checkpoints for operators that call functions, gather or prefetch. */
import { AUTOTUNE, Dataset, LeatError, tensor, TensorSpec } from "../../../mod.ts";
import { assertCheckpointLaw, type LawOptions } from "../lib/checkpoint_law.ts";
import { failingOn, rounds } from "../lib/collect.ts";

type Make = () => Dataset<unknown>;

/** Elements without tokens: those of a shuffle have none. */
const forgetting = (count: number) => Dataset.range(count).shuffle(4);

/** Fails at some elements, and returns what the function got. */
function telling(x: unknown, { index, random }: Told): unknown {
  if (index % 5 === 3) throw new LeatError("data_loss", `no ${x}`);
  return [x, index, random.int(1000)];
}

async function tellingLater(x: unknown, extra: Told): Promise<unknown> {
  await rounds(extra.index % 4 === 1 ? 3 : 1);
  return telling(x, extra);
}

interface Told {
  readonly index: number;
  readonly random: { int(n: number): number };
}

const keeps = (x: number) => failingOn(5)(x) % 3 !== 0;

async function keepsLater(x: number): Promise<boolean> {
  await rounds(x % 2);
  return keeps(x);
}

/** Returns synchronously, later, or with an error, alternately. */
const mixed = (x: number) => x % 4 === 1 ? rounds(1).then(() => failingOn(9)(x)) : failingOn(2)(x);

const LEAVES_SPEC = {
  single: new TensorSpec("float32", []),
  record: new TensorSpec("bytes", []),
};

/** Fails at times. */
function leavesOf(x: number): unknown {
  failingOn(1, 2, 6)(x);
  return {
    single: x / 7,
    record: new Uint8Array(x % 3).fill(x),
    yes: x % 2 === 0,
    big: BigInt(x) << 40n,
    word: `word ${x}`,
    absent: null,
    tuple: [x, -0, [new Int32Array([x, -x])]],
    grid: tensor([[x], [x + 0.5]]),
    words: tensor(["a", `${x}`]),
  };
}

/** Objects without tokens. */
const records = (count: number) => forgetting(count).map((n) => ({ n: n + 1 }));

function doubleLater(record: { n: number }): Promise<unknown> {
  record.n *= 2;
  return rounds(1).then(() => record);
}

/** Lists without tokens. */
const lists = (count: number) =>
  forgetting(count).map((n) => ({ words: Array.from({ length: n % 4 }, (_, at) => `${n}${at}`) }));

/** Changes its element, and makes a dataset of what is left. */
function endingIn(record: { words: string[] }, { Dataset: D }: { Dataset: unknown }) {
  record.words.push("end");
  record.words.shift();
  return (D as typeof Dataset).from([...record.words]);
}

/** Tests the law immediately, and after background work had time. */
async function assertLaw(make: Make, options: LawOptions = {}): Promise<void> {
  await assertCheckpointLaw(make, options);
  await assertCheckpointLaw(make, { ...options, beforeSave: () => rounds(4) });
}

const IN_ORDER: Record<string, Make> = {
  map: () => Dataset.range(9).map(telling),
  "map of promises": () => Dataset.range(7).map(tellingLater),
  "map of what has no tokens": () => forgetting(8).map(telling),
  "map that shuffle holds": () => Dataset.range(9).map(telling).shuffle(4),
  "map of promises that shuffle holds": () => Dataset.range(8).map(tellingLater).shuffle(3),
  "map of map that shuffle holds": () =>
    Dataset.range(3, 12).map(telling).map(telling).skip(1).map((x) => x).shuffle(4),
  "map that fails within blocks": () => Dataset.range(12).map(failingOn(2, 3, 9)).batch(3),
  "maps that fail within blocks": () =>
    Dataset.range(14).map(failingOn(3, 10)).map(failingOn(0, 2, 7)).map(failingOn(1, 8)).batch(4),
  "maps that wait within blocks": () =>
    Dataset.range(14).map(mixed).map((x) => mixed(x + 1)).map(failingOn(1, 4, 8)).batch(4),
  filter: () => Dataset.range(12).filter(keeps),
  "filter of promises": () => Dataset.range(9).filter(keepsLater),
  "filter that shuffle holds": () => Dataset.range(12).filter(keeps).shuffle(3),
  "filter that holds for nothing": () => Dataset.range(5).filter(() => false),
  "filters that fail and wait within blocks": () =>
    Dataset.range(16).filter((x) => x % 4 === 1 ? rounds(1).then(() => x % 8 === 1) : keeps(x))
      .map(failingOn(1, 4, 10)).filter((x) => failingOn(2, 7)(x) !== 8).batch(3),
  "prefetch 0": () => Dataset.range(6).map(failingOn(2)).prefetch(0),
  "prefetch 1": () => Dataset.range(6).map(tellingLater).prefetch(1),
  "prefetch 5": () => Dataset.range(9).map(telling).prefetch(5),
  "prefetch 5 of promises": () => Dataset.range(9).map(tellingLater).prefetch(5),
  "prefetch of what has no tokens": () => forgetting(9).map(telling).prefetch(4),
  "prefetch that shuffle holds": () => Dataset.range(9).map(telling).prefetch(2).shuffle(4),
  "prefetch AUTOTUNE": () => Dataset.range(22).map(telling).prefetch(AUTOTUNE),
  "prefetch of prefetch": () => Dataset.range(9).prefetch(2).map(tellingLater).prefetch(3),
  "prefetch of an input that take disposes": () => Dataset.range(9).prefetch(4).take(3),
  batch: () => Dataset.range(8).batch(3),
  "batch, remainder dropped": () => Dataset.range(8).batch(3, { dropRemainder: true }),
  "batch that keeps what it gathered": () => forgetting(13).map(failingOn(2, 3, 8, 9)).batch(4),
  "batch that elements do not fit": () =>
    Dataset.from([1, 2, "a", 3, [4], 5, 6, true, 7, 8]).batch(3),
  "batch of leaves of every kind": () =>
    forgetting(11).map(leavesOf, { spec: LEAVES_SPEC }).batch(4),
  "paddedBatch of leaves of every kind": () =>
    forgetting(11).map(leavesOf, { spec: LEAVES_SPEC }).paddedBatch(4),
  "batch of nothing": () => Dataset.range(0).batch(2),
  "paddedBatch that elements do not fit": () =>
    Dataset.from([2, 1, 9, 0, 3, 9, 2].map((n) => new Int16Array(n).fill(n)))
      .paddedBatch(3, { paddedShapes: [4], paddingValues: -1 }),
  "batch over prefetch over calls over shuffle": () =>
    Dataset.range(17).shuffle(5).map(telling).prefetch(2)
      .map(tellingLater, { numParallelCalls: 3 }).batch(3).prefetch(1),
  "calls over calls": () =>
    Dataset.range(12).map(tellingLater, { numParallelCalls: 3 })
      .filter(async (x) => (await rounds(1), (x as number[])[0]! % 3 > 0), { numParallelCalls: 2 })
      .map(tellingLater, { numParallelCalls: 2 }).shuffle(3).prefetch(2),
  "calls that change their elements in place": () =>
    records(9).map(doubleLater, { numParallelCalls: 3 }).batch(2).prefetch(1),
  "reading ahead of what a call changes in place": () =>
    records(12).prefetch(3).map(doubleLater).prefetch(3).skip(0),
  "flatMap of a function that changes its element in place": () => lists(9).flatMap(endingIn),
  "interleave of a function that changes its element in place": () =>
    lists(9).interleave(endingIn, { cycleLength: 3 }),
  "interleave, 2 calls at once, of a function that changes its element in place": () =>
    lists(9).interleave(endingIn, { cycleLength: 3, numParallelCalls: 2 }),
  withOptions: () => Dataset.range(9).shuffle(4).map(telling).withOptions({ deterministic: true }),
};

for (const numParallelCalls of [1, 3, 8]) {
  Object.assign(IN_ORDER, {
    [`map, ${numParallelCalls} calls at once`]: () =>
      Dataset.range(13).map(tellingLater, { numParallelCalls }),
    [`map, ${numParallelCalls} calls at once, of what has no tokens`]: () =>
      forgetting(11).map(tellingLater, { numParallelCalls }),
    [`map, ${numParallelCalls} calls at once, that answer at once`]: () =>
      Dataset.range(9).map(telling, { numParallelCalls }),
    [`map, ${numParallelCalls} calls at once, of an input that waits and fails`]: () =>
      Dataset.range(11).map(tellingLater).map(tellingLater, { numParallelCalls }),
    [`map, ${numParallelCalls} calls at once, that shuffle holds`]: () =>
      Dataset.range(9).map(tellingLater, { numParallelCalls }).shuffle(3),
    [`filter, ${numParallelCalls} calls at once`]: () =>
      Dataset.range(13).filter(keepsLater, { numParallelCalls }),
    [`filter, ${numParallelCalls} calls at once, that answer at once`]: () =>
      Dataset.range(13).filter(keeps, { numParallelCalls }).shuffle(2),
    [`filter, ${numParallelCalls} calls at once, of what has no tokens`]: () =>
      forgetting(12).filter(keepsLater, { numParallelCalls }),
  });
}

for (const [name, make] of Object.entries(IN_ORDER)) {
  Deno.test(`save and restore continue at their position: ${name}`, () => assertLaw(make));
}

for (const numParallelCalls of [1, 3, 8]) {
  Deno.test(`save and restore keep the set of elements: ${numParallelCalls} calls in any order`, async () => {
    const how = { numParallelCalls, deterministic: false };
    // Random numbers and index belong to the element, in whatever order the calls end.
    await assertLaw(() => Dataset.range(9).map(tellingLater, how), { inOrder: false });
    await assertLaw(() => forgetting(9).map(tellingLater, how).prefetch(2), { inOrder: false });
    await assertLaw(() => Dataset.range(9).filter(keepsLater, how), { inOrder: false });
  });
}
