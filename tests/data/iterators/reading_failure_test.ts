/**
 * Failures of reading, in contrast to errors of elements: who passes them on, what users are told,
 * and that a checkpoint continues from the position before them.
 */
import { ElementIterator, END, type Pulled } from "../../../data/iterator.ts";
import type { IteratorContext } from "../../../data/context.ts";
import { DatasetNode } from "../../../data/node.ts";
import type { ElementSpec } from "../../../data/elements/spec.ts";
import { ReadingFailure } from "../../../data/iterators/reading_failure.ts";
import { Dataset, LeatError } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { rounds } from "../lib/collect.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../lib/outcomes.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const COUNT = 7;
const GONE = new LeatError("unavailable", "its service is gone");

/** How a source behaves: synchronous or not, and where reading fails. */
interface Reading {
  readonly waits: boolean;
  readonly failsAt: number;
  /** Whether elements can be recomputed. */
  readonly hasTokens?: boolean;
}

/** Gives the numbers below `COUNT`, with an error in place of 2, from a reader that may be lost. */
function lossy(reading: Reading): Dataset<number> {
  return new Dataset<number>(new LossyNode(reading));
}

class LossyNode extends DatasetNode {
  override readonly division = "whole";
  readonly #reading: Reading;

  constructor(reading: Reading) {
    super("lossy", []);
    this.#reading = reading;
  }

  override get attributes(): Record<string, unknown> {
    return {};
  }

  override get elementSpec(): ElementSpec {
    return undefined;
  }

  override get cardinality(): number {
    return COUNT;
  }

  override makeIterator(_context: IteratorContext): ElementIterator {
    return new LossyIterator(this.#reading);
  }
}

class LossyIterator extends ElementIterator {
  readonly #reading: Reading;
  #at = 0;

  constructor(reading: Reading) {
    super();
    this.#reading = reading;
  }

  override next(): Pulled<unknown> {
    return this.#reading.waits ? rounds(1).then(() => this.#next()) : this.#next();
  }

  #next(): unknown {
    if (this.disposed || this.#at === COUNT) return END;
    if (this.#at === this.#reading.failsAt) throw ReadingFailure.of(GONE);
    const at = this.#at++;
    if (at === 2) throw new LeatError("data_loss", "no 2");
    return at;
  }

  override token(): number | undefined {
    return this.#reading.hasTokens === true ? this.#at - 1 : undefined;
  }

  override again(token: unknown): unknown {
    return token;
  }

  protected override saveState(): Promise<unknown> {
    return Promise.resolve({ at: this.#at });
  }

  protected override restoreState(state: unknown): Promise<void> {
    this.#at = (state as { at: number }).at;
    return Promise.resolve();
  }

  protected override release(): void {}
}

const later = async (x: number) => {
  await rounds(1);
  return x;
};

const PIPELINES: Record<string, (reading: Reading) => Dataset<unknown>> = {
  prefetch: (r) => lossy(r).prefetch(3),
  "prefetch over repeat over prefetch": (r) => lossy(r).prefetch(2).repeat(2).prefetch(20),
  repeat: (r) => lossy(r).repeat(2),
  concatenate: (r) => lossy(r).concatenate(lossy({ ...r, failsAt: Infinity })).prefetch(3),
  map: (r) => lossy(r).map((x) => x + 1),
  "map with numParallelCalls": (r) => lossy(r).map(later, { numParallelCalls: 3 }),
  "filter with numParallelCalls": (r) =>
    lossy(r).filter(async (x) => await later(x) % 4 !== 3, { numParallelCalls: 3 }),
  enumerate: (r) => lossy(r).enumerate(),
  batch: (r) => lossy(r).batch(3),
  rebatch: (r) => lossy(r).batch(2).rebatch(3),
  unbatch: (r) => lossy(r).batch(2).unbatch(),
  shuffle: (r) => lossy(r).shuffle(3, { seed: 5 }),
  window: (r) => lossy(r).window(2),
  cache: (r) => lossy(r).cache(),
  "take and skip": (r) => lossy(r).skip(1).take(3),
  ignoreErrors: (r) => lossy(r).ignoreErrors({ maxErrors: 1 }),
  zip: (r) => Dataset.zip([Dataset.range(9).shuffle(3, { seed: 5 }), lossy(r), Dataset.range(9)]),
  "zip of two that are lost": (r) =>
    Dataset.zip([
      lossy({ ...r, failsAt: r.failsAt + 1 }),
      lossy(r),
      lossy({ ...r, waits: !r.waits, failsAt: Infinity }),
    ]).prefetch(2),
  "shuffle of a zip with datasets that are chosen": (r) => {
    const choices = Dataset.from([1, 0, 1, 1, 0, 1, 0, 0]);
    const chosen = Dataset.chooseFromDatasets([Dataset.range(9), Dataset.range(100, 109)], choices);
    return Dataset.zip([chosen, lossy({ ...r, hasTokens: true })]).shuffle(4, { seed: 5 });
  },
  flatMap: (r) => Dataset.range(2).flatMap(() => lossy(r)),
  "flatMap of what is lost": (r) => lossy(r).flatMap((x) => Dataset.range(x)),
  interleave: (r) =>
    Dataset.range(3).interleave(() => lossy(r), { cycleLength: 2, blockLength: 2 }),
  "interleave with numParallelCalls": (r) =>
    Dataset.range(3).interleave(() => lossy(r), {
      cycleLength: 2,
      blockLength: 2,
      numParallelCalls: 2,
    }),
  "interleave of what is lost, with numParallelCalls": (r) =>
    lossy(r).interleave((x) => Dataset.range(x), { cycleLength: 2, numParallelCalls: 3 }),
  sampleFromDatasets: (r) => Dataset.sampleFromDatasets([lossy(r), Dataset.range(5)], { seed: 3 }),
  chooseFromDatasets: (r) =>
    Dataset.chooseFromDatasets(
      [Dataset.range(9), lossy(r)],
      Dataset.from([0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 0]),
    ),
};

/**
 * Loses the reader of a pipeline's source at each position, and saves before every `next()` up to
 * the one that reports it, and after that.
 */
async function assertReadsOn(
  make: (reading: Reading) => Dataset<unknown>,
  comparable: (outcomes: Outcome[]) => Outcome[] = (outcomes) => outcomes,
): Promise<void> {
  for (const waits of [false, true]) {
    const whole = { waits, failsAt: Infinity };
    const wanted = comparable(await outcomesOf(make(whole).iterator()));
    const goesOnFrom = async (state: Uint8Array, before: readonly Outcome[], where: string) => {
      await using restored = make(whole).iterator();
      await restored.restore(state);
      const next = await readOutcomes(restored, 1);
      await using again = make(whole).iterator();
      await again.restore(await restored.save());
      for (const iterator of [restored, again]) {
        const found = [...before, ...next, ...await outcomesOf(iterator)];
        assertEquals(comparable(found), wanted, where);
      }
    };
    for (let failsAt = 0; failsAt < COUNT; failsAt++) {
      await using iterator = make({ waits, failsAt }).iterator();
      const before: Outcome[] = [];
      for (let isTold = false; !isTold;) {
        const where = `lost at ${failsAt}, waits: ${waits}, given: ${before.length}`;
        await rounds(8);
        await goesOnFrom(await iterator.save(), before, where);
        const [outcome] = await readOutcomes(iterator, 1);
        if (outcome === undefined) break; // it ended without having read so far
        isTold = "error" in outcome && outcome.error.startsWith(GONE.code);
        if (!isTold) before.push(outcome);
        else assertEquals(await iterator.next(), { done: true, value: undefined }, "told once");
      }
      await goesOnFrom(await iterator.save(), before, `told, lost at ${failsAt}, waits: ${waits}`);
    }
  }
}

for (const [name, make] of Object.entries(PIPELINES)) {
  Deno.test(`${name} saves the position before a read failure, never the failure`, async () => {
    await assertReadsOn(make);
  });
}

for (const numParallelReads of [1, 3]) {
  Deno.test(`files keep their order when reading their names fails, with ${numParallelReads} parallel reads`, async () => {
    await using temporary = await TempFolder.make();
    const folder = temporary.path;
    for (let i = 0; i < COUNT; i++) {
      const lines = Array.from({ length: i % 3 }, (_, line) => `${i} ${line}\n`);
      await Deno.writeTextFile(`${folder}/${i}`, lines.join(""));
    }
    await assertReadsOn((r) =>
      Dataset.textLines(lossy(r).map((x) => `${folder}/${x}`), { numParallelReads })
    );
  });
}

Deno.test("unordered parallel calls give everything read before a failure of reading", async () => {
  const slowly = async (x: number) => {
    await rounds(4 * (COUNT - x));
    return x;
  };
  const calls = lossy({ waits: false, failsAt: 5 })
    .map(slowly, { numParallelCalls: 8, deterministic: false });
  const outcomes = await outcomesOf(calls.iterator());
  const given = outcomes.flatMap((outcome) => "element" in outcome ? [outcome.element] : []);
  assertEquals(given.toSorted(), [0, 1, 3, 4]);
  const last = outcomes.at(-1)!;
  assert("error" in last && last.error.startsWith(GONE.code));
});

/** Datasets read in parallel, one of which is lost. */
const SIDE_BY_SIDE: Record<string, (reading: Reading, pulled: unknown[]) => Dataset<unknown>> = {
  "in a place": (r, pulled) => sideBySide(r, pulled, 3, (i) => Dataset.range(10 * i, 10 * i + 4)),
  "waiting for a place": (r, pulled) =>
    sideBySide(r, pulled, 1, (i) => Dataset.range(10 * i, 10 * i + 4)),
  "beside what waits": (r, pulled) =>
    sideBySide(r, pulled, 3, (i) => lossy(WHOLE).map((x) => 10 * i + x)),
  "instead of a dataset": (r, pulled) =>
    lossy(r).interleave((i) => noted(Dataset.range(10 * i, 10 * i + 4), pulled), OUT_OF_ORDER),
};

const WHOLE = { waits: true, failsAt: Infinity };
const OUT_OF_ORDER = { cycleLength: 3, numParallelCalls: 3, deterministic: false };

function sideBySide(
  reading: Reading,
  pulled: unknown[],
  cycleLength: number,
  other: (i: number) => Dataset<number>,
): Dataset<unknown> {
  const datasetOf = (i: number) => noted(i === 1 ? lossy(reading) : other(i), pulled);
  return Dataset.range(4).interleave(datasetOf, { ...OUT_OF_ORDER, cycleLength });
}

/** Records what its consumer has pulled. */
function noted(dataset: Dataset<number>, pulled: unknown[]): Dataset<number> {
  return dataset.map((x) => {
    pulled.push(x);
    return x;
  });
}

const sorted = (outcomes: Outcome[]) =>
  outcomes.map((outcome) => JSON.stringify(outcome)).toSorted()
    .map((text) => JSON.parse(text) as Outcome);

for (const [name, make] of Object.entries(SIDE_BY_SIDE)) {
  Deno.test(`unordered interleave gives everything read before a failure of reading ${name}`, async () => {
    for (const waits of [false, true]) {
      for (let failsAt = 0; failsAt < COUNT; failsAt++) {
        const pulled: unknown[] = [];
        const outcomes = await outcomesOf(
          make({ waits, failsAt }, pulled).ignoreErrors().iterator(),
        );
        await rounds(8); // what was being read has arrived
        const where = `lost at ${failsAt}, waits: ${waits}`;
        assertEquals(outcomes.at(-1), { error: `${GONE.code}: ${GONE.message}` }, where);
        const wanted = pulled.map((element) => ({ element }));
        assertEquals(sorted(outcomes.slice(0, -1)), sorted(wanted), where);
      }
    }
  });

  Deno.test(`unordered interleave continues from each position before a failure of reading ${name}`, async () => {
    await assertReadsOn((r) => make(r, []), sorted);
  });
}

Deno.test("unordered interleave reads no further after a failure of reading", async () => {
  for (const waits of [false, true]) {
    const dataset = Dataset.range(3)
      .interleave((i) => i === 1 ? lossy({ waits, failsAt: 1 }) : Dataset.counter(), OUT_OF_ORDER);
    await using iterator = dataset.iterator();
    const outcomes = await readOutcomes(iterator, 100_000);
    assertEquals(outcomes.at(-1), { error: `${GONE.code}: ${GONE.message}` });
    if (!waits) assert(outcomes.length < 20, `${outcomes.length} of endless datasets`);
  }
});

Deno.test("ReadingFailure: the user gets everything read before, then its reason, once", async () => {
  for (const waits of [false, true]) {
    const dataset = lossy({ waits, failsAt: 2 }).prefetch(4);
    await using iterator = dataset.iterator();
    const answers = await Promise.allSettled([1, 2, 3, 4, 5].map(() => iterator.next()));
    assertEquals(
      answers.map((answer) => answer.status === "rejected" ? answer.reason : answer.value),
      [
        { done: false, value: 0 },
        { done: false, value: 1 },
        GONE,
        { done: true, value: undefined },
        { done: true, value: undefined },
      ],
    );
    assert(await dataset.reduce(0, (a) => a).catch((error) => error === GONE));
  }
});

Deno.test("DatasetIterator.next waits for a restore that ends a failure of reading", async () => {
  const reading = { waits: false, failsAt: 4 };
  await using iterator = lossy(reading).ignoreErrors().iterator();
  for (const value of [0, 1, 3]) assertEquals(await iterator.next(), { done: false, value });
  await assertRejects(() => iterator.next(), LeatError, GONE.message);
  const state = await iterator.save();
  reading.failsAt = Infinity;
  const [, next] = await Promise.all([iterator.restore(state), iterator.next()]);
  assertEquals(next, { done: false, value: 4 });
});

Deno.test("ignoreErrors drops failed elements, but passes on failures of reading", async () => {
  for (const waits of [false, true]) {
    const dataset = lossy({ waits, failsAt: 5 }).ignoreErrors();
    await using iterator = dataset.iterator();
    for (const value of [0, 1, 3, 4]) assertEquals(await iterator.next(), { done: false, value });
    assertEquals(await assertRejects(() => iterator.next(), LeatError), GONE);
    assertEquals(iterator.stats()[0]!.errors, 1);
  }
});
