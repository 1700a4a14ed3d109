/** Parallel calls: how many, in which order, and what happens to them. */

import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../../assert.ts";
import { openIterator } from "../../../../data/dataset_iterator.ts";
import { AUTOTUNE, Dataset, type DatasetOptions, LeatError, udf } from "../../../../mod.ts";
import { PARALLEL_CALLS_RANGE } from "../../../../data/parallelism.ts";
import { DenoHost } from "../../../../platform/deno_host.ts";
import { collect, collectWithErrors, rounds } from "../../lib/collect.ts";

interface How {
  readonly numParallelCalls: number;
  readonly deterministic?: boolean;
}

/** The operators that call functions; each gives its numbers unchanged. */
const OPERATORS: Record<
  string,
  (input: Dataset<number>, fn: (x: number) => Promise<unknown>, how: How) => Dataset<unknown>
> = {
  map: (input, fn, how) => input.map(async (x) => (await fn(x), x), how),
  filter: (input, fn, how) => input.filter(async (x) => (await fn(x), true), how),
};

const turn = () => new Promise((resolve) => setTimeout(resolve));

/** Counts the calls in flight, each until it is released. */
class Calls {
  begun = 0;
  most = 0;
  readonly #inFlight: (() => void)[] = [];

  readonly call = (): Promise<void> => {
    this.begun++;
    return new Promise<void>((resolve) => {
      this.#inFlight.push(resolve);
      this.most = Math.max(this.most, this.#inFlight.length);
    });
  };

  get inFlight(): number {
    return this.#inFlight.length;
  }

  /**
   * Waits for that many: a pipeline may yield to the event loop before its first call, and between
   * two.
   */
  async begin(count: number): Promise<void> {
    while (this.inFlight < count) await turn();
  }

  /** Releases the call at `index` of those in flight. */
  async finish(index = 0): Promise<void> {
    this.#inFlight.splice(index, 1)[0]?.();
    await rounds(2);
  }
}

for (const [name, apply] of Object.entries(OPERATORS)) {
  for (const numParallelCalls of [1, 3, 8, AUTOTUNE]) {
    const limit = numParallelCalls === AUTOTUNE ? PARALLEL_CALLS_RANGE.initial : numParallelCalls;

    Deno.test(`${name} has at most ${numParallelCalls} calls in flight, from the first element on`, async () => {
      const calls = new Calls();
      const dataset = apply(Dataset.range(20), calls.call, { numParallelCalls })
        .withOptions({ autotune: false });
      await using iterator = dataset.iterator();
      const first = iterator.next();
      await calls.begin(limit);
      assertEquals(calls.inFlight, limit);
      await calls.finish();
      assertEquals(await first, { done: false, value: 0 });
      let isOver = false;
      const rest = Array.fromAsync(iterator).finally(() => isOver = true);
      while (!isOver) {
        if (calls.inFlight > 0) await calls.finish(calls.begun % calls.inFlight);
        else await turn();
      }
      assertEquals(await rest, Array.from({ length: 19 }, (_, i) => i + 1));
      assertEquals(calls.most, limit);
    });
  }

  Deno.test(`${name} starts no call once it is disposed, and drops those in flight`, async () => {
    const calls = new Calls();
    const waiting = Dataset.range(50).map(async (x) => (await rounds(1), x));
    for (const input of [Dataset.range(50), waiting, waiting.prefetch(4)]) {
      const iterator = apply(input, calls.call, { numParallelCalls: 3 }).prefetch(2).iterator();
      const first = iterator.next();
      await calls.begin(1);
      await calls.finish();
      await first;
      const pending = iterator.next();
      const returned = iterator.return();
      const { begun } = calls;
      await returned;
      for (let i = 0; i < 4; i++) await calls.finish();
      assertEquals(calls.begun, begun);
      assertEquals((await pending).done, true);
    }
  });

  Deno.test(`${name} keeps order by its own option, or the pipeline's`, async () => {
    const keepsOrder = async (deterministic?: boolean, ...options: DatasetOptions[]) => {
      const calls = new Calls();
      let dataset = apply(Dataset.range(2), calls.call, {
        numParallelCalls: 2,
        ...deterministic === undefined ? {} : { deterministic },
      });
      for (const option of options) dataset = dataset.withOptions(option);
      const elements = collect(dataset.flatMap((x, { Dataset }) => Dataset.from([x])));
      await calls.begin(2);
      await calls.finish(1);
      await calls.finish();
      return (await elements)[0] === 0;
    };
    const [yes, no] = [{ deterministic: true }, { deterministic: false }];
    assertEquals(await keepsOrder(), true);
    assertEquals(await keepsOrder(false), false);
    assertEquals(await keepsOrder(undefined, no), false);
    assertEquals(await keepsOrder(true, no), true);
    assertEquals(await keepsOrder(false, yes), false);
    assertEquals(await keepsOrder(undefined, no, yes), true);
    assertEquals(await keepsOrder(undefined, yes, no), false);
    assertEquals(await keepsOrder(undefined, no, { seed: 1 }), false);
  });

  Deno.test(`an error of ${name} loses only its element while calls overlap`, async () => {
    const dataset = apply(Dataset.range(7), async (x) => {
      await rounds(x % 3);
      if (x % 3 === 1) throw new LeatError("aborted", `no ${x}`);
    }, { numParallelCalls: 3 });
    assertEquals(await collectWithErrors(dataset), [
      0,
      "error aborted",
      2,
      3,
      "error aborted",
      5,
      6,
    ]);
  });

  Deno.test(`${name} refuses invalid numbers of calls and orders`, () => {
    const refuse = (how: unknown, named: string) => {
      const error = assertThrows(
        () => apply(Dataset.range(2), rounds, how as How),
        LeatError,
      );
      assertEquals(error.code, "invalid_argument");
      assertStringIncludes(error.message, `${name}: ${named}`);
    };
    refuse({ numParallelCalls: 0 }, "numParallelCalls");
    refuse({ numParallelCalls: 2.5 }, "numParallelCalls");
    refuse({ numParallelCalls: 2, deterministic: "yes" }, "deterministic");
  });
}

Deno.test("withOptions refuses an invalid order", () => {
  const options = { deterministic: 1 } as unknown as DatasetOptions;
  const error = assertThrows(() => Dataset.range(2).withOptions(options), LeatError);
  assertStringIncludes(error.message, "withOptions: deterministic");
});

Deno.test("order applies to the whole pipeline, including datasets made by functions", async () => {
  const calls = new Calls();
  const elements = collect(
    Dataset.range(1).flatMap((_, { Dataset }) =>
      Dataset.range(2).map((x) => calls.call().then(() => x), { numParallelCalls: 2 })
    ).withOptions({ deterministic: false }),
  );
  await calls.begin(2);
  await calls.finish(1);
  await calls.finish();
  assertEquals(await elements, [1, 0]);
});

Deno.test("filter with numParallelCalls that passes nothing lets timers tick and ends at once", async () => {
  for (const predicate of [() => false, () => Promise.resolve(false)]) {
    let calls = 0;
    const barren = Dataset.range(Number.MAX_SAFE_INTEGER).filter((_) => (calls++, predicate()), {
      numParallelCalls: 3,
    });
    const iterator = barren.iterator();
    const pending = iterator.next();
    await rounds(3);
    await iterator.return();
    const atOnce = calls;
    await rounds(3);
    assertEquals(calls, atOnce);
    assert(atOnce > 3);
    assertEquals((await pending).done, true);
  }
});

Deno.test("filter keeps parallel results separate, and names invalid ones", async () => {
  const dataset = Dataset.range(6).filter(async (x) => {
    await rounds(x % 2);
    return x === 4 ? "perhaps" as unknown as boolean : x % 3 !== 0;
  }, { numParallelCalls: 4 });
  assertEquals(await collectWithErrors(dataset), [1, 2, "error invalid_argument", 5]);
});

/** Modules do not exist before `load()`. */
class SlowHost extends DenoHost {
  readonly #gate = Promise.withResolvers<void>();

  load(): void {
    this.#gate.resolve();
  }

  override async importModule(url: string): Promise<Record<string, unknown>> {
    await this.#gate.promise;
    return await super.importModule(url);
  }
}

Deno.test("calls that wait for their function to load are not started after disposal", async () => {
  const url = import.meta.resolve("../../lib/functions.ts");
  const { counted } = await import(url) as { counted: { calls: number } };
  const fn = udf<(x: number) => number>(url, "count");
  for (const how of [{}, { numParallelCalls: 3 }]) {
    const host = new SlowHost();
    const iterator = openIterator(Dataset.range(9).map(fn, how).node, { host });
    const pending = iterator.next();
    await rounds(1);
    await iterator.return();
    host.load();
    await rounds(5);
    assertEquals((await pending).done, true);
  }
  assertEquals(counted.calls, 0);
});

Deno.test("iterator({ needsOrder }) keeps the order of datasets that functions make, and in spite of withOptions", async () => {
  const firstLast = async (x: number) => {
    if (x === 0) await new Promise((resolve) => setTimeout(resolve));
    return x;
  };
  const free = { numParallelCalls: 2, deterministic: false };
  const made = Dataset.range(1).flatMap(() => Dataset.range(2).map(firstLast, free));
  const set = Dataset.range(2).map(firstLast, { numParallelCalls: 2 })
    .withOptions({ deterministic: false });
  for (const dataset of [made, set]) {
    assertEquals(await Array.fromAsync(dataset.iterator()), [1, 0]);
    assertEquals(await Array.fromAsync(dataset.iterator({ needsOrder: true })), [0, 1]);
  }
});
