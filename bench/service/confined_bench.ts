/**
 * Measures the cost of running functions in a confined process: compares it with unconfined threads.
 */

import type { RunnerFactory } from "../../actors/worker/runner/runner.ts";
import { LeatError } from "../../core/error.ts";
import { Dataset } from "../../mod.ts";
import { RunnerThreads } from "../../platform/threads/runner_threads.ts";
import { ConfinedRunners } from "../../platform/sandbox/confined_runners.ts";
import { sandboxGrants } from "../../platform/sandbox/grants.ts";
import { Payload } from "../../transport/payload.ts";
import { type Load, pipelinedLoad, sequentialLoad } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

/** As many as a task has: its prefetched elements, and one that waits. */
const IN_FLIGHT = 3;

const numbers = Dataset.range(Number.MAX_SAFE_INTEGER);
const tiny = (x: number) => x + 1;
const busy = (x: number) => {
  for (let i = 0; i < 100_000; i++) x = (x * 31 + i) | 0;
  return x;
};

export const benches: Bench[] = [
  bench("a tiny function an element", numbers.map(tiny), 0.3),
  bench(
    "an async one, four at once",
    numbers.map(async (x) => await x, { numParallelCalls: 4 }),
    0.3,
  ),
  bench("a function of 0.1 ms an element", numbers.map(busy), 0.7),
  bench("batches of 1,000 calls", numbers.map(tiny).batch(1_000), 0.5),
  bench("batches of 1 MB", numbers.map(tiny).batch(131_072), 0.7),
  {
    name: "confined: first element of a worker that starts, against unconfined",
    unit: "ms",
    isDuration: true,
    floor: 0.1,
    bare: () => sequentialLoad(() => firstElement(new RunnerThreads())),
    leat: () => sequentialLoad(() => firstElement(new ConfinedRunners(sandboxGrants({})))),
  },
];

/** Returns the time to the first element, in ms, including the start of a thread or process. */
async function firstElement(runners: RunnerFactory): Promise<number> {
  const startedMs = performance.now();
  const runner = runners.start(settingsOf(numbers.map(tiny).serialize()), NO_SPLITS);
  await runner.next();
  const tookMs = performance.now() - startedMs;
  runner.dispose();
  await runners.close();
  return tookMs;
}

function bench(name: string, dataset: Dataset<unknown>, floor: number): Bench {
  const graph = dataset.serialize();
  return {
    name: `confined: ${name}, against unconfined`,
    unit: "elements/s",
    floor,
    bare: () => open(new RunnerThreads(), graph),
    leat: () => open(new ConfinedRunners(sandboxGrants({})), graph),
  };
}

const NO_SPLITS = { next: () => Promise.resolve(null), total: () => Promise.resolve(0) };

function settingsOf(graph: Uint8Array) {
  return { graph, seed: "0000000000000007", epoch: 0, splits: false, shared: false };
}

function open(runners: RunnerFactory, graph: Uint8Array): Load {
  const runner = runners.start(settingsOf(graph), NO_SPLITS);
  const recycle = (buffer: ArrayBuffer) => runner.recycle?.(buffer);
  return pipelinedLoad(IN_FLIGHT, async () => {
    const outcome = await runner.next();
    const { kind } = outcome;
    if (kind !== "element") throw new LeatError("internal", `an element was expected, not ${kind}`);
    // A task releases an element's frame when its client has the element, and the runner uses it again.
    new Payload(outcome.frame, { isAlone: true, recycle }).release();
    return 1;
  }, async () => {
    runner.dispose();
    await runners.close();
  });
}
