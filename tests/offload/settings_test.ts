/** Options of the whole pipeline, for the elements that the trainer prepares of an offloaded part. */
import { openIterator } from "../../data/dataset_iterator.ts";
import { Dataset, type DatasetOptions, DenoHost } from "../../mod.ts";
import { FunctionPool } from "../../platform/threads/function_pool.ts";
import { assert, assertEquals } from "../assert.ts";
import { readOutcomes } from "../data/lib/outcomes.ts";

/** Counts the functions that are to run on it. */
class CountingPool extends FunctionPool {
  opened = 0;
  override get isWarm(): boolean {
    return true;
  }

  override open(...args: Parameters<FunctionPool["open"]>) {
    this.opened++;
    return super.open(...args);
  }
}

/** A host on which each call takes long. */
class LongCallsHost extends DenoHost implements AsyncDisposable {
  override readonly threads = new CountingPool(2);
  #nowMs = 0;

  override nowMs(): number {
    return this.#nowMs++;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.threads.close();
  }
}

const SPLITS = 256;
/** Enough that a test never reaches the end of one. */
const LONG_SPLIT = 1 << 20;

/**
 * Whether a function is moved to threads, at the latest for the `batchesMax`th batch. All is prepared
 * here, in splits of `perSplit` elements.
 */
async function moves(
  options: DatasetOptions,
  { perSplit = LONG_SPLIT, isAfter = false, batchesMax = 100 } = {},
): Promise<boolean> {
  await using host = new LongCallsHost();
  const batches = Dataset.range(SPLITS)
    .flatMap((x, { Dataset, perSplit }) => Dataset.range(perSplit * x, perSplit * (x + 1)), {
      captures: { perSplit },
    })
    .map((x) => x, { numParallelCalls: 2 }).batch(8);
  // With a ratio of 0 and a control the conditional operator runs, and nothing is offloaded.
  const offload = {
    service: "ws://127.0.0.1:1",
    plan: { candidate: "p'3", ratio: 0 },
    adapt: true,
  };
  const dataset = isAfter
    ? batches.offload(offload).withOptions(options)
    : batches.withOptions(options).offload(offload);
  await using iterator = openIterator(dataset.node, { host });
  for (let at = 0; at < batchesMax && host.threads.opened === 0; at++) {
    assertEquals((await readOutcomes(iterator, 1)).length, 1);
    // The code for threads is loaded meanwhile.
    await new Promise((resolve) => setTimeout(resolve));
  }
  return host.threads.opened > 0;
}

Deno.test("offload moves functions to threads here as the pipeline's options say", async () => {
  assert(await moves({}, { batchesMax: LONG_SPLIT / 8 }));
  for (const isAfter of [false, true]) {
    assertEquals(await moves({ threads: false }, { isAfter }), false);
    assertEquals(await moves({ autotune: { cpuBudget: 1 } }, { isAfter }), false);
    // Without measuring calls: none of these splits has enough.
    assert(await moves({ threads: true }, { isAfter, perSplit: 4 }));
  }
});

Deno.test("offload moves functions to threads here where each split has few calls", async () => {
  // A measurement takes 28 calls.
  const perSplit = 16;
  assert(await moves({}, { perSplit, batchesMax: SPLITS * perSplit / 8 }));
});
