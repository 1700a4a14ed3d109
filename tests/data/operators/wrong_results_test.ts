/** What users' functions and arguments give that operators cannot use: refused, naming the value. */

import { LeatError } from "../../../core/error.ts";
import { tensor } from "../../../core/tensor.ts";
import { Dataset } from "../../../data/mod.ts";
import { assertEquals, assertInstanceOf, assertStringIncludes } from "../../assert.ts";
import { collectWithErrors } from "../lib/collect.ts";

/** Operators by functions that return anything, as those of users in JavaScript do. */
// deno-lint-ignore no-explicit-any -- what types would refuse is what is tried here
type Untyped = any;

const four = (): Untyped => Dataset.range(4);
const untyped: Untyped = Dataset;
const two = () => [Dataset.range(3), Dataset.range(3)];
const choose = (...choices: unknown[]) =>
  untyped.chooseFromDatasets(two(), Dataset.from(choices).map((x) => x));
const sample = (weights: unknown) => untyped.sampleFromDatasets(two(), { weights });
const window = (options: object) =>
  four().groupByWindow({ key: () => 1, reduce: (_: number, w: unknown) => w, ...options });
const bucket = (options: object) =>
  four().bucketBySequenceLength({
    length: () => 1,
    boundaries: [2],
    batchSizes: [1, 1],
    ...options,
  });

/** By what is refused: the dataset, and what the message says. */
const CASES: Record<string, [make: () => Untyped, message: string]> = {
  "a predicate's number": [
    () => four().filter(() => 1),
    "filter: the function must return true or",
  ],
  "a predicate's nothing": [() => four().filter(() => {}), "got undefined"],
  "a later predicate's text": [
    () => four().filter(() => Promise.resolve("x"), { numParallelCalls: 2 }),
    `got "x"`,
  ],
  "takeWhile's number": [() => four().takeWhile(() => 0), "true or false, got 0"],
  "flatMap's array": [() => four().flatMap(() => [1]), "must return a Dataset, got [1]"],
  "interleave's number": [() => four().interleave(() => 5), "must return a Dataset, got 5"],
  "scan's bare element": [() => four().scan(0, () => 5), "[state, element], got 5"],
  "a generator's number": [
    () => untyped.fromGenerator(() => 5),
    "an iterable or an async iterable",
  ],
  "a key that is none": [() => window({ key: () => NaN, windowSize: 1 }), "an integer, got NaN"],
  "a text for a key": [() => window({ key: () => "a", windowSize: 1 }), `an integer, got "a"`],
  "a reduced number": [() => window({ reduce: () => 4, windowSize: 1 }), "a Dataset, got 4"],
  "a size of 0": [() => window({ windowSize: 0 }), "windowSize must be an integer of at least 1"],
  "a made size of 0": [() => window({ windowSize: () => 0 }), "at least 1, got 0 for key 1"],
  "a made text for a size": [() => window({ windowSize: () => "3" }), `got "3" for key 1`],
  "a reducer's fraction for a key": [
    () => four().groupByReducer({ key: () => 0.5, init: () => 0, reduce: (s: unknown) => s }),
    "groupByReducer: the key function must return an integer, got 0.5",
  ],
  "a text for a length": [() => bucket({ length: () => "3" }), `at least 0, got "3"`],
  "a fraction for a length": [() => bucket({ length: () => 1.5 }), "at least 0, got 1.5"],
  "boundaries out of order": [
    () => bucket({ boundaries: [3, 2], batchSizes: [1, 1, 1] }),
    "increasing integers, got [3, 2]",
  ],
  "boundaries that are none": [
    () => bucket({ boundaries: [NaN] }),
    "an integer of at least 1, got NaN",
  ],
  "a text for a choice": [() => choose("0"), `from 0 to 1 (plain numbers or bigints`],
  "a truth for a choice": [() => choose(true), "got true"],
  "a choice beyond": [() => choose(2n), "got 2n"],
  "texts for choices": [
    () => untyped.chooseFromDatasets(two(), Dataset.from(["0"])),
    `choice must be a dataset of plain numbers or bigints, each the index of a dataset`,
  ],
  "structures for choices": [
    () => untyped.chooseFromDatasets(two(), Dataset.range(2).batch(1)),
    `got "float64[?]"`,
  ],
  "negative weights": [() => sample([1, -1]), "2 numbers of at least 0, not all 0"],
  "weights that are none": [() => sample([1, NaN]), "got [1, NaN]"],
  "weights of 0": [() => sample([0, 0]), "got [0, 0]"],
  "weights beyond counting": [() => sample([1e308, 1e308]), "with a finite sum"],
  "texts for weights": [() => sample(["1", "2"]), `got ["1", "2"]`],
  "later weights of 0": [
    () => sample(Dataset.from([tensor(new Float64Array(2))])),
    "weights of a draw must be 2 numbers of at least 0, not all 0",
  ],
  "a text for a class": [
    () => four().rejectionResample({ classOf: () => "0", targetDist: [1, 1] }),
    `an index into targetDist, from 0 to 1, got "0"`,
  ],
  "an element of which a getter throws": [
    () =>
      four().map(() => ({
        get a() {
          throw new Error("no a");
        },
      })),
    'map: an element it gives: reading it throws "no a"; give plain values',
  ],
  "a buffer larger than a safe integer, naming the largest": [
    () => four().shuffle(2 ** 53),
    "from 1 to 9007199254740991, got 9007199254740992",
  ],
};

async function firstError(make: () => Untyped): Promise<unknown> {
  try {
    for await (const _ of make());
    return undefined;
  } catch (error) {
    return error;
  }
}

for (const [what, [make, message]] of Object.entries(CASES)) {
  Deno.test(`operators refuse ${what}`, async () => {
    const error = await firstError(make);
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, message);
  });
}

Deno.test("bigints are accepted as keys, sizes, lengths, classes and choices", async () => {
  const given = async (dataset: Untyped) => (await collectWithErrors(dataset)).length;
  assertEquals(await given(window({ key: () => 1n, windowSize: () => 2n })), 4);
  assertEquals(await given(bucket({ length: () => 1n })), 4);
  assertEquals(await collectWithErrors(choose(0n, 1n)), [0, 0]);
  const resampled = four().rejectionResample({ classOf: () => 0n, targetDist: [1] });
  assertEquals(await given(resampled), 4);
});
