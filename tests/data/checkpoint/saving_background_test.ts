/** Checkpoints with calls in flight, prefetched elements, and held elements. */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { Dataset, type DatasetIterator, LeatError } from "../../../mod.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { rootContext } from "../../../data/root_context.ts";
import { END } from "../../../data/iterator.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { failingOn, rounds } from "../lib/collect.ts";
import { readOutcomes } from "../lib/outcomes.ts";

/** A function that holds its calls while it is closed. */
class Gate {
  begun = 0;
  #opened = Promise.resolve();
  #open = () => {};

  readonly pass = async (x: number): Promise<number> => {
    this.begun++;
    await rounds(1);
    await this.#opened;
    return x;
  };

  close(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#opened = promise;
    this.#open = resolve;
  }

  open(): void {
    this.#open();
  }
}

/** Pipelines of one gate over 50 elements without tokens. */
const READING_AHEAD: Record<string, (pass: Gate["pass"]) => Dataset<unknown>> = {
  prefetch: (pass) => Dataset.range(50).shuffle(2).map(pass).prefetch(6),
  "map with numParallelCalls": (pass) =>
    Dataset.range(50).shuffle(2).map(pass, { numParallelCalls: 6 }),
  "filter with numParallelCalls": (pass) =>
    Dataset.range(50).shuffle(2).filter(async (x) => (await pass(x)) >= 0, { numParallelCalls: 6 }),
  "map with numParallelCalls over what waits": (pass) =>
    Dataset.range(50).shuffle(2).map(pass).map((x) => x, { numParallelCalls: 6 }),
};

for (const [name, make] of Object.entries(READING_AHEAD)) {
  Deno.test(`save waits for calls in flight in ${name}, starts none, and lets it continue`, async () => {
    const gate = new Gate();
    await using iterator = make(gate.pass).iterator();
    await iterator.next();
    gate.close();
    await rounds(4);
    const { begun } = gate;
    let saved = false;
    const saving = iterator.save().then(() => saved = true);
    await rounds(4);
    assertEquals([saved, gate.begun], [false, begun]);
    gate.open();
    await saving;
    assert(gate.begun <= begun + 1, `${gate.begun - begun} calls begun`); // of an element that came in
    assertEquals((await readOutcomes(iterator, 99)).length, 49);
  });
}

Deno.test("prefetching continues after save without a request", async () => {
  for (const make of Object.values(READING_AHEAD)) {
    const gate = new Gate();
    await using iterator = make(gate.pass).iterator();
    await iterator.next();
    await iterator.save();
    await rounds(30);
    assertEquals(gate.begun, 7);
  }
});

Deno.test("saving an unread iterator starts nothing", async () => {
  for (const make of Object.values(READING_AHEAD)) {
    const gate = new Gate();
    await using iterator = make(gate.pass).iterator();
    await iterator.save();
    await rounds(4);
    assertEquals(gate.begun, 0);
  }
});

Deno.test("closing an iterator while it is saved rejects the save and leaves no call waiting", async () => {
  for (const make of Object.values(READING_AHEAD)) {
    const gate = new Gate();
    const iterator = make(gate.pass).iterator();
    await iterator.next();
    gate.close();
    const saving = iterator.save();
    await rounds(2);
    await iterator.return();
    assertEquals((await assertRejects(() => saving, LeatError)).code, "failed_precondition");
    gate.open();
    await rounds(2);
  }
});

/** The results of a restored iterator, after the saved one gave `taken` results. */
async function restoredAfter<T>(
  make: () => Dataset<T>,
  taken: number,
): Promise<DatasetIterator<T>> {
  await using saver = make().withOptions({ seed: 4 }).iterator();
  await readOutcomes(saver, taken);
  await rounds(12);
  const state = await saver.save();
  const restored = make().withOptions({ seed: 4 }).iterator();
  await restored.restore(state);
  return restored;
}

Deno.test("calls in flight are repeated by number; results of finished calls are kept", async () => {
  const calls: number[] = [];
  const gate = Promise.withResolvers<void>();
  const make = () =>
    Dataset.range(9).map(async (x, { index }) => {
      calls.push(x);
      if (x === 2) await gate.promise;
      return [x, index];
    }, { numParallelCalls: 3 });
  const saver = make().iterator();
  await readOutcomes(saver, 2);
  await rounds(2);
  const state = await saver.save(); // while the third call hangs
  await saver.return();
  assertEquals(calls.splice(0), [0, 1, 2, 3, 4]);
  gate.resolve();
  await using restored = make().iterator();
  await restored.restore(state);
  assertEquals(calls, [2, 3, 4]);
  assertEquals((await Array.fromAsync(restored)).length, 7);
});

Deno.test("a pending error is saved, even if the function would not fail again", async () => {
  for (const [options, ahead] of [[{}, 4], [{ numParallelCalls: 3 }, 0]] as const) {
    const failed = new Set<number>();
    const failsOnce = (x: number) => {
      if (x % 2 === 0 || failed.has(x)) return x;
      failed.add(x);
      throw new LeatError("unavailable", `not yet: ${x}`);
    };
    const make = () =>
      Dataset.range(9).map((x) => rounds(1).then(() => failsOnce(x)), options).prefetch(ahead);
    await using restored = await restoredAfter(make, 2);
    assertEquals(
      await readOutcomes(restored, 2),
      [{ element: 2 }, {
        error: "unavailable: map (operator 2): the function failed at element 3: not yet: 3",
      }],
    );
  }
});

Deno.test("restore fails if a held element cannot be made again, and names it", async () => {
  let fails = false;
  const make = () =>
    Dataset.range(9).map((x) => {
      if (fails) throw new LeatError("unavailable", "the disk is gone");
      return x;
    }).shuffle(3);
  await using saver = make().iterator();
  await saver.next();
  const state = await saver.save();
  fails = true;
  await using restored = make().iterator();
  const error = await assertRejects(() => restored.restore(state), LeatError);
  assertEquals(error.code, "unavailable");
  assertStringIncludes(error.message, "map (operator 1): the function failed at element");
});

Deno.test("stats of a restored iterator count its elements, whoever started their calls", async () => {
  const makers: (() => Dataset<unknown>)[] = [
    () => Dataset.range(9).map(failingOn(4)),
    () => Dataset.range(9).filter((x) => failingOn(4)(x) !== 7),
    () => Dataset.range(9).map((x) => Promise.resolve(x), { numParallelCalls: 3 }),
    () => Dataset.range(9).filter((x) => Promise.resolve(x !== 5), { numParallelCalls: 3 }),
    () => Dataset.range(9).map((x) => x).prefetch(3),
    () => Dataset.range(9).map(failingOn(1)).batch(2),
  ];
  for (const make of makers) {
    await using restored = await restoredAfter(make, 2);
    const given = await readOutcomes(restored, 99);
    const [, operator] = restored.stats(); // below withOptions
    assertEquals(operator!.elements, given.filter((outcome) => "element" in outcome).length);
    assertEquals(operator!.bufferedBytes, 0);
  }
});

/** A host whose clock stands still, so that blocks grow. */
class StillHost extends DenoHost {
  override nowMs(): number {
    return 0;
  }
}

Deno.test("stats count the rest of a block at the iterator that gives it", async () => {
  const waitsAtFive = (x: number) => x === 5 ? rounds(1).then(() => x) : x;
  const { node } = Dataset.range(9).map(waitsAtFive).map(failingOn(3)).batch(8)
    .withOptions({ optimizations: { mapFusion: false } });
  const open = () => openIterator(node, { host: new StillHost() });
  await using saver = open();
  await readOutcomes(saver, 1); // the error of element 3, with which 4 came, and 5 that waits
  await using restored = open();
  await restored.restore(await saver.save());
  assertEquals((await readOutcomes(restored, 9)).length, 1);
  assertEquals(restored.stats().map(({ elements }) => elements), [1, 1, 5, 4, 2]);
});

/** Pipelines whose elements have tokens. */
const WITH_TOKENS: Record<string, Dataset<unknown>> = {
  map: Dataset.range(3, 14).map((x, { index, random }) => [x, index, random.int(1000)]),
  "maps that fail": Dataset.range(12).map(failingOn(2, 7)).map((x, { index }) => [x, index]),
  "map of promises": Dataset.range(9).map((x) => rounds(x % 2).then(() => [x])),
  "parallel map": Dataset.range(12).map(async (x, { index, random }) => {
    await rounds(x % 3);
    return [failingOn(5)(x), index, random.next()];
  }, { numParallelCalls: 4, deterministic: false }),
  filter: Dataset.range(20).filter((x) => x % 3 !== 0).map((x, { index }) => [x, index]),
  "parallel filter": Dataset.range(20).map((x) => [x])
    .filter(([x]) => rounds(x! % 2).then(() => x! % 3 !== 0), { numParallelCalls: 3 }),
  prefetch: Dataset.range(15).map(failingOn(3)).prefetch(4).map((x) => [x]).prefetch(1),
  "take and skip": Dataset.range(15).map((x) => [x]).skip(2).take(9),
};

for (const [name, dataset] of Object.entries(WITH_TOKENS)) {
  Deno.test(`a token gives its element again: ${name}`, async () => {
    const iterator = rootContext(dataset.node, { seed: 3n }).makeIterator();
    const held: [unknown, unknown][] = [];
    for (;;) {
      try {
        const element = await iterator.next();
        if (element === END) break;
        held.push([iterator.token(), element]);
      } catch { /* costs its element */ }
    }
    assert(held.length > 7);
    for (const [token, element] of held.reverse()) {
      assertEquals(await iterator.again(token), element);
    }
  });
}

Deno.test("an element has no token if more of its block were read after it", async () => {
  for (const dataset of [Dataset.range(9).map(failingOn(1)), Dataset.range(9).filter(failsAtOne)]) {
    const iterator = rootContext(dataset.node, {}).makeIterator();
    assertEquals([await iterator.next(), iterator.token()], [0, 0]);
    const into: unknown[] = [];
    assertEquals(iterator.nextBlock(into, 4), 0); // of elements 1 to 4 the first fails
    await assertRejects(async () => await iterator.next(), LeatError);
    assertEquals([await iterator.next(), iterator.token()], [2, undefined]);
    assertEquals([await iterator.next(), iterator.token()], [3, undefined]);
    assertEquals([await iterator.next(), iterator.token()], [4, 4]);
  }
});

function failsAtOne(x: number): boolean {
  return failingOn(1)(x) >= 0;
}
