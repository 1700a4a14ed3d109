/** Pacing, by a clock that only the pipeline's functions advance. */

import { assert } from "../../assert.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";

/** Measures how long the thread is held, by its own clock. */
class MeasuringHost extends DenoHost {
  elapsedMs = 0;
  /** The length of each stretch between two turns of the event loop. */
  readonly stretchesMs: number[] = [];
  #startedAtMs = 0;

  override nowMs(): number {
    return this.elapsedMs;
  }

  override async yield(): Promise<void> {
    this.stretchesMs.push(this.elapsedMs - this.#startedAtMs);
    await super.yield();
    this.#startedAtMs = this.elapsedMs;
  }
}

/** The stretches while a batch is made of elements that take that long. */
async function stretchesOf(tookMs: (x: number) => number, count: number): Promise<number[]> {
  const host = new MeasuringHost();
  const dataset = Dataset.range(count).map((x) => {
    host.elapsedMs += tookMs(x);
    return x;
  }).filter((x) => x >= 0).batch(count);
  await using iterator = openIterator(dataset.node, { host });
  await iterator.next();
  return host.stretchesMs;
}

Deno.test("elements that are suddenly a thousand times slower do not block the thread", async () => {
  const stretchesMs = await stretchesOf((x) => x < 50_000 ? 0.001 : 1.5, 50_100);
  assert(stretchesMs.length > 20);
  assert(Math.max(...stretchesMs) < 20, `${Math.max(...stretchesMs)} ms`);
  // Once the pacer knows that they are slow, it yields every few elements.
  assert(Math.max(...stretchesMs.slice(-15)) <= 6, `${stretchesMs.slice(-15)} ms`);
});

Deno.test("batches of elements that become slow do not block the thread where the event loop runs between them", async () => {
  const host = new MeasuringHost();
  const dataset = Dataset.range(4_800).map((x) => {
    host.elapsedMs += x < 3_600 ? 0.00001 : 1.5;
    return x;
  }).batch(60);
  await using iterator = openIterator(dataset.node, { host });
  const heldMs: number[] = [];
  for (let batch = 0; batch < 80; batch++) {
    const startedAtMs = host.elapsedMs;
    const next = iterator.next();
    heldMs.push(host.elapsedMs - startedAtMs);
    await next;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert(Math.max(...heldMs.slice(68)) <= 6, `${heldMs}`);
});

Deno.test("elements that take no time do not yield to the event loop", async () => {
  // The call of the consumer notes when the event loop has run.
  assert((await stretchesOf(() => 0.00001, 50_000)).length === 1);
});

Deno.test("a loop whose steps let the event loop run gets its element before anything else runs", async () => {
  const host = new MeasuringHost();
  await using iterator = openIterator(Dataset.range(10).node, { host });
  for (let step = 0; step < 10; step++) {
    let othersRan = false;
    setImmediate(() => othersRan = true);
    await iterator.next();
    assert(!othersRan, `step ${step}`);
    host.elapsedMs += 10;
    await new Promise((resolve) => setImmediate(resolve));
  }
});

Deno.test("a loop whose steps hold the thread lets the event loop run once a slice", async () => {
  const host = new MeasuringHost();
  await using iterator = openIterator(Dataset.range(10).node, { host });
  for (let step = 0; step < 10; step++) {
    await iterator.next();
    host.elapsedMs += 10;
  }
  assert(host.stretchesMs.length >= 3, `${host.stretchesMs}`);
});
