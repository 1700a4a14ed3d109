/**
 * `interleave` with `numParallelCalls`: order, limits of parallel and prefetched reads,
 * checkpoints, disposal.
 */
import { AUTOTUNE, Dataset, LeatError } from "../../../../mod.ts";
import { assert, assertEquals } from "../../../assert.ts";
import { until } from "../../../lib/until.ts";
import { assertCheckpointLaw } from "../../lib/checkpoint_law.ts";
import { collect, turn } from "../../lib/collect.ts";
import { itemsMoved } from "../../lib/items_moved.ts";
import { outcomesOf } from "../../lib/outcomes.ts";

/** What happened in a pipeline of slow datasets. */
interface Watched {
  made: number;
  fetched: number;
  fetching: number;
  fetchingMax: number;
}

const watched = (): Watched => ({ made: 0, fetched: 0, fetching: 0, fetchingMax: 0 });

/** A dataset of `[outer, inner]` whose elements take several turns of the event loop. */
function slow(outer: number, length: number, seen = watched()): Dataset<[number, number]> {
  seen.made++;
  return Dataset.fromGenerator(() => {
    let inner = 0;
    return {
      [Symbol.asyncIterator]: () => ({
        async next(): Promise<IteratorResult<[number, number]>> {
          seen.fetching++;
          seen.fetchingMax = Math.max(seen.fetchingMax, seen.fetching);
          await turn((outer * 7 + inner * 3) % 4);
          seen.fetching--;
          if (inner === length) return { done: true, value: undefined };
          seen.fetched++;
          return { done: false, value: [outer, inner++] };
        },
      }),
    };
  });
}

Deno.test("parallel interleave gives the same as sequential interleave, in its order", async () => {
  for (const cycleLength of [1, 3, 7]) {
    for (const blockLength of [1, 3]) {
      const made = (numParallelCalls?: number) =>
        Dataset.from([2, 0, 5, 1, 0, 3, 4]).interleave((length) => {
          if (length === 1) throw new LeatError("data_loss", "no dataset");
          return slow(length, length).flatMap(([outer, inner], { Dataset, random }) => {
            if (outer === 5 && inner === 2) throw new LeatError("data_loss", "no element");
            return Dataset.from([[outer, inner, random.next()]]);
          });
        }, { cycleLength, blockLength, numParallelCalls });
      const wanted = await outcomesOf(made().withOptions({ seed: 1 }).iterator());
      for (const calls of [1, 2, 5, AUTOTUNE]) {
        const found = await outcomesOf(made(calls).withOptions({ seed: 1 }).iterator());
        assertEquals(found, wanted, `cycle ${cycleLength}, block ${blockLength}, calls ${calls}`);
      }
    }
  }
});

Deno.test("parallel interleave has numParallelCalls fetches in flight from the start, and never more", async () => {
  for (const numParallelCalls of [1, 3]) {
    const seen = watched();
    const dataset = Dataset.range(20).interleave((n) => slow(n, 5, seen), {
      cycleLength: 6,
      numParallelCalls,
    });
    await collect(dataset);
    assertEquals(seen.fetchingMax, numParallelCalls);
    assertEquals(seen.fetched, 100);
  }
});

Deno.test("parallel interleave counts calls in flight among its fetches", async () => {
  let calling = 0;
  let callingMax = 0;
  const dataset = Dataset.range(12).interleave(async (n, { Dataset }) => {
    callingMax = Math.max(callingMax, ++calling);
    await turn(1);
    calling--;
    return Dataset.from([n]);
  }, { cycleLength: 8, numParallelCalls: 3 });
  assertEquals(await collect(dataset), Array.from({ length: 12 }, (_, n) => n));
  assertEquals(callingMax, 3);
});

Deno.test("parallel interleave reads two blocks of cycleLength + numParallelCalls datasets ahead", async () => {
  const seen = watched();
  const dataset = Dataset.range(100).interleave((n) => slow(n, 1000, seen), {
    cycleLength: 3,
    blockLength: 2,
    numParallelCalls: 2,
  });
  await using iterator = dataset.iterator();
  await iterator.next();
  const wanted = 1 + (3 + 2) * 2 * 2;
  await until(() => seen.fetched >= wanted);
  await turn(20);
  assertEquals(seen.made, 3 + 2);
  assertEquals(seen.fetched, wanted);
});

Deno.test("parallel interleave neither moves what it has read nor copies its slots for an element", async () => {
  const count = 4_000;
  for (const cycleLength of [2, 100]) {
    const blockLength = cycleLength === 2 ? count / 2 : 1;
    const captures = { length: count / cycleLength };
    const dataset = Dataset.range(cycleLength).interleave(
      (_, { Dataset, length }) => Dataset.range(length),
      { cycleLength, blockLength, numParallelCalls: 4, captures },
    );
    let given = 0;
    const moved = await itemsMoved(async () => {
      for await (const _ of dataset) given++;
    });
    assertEquals(given, count);
    assert(moved <= 20 * count, `${moved} items in a cycle of ${cycleLength}`);
  }
});

Deno.test("unordered parallel interleave gives what is ready", async () => {
  const gate = Promise.withResolvers<void>();
  const dataset = Dataset.range(4).interleave(
    (n, { Dataset }) =>
      Dataset.fromGenerator(async function* () {
        if (n === 0) await gate.promise;
        yield [n, 0];
        yield [n, 1];
      }),
    { cycleLength: 2, numParallelCalls: 2, deterministic: false },
  );
  await using iterator = dataset.iterator();
  const first: unknown[] = [];
  while (first.length < 6) first.push((await iterator.next()).value);
  assertEquals(first, [[1, 0], [1, 1], [2, 0], [2, 1], [3, 0], [3, 1]]);
  gate.resolve();
  assertEquals(await Array.fromAsync(iterator), [[0, 0], [0, 1]]);
});

Deno.test("a checkpoint of parallel interleave keeps prefetched elements", async () => {
  for (const [cycleLength, blockLength, numParallelCalls] of [[2, 1, 3], [3, 2, 1]] as const) {
    const made = (deterministic: boolean) => () =>
      Dataset.range(6).shuffle(3).interleave(async (n, { Dataset, random }) => {
        await Promise.resolve();
        if (n === 3) throw new LeatError("data_loss", "no dataset");
        const randomState = random.next();
        const made = Dataset.range(n % 5);
        const elements = n % 2 === 0 ? made.shuffle(2) : slow(n, n % 4);
        return (elements as Dataset<unknown>).flatMap((x, { Dataset }) => {
          if (x === 1) throw new LeatError("data_loss", "no element");
          return Dataset.from([[n, randomState, x]]);
        });
      }, { cycleLength, blockLength, numParallelCalls, deterministic });
    await assertCheckpointLaw(made(true));
    await assertCheckpointLaw(made(false), { inOrder: false });
  }
  await assertCheckpointLaw(() =>
    // fetched elements by their tokens
    Dataset.range(3).interleave((n, { Dataset }) => Dataset.range(n, 9, 2), {
      blockLength: 2,
      numParallelCalls: 2,
    }).shuffle(3)
  );
});

Deno.test("saving parallel interleave starts no fetch", async () => {
  const seen = watched();
  const dataset = Dataset.range(4).interleave((n) => slow(n, 2, seen), { numParallelCalls: 2 });
  await using iterator = dataset.iterator();
  await iterator.save();
  assertEquals(seen.made, 0);
});

Deno.test("disposing a parallel interleave stops all fetches at once", async () => {
  const seen = watched();
  const dataset = Dataset.range(50).interleave((n) => slow(n, 50, seen), {
    cycleLength: 5,
    numParallelCalls: 4,
  });
  const iterator = dataset.iterator();
  await iterator.next();
  const pending = [iterator.next(), iterator.next(), iterator.next()];
  await iterator.return();
  const { fetching, made } = seen;
  const begun = seen.fetched + fetching;
  await Promise.all(pending);
  assertEquals((await iterator.next()).done, true);
  while (seen.fetching > 0) await turn(1);
  await turn(5);
  assertEquals(seen.made, made);
  assert(seen.fetched <= begun, `${seen.fetched} of ${begun}`);
});

Deno.test("timers tick while a parallel interleave skips empty datasets", async () => {
  const iterator = Dataset.range(Number.MAX_SAFE_INTEGER)
    .interleave(() => Dataset.range(0), { numParallelCalls: 4 }).iterator();
  const pending = iterator.next();
  await turn(1);
  await turn(1);
  await iterator.return();
  assertEquals((await pending).done, true);
  await turn(5);
});
