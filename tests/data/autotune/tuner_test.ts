/** `AUTOTUNE` while a pipeline runs. */
import type { Knob } from "../../../data/autotune/knob.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import type { IterationOptions } from "../../../data/iteration_options.ts";
import { RandomStream } from "../../../core/philox.ts";
import { AUTOTUNE, Dataset, LeatError, type OperatorStats } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { outcomesOf } from "../lib/outcomes.ts";

/** A clock that moves to the next timer when nothing else is left to do. */
class Clock extends DenoHost {
  #now = 0;
  readonly #timers: { readonly atMs: number; readonly ring: () => void }[] = [];

  override nowMs(): number {
    return this.#now;
  }

  wait(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#timers.push({ atMs: this.#now + ms, ring: resolve });
    return promise;
  }

  /** The result of `work`, while time passes. */
  async during<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const ended = work.finally(() => isOver = true);
    ended.catch(() => {});
    while (!isOver) {
      for (let i = 0; i < 20 && !isOver; i++) await this.yield();
      this.#timers.sort((a, b) => a.atMs - b.atMs);
      const next = this.#timers.shift();
      if (next === undefined) continue;
      this.#now = Math.max(this.#now, next.atMs);
      next.ring();
    }
    return await ended;
  }
}

/** Reads `count` elements, with a pause before each. */
async function read<T>(
  dataset: Dataset<T>,
  clock: Clock,
  { count = 300, pauseMs = 0 },
  options: IterationOptions = {},
): Promise<readonly OperatorStats[]> {
  await using iterator = openIterator<T>(dataset.node, { host: clock, ...options });
  await clock.during((async () => {
    for (let i = 0; i < count; i++) {
      await iterator.next();
      if (pauseMs > 0) await clock.wait(pauseMs);
    }
  })());
  assertStringIncludes(String(iterator.explain()), "AUTOTUNE");
  return iterator.stats();
}

function slowMap(clock: Clock): Dataset<number> {
  return Dataset.range(100_000).map(async (x) => {
    await clock.wait(10);
    return x;
  }, { numParallelCalls: AUTOTUNE });
}

Deno.test("AUTOTUNE makes as many calls as the consumer needs, within the CPU budget", async () => {
  const clock = new Clock();
  const tuned = async (pauseMs: number, cpuBudget: number) => {
    const dataset = slowMap(clock).withOptions({ autotune: { cpuBudget } });
    return (await read(dataset, clock, { pauseMs }))[1]!.tuning!;
  };
  const fast = await tuned(0, 12);
  assertEquals([fast.parameter, fast.value], ["numParallelCalls", 12]);
  assert(fast.expectedMs! > 0 && fast.measuredMs! > 0, JSON.stringify(fast));
  assertEquals((await tuned(0, 1)).value, 1);
  const slow = await tuned(50, 12);
  assert(slow.value < 6, JSON.stringify(slow));
});

Deno.test("AUTOTUNE decides the same in virtual time, again and again", async () => {
  const once = async () => {
    const clock = new Clock();
    return await read(slowMap(clock).prefetch(AUTOTUNE).batch(3), clock, { pauseMs: 4 });
  };
  assertEquals(await once(), await once());
});

Deno.test("AUTOTUNE begins an epoch with what it had set in the last one", async () => {
  const clock = new Clock();
  const dataset = slowMap(clock);
  const valueOf = (stats: readonly OperatorStats[]) =>
    stats.find(({ operator }) => operator === "map")!.tuning!.value;
  const first = valueOf(await read(dataset, clock, { pauseMs: 1 }));
  assert(first > 4, `${first} calls`);
  // Too few elements for a decision.
  assertEquals(valueOf(await read(dataset, clock, { count: 2 })), first);
  assertEquals(valueOf(await read(slowMap(clock), clock, { count: 2 })), 4);
  const off = dataset.withOptions({ autotune: false });
  assertEquals(valueOf(await read(off, clock, { count: 2 })), 4);
});

Deno.test("withOptions({ autotune: false }) keeps the first values", async () => {
  const clock = new Clock();
  const dataset = slowMap(clock).prefetch(AUTOTUNE).withOptions({ autotune: false });
  const stats = await read(dataset, clock, {});
  assertEquals(stats.map(({ tuning }) => tuning?.value), [undefined, 16, 4, undefined]);
});

Deno.test("withOptions({ autotune: false }) keeps the first values of many operators, too", async () => {
  const clock = new Clock();
  let dataset: Dataset<number> = Dataset.range(100_000);
  for (let i = 0; i < 9; i++) {
    dataset = dataset.map((x) => Promise.resolve(x), { numParallelCalls: AUTOTUNE });
  }
  const stats = await read(dataset.withOptions({ autotune: false }), clock, { count: 5 });
  assertEquals(stats.slice(1, 10).map(({ tuning }) => tuning!.value), Array(9).fill(4));
});

Deno.test("AUTOTUNE follows the consumer after everything below was cached", async () => {
  const clock = new Clock();
  const dataset = Dataset.range(40).map(async (x) => {
    await clock.wait(2);
    return x;
  }).cache().repeat().map(async (x) => {
    await clock.wait(10);
    return x;
  }, { numParallelCalls: AUTOTUNE });
  await using iterator = openIterator(dataset.node, { host: clock });
  const calls = async (count: number, pauseMs: number) => {
    await clock.during((async () => {
      for (let i = 0; i < count; i++) {
        await iterator.next();
        if (pauseMs > 0) await clock.wait(pauseMs);
      }
    })());
    return iterator.stats()[0]!.tuning!.value;
  };
  assert(await calls(300, 100) < 4);
  assert(await calls(4_000, 0) > 8);
});

Deno.test("AUTOTUNE measures a consumer whose first next() waited in the queue", async () => {
  const clock = new Clock();
  const { node } = slowMap(clock);
  await using iterator = openIterator(node, { host: clock });
  await clock.during((async () => {
    const saving = iterator.save(), first = iterator.next();
    await saving;
    await first;
    for (let i = 0; i < 100; i++) {
      await iterator.next();
      await clock.wait(100);
    }
  })());
  assert(iterator.stats()[0]!.tuning!.value < 4, JSON.stringify(iterator.stats()[0]!.tuning));
});

Deno.test("AUTOTUNE in a dataset that a function makes has no more calls than the CPU budget", async () => {
  for (const [cpuBudget, calls] of [[2, 2], [6, 4]] as const) {
    let [inFlight, inFlightMax] = [0, 0];
    const call = async (x: number) => {
      inFlightMax = Math.max(inFlightMax, ++inFlight);
      await Promise.resolve();
      inFlight--;
      return x;
    };
    const numbers = Dataset.range(2)
      .flatMap(() => Dataset.range(20).map(call, { numParallelCalls: AUTOTUNE }))
      .withOptions({ autotune: { cpuBudget } });
    for await (const _ of numbers);
    assertEquals(inFlightMax, calls);
  }
});

Deno.test("withOptions refuses unknown or invalid budgets", async () => {
  for (const autotune of [{ cpuBudget: 0 }, { ramBudgetBytes: 0.5 }, { cores: 3 }, "on"]) {
    const options = { autotune } as unknown as { autotune: boolean };
    await assertRejects(
      async () => await Dataset.range(1).withOptions(options).iterator().next(),
      LeatError,
      "autotune",
    );
  }
});

Deno.test("the RAM budget bounds what operators with AUTOTUNE hold", async () => {
  const clock = new Clock();
  const bytes = 1_000;
  const ramBudgetBytes = 6 * bytes;
  const dataset = Dataset.range(100_000).map(async () => {
    await clock.wait(3);
    return new Uint8Array(bytes);
  }, { numParallelCalls: AUTOTUNE }).prefetch(AUTOTUNE)
    .withOptions({ autotune: { ramBudgetBytes } });
  // The budget holds whatever the knobs are set to.
  const tuningPolicy = (knobs: readonly Knob[]) => {
    for (const knob of knobs) knob.value = knob.max;
  };
  await using iterator = openIterator(dataset.node, { host: clock, tuningPolicy });
  let most = 0;
  await clock.during((async () => {
    for (let i = 0; i < 200; i++) {
      await iterator.next();
      await clock.wait(i % 7 === 0 ? 30 : 1);
      const held = iterator.stats().reduce((sum, stats) => sum + stats.bufferedBytes, 0);
      if (i > 10) most = Math.max(most, held);
    }
  })());
  assert(most <= ramBudgetBytes + 2 * bytes, `${most} bytes`); // each operator may hold one
  assert(most >= 3 * bytes, `${most} bytes: nothing was held`);
});

Deno.test("the RAM budget bounds elements that become larger", async () => {
  const clock = new Clock();
  const largeBytes = 10_000;
  let made = 0, taken = 0, most = 0;
  const dataset = Dataset.range(100_000).map(async (x) => {
    await clock.wait(1);
    made++;
    return new Uint8Array(x < 300 ? 10 : largeBytes);
  }).prefetch(AUTOTUNE).withOptions({ autotune: { ramBudgetBytes: 5 * largeBytes } });
  const tuningPolicy = (knobs: readonly Knob[]) => {
    for (const knob of knobs) knob.value = knob.max;
  };
  await using iterator = openIterator(dataset.node, { host: clock, tuningPolicy });
  await clock.during((async () => {
    for (; taken < 500; taken++) {
      await iterator.next();
      await clock.wait(5);
      if (taken > 300) most = Math.max(most, made - taken);
    }
  })());
  assert(most <= 5 + 3, `${most} large elements are held`); // one is taken, one is being made
});

/** Pipelines with everything that can be tuned. */
const PIPELINES: readonly (() => Dataset<unknown>)[] = [
  () =>
    Dataset.range(60).map(async (x, { random, index }) => {
      for (let i = 0; i < (x * 7) % 5; i++) await Promise.resolve();
      if (x % 13 === 5) throw new LeatError("data_loss", `no ${x}`);
      return x + random.int(100) + index;
    }, { numParallelCalls: AUTOTUNE }).shuffle(5).batch(4).prefetch(AUTOTUNE).repeat(2),
  () =>
    Dataset.range(12).interleave(
      (x, { Dataset }) => Dataset.range(x).map((y) => Promise.resolve(10 * x + y)),
      { cycleLength: 3, numParallelCalls: AUTOTUNE },
    ).filter(async (x) => {
      for (let i = 0; i < x % 4; i++) await Promise.resolve();
      return x % 3 !== 0;
    }, { numParallelCalls: AUTOTUNE }).prefetch(AUTOTUNE).batch(3),
];

Deno.test("random decisions of the tuner change nothing in the stream or its checkpoints", async () => {
  for (const [number, pipeline] of PIPELINES.entries()) {
    const dataset = pipeline().withOptions({ seed: 5 });
    const expected = await outcomesOf(openIterator(dataset.node));
    for (let run = 0; run < 12; run++) {
      const random = new RandomStream(run, ["decisions"]);
      let changes = 0;
      const tuningPolicy = (knobs: readonly Knob[]) => {
        for (const knob of knobs) {
          knob.value = knob.min + random.int(Math.min(20, knob.max) - knob.min + 1);
          changes++;
        }
      };
      const before = 3 + run;
      await using iterator = openIterator(dataset.node, { tuningPolicy });
      const first = await outcomesOf(iterator, before);
      const state = await iterator.save();
      assertEquals([...first, ...await outcomesOf(iterator)], expected, `pipeline ${number}`);
      await using other = openIterator(dataset.node, { tuningPolicy });
      await other.restore(state);
      assertEquals(
        [...first, ...await outcomesOf(other)],
        expected,
        `pipeline ${number}, restored`,
      );
      assert(changes > 0);
    }
  }
});
