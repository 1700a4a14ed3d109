/**
 * What it costs that a function on a confined thread can be ended: the same pipelines on threads that
 * are not confined, where it cannot.
 *
 * @module
 */

import type { RunnerFactory } from "../actors/worker/runner.ts";
import { LeatError } from "../core/error.ts";
import { Dataset } from "../mod.ts";
import { RunnerThreads } from "../world/runner_threads.ts";
import { ConfinedRunners } from "../world/sandbox/confined_runners.ts";
import { sandboxGrants } from "../world/sandbox/grants.ts";
import { type Load, pipelinedLoad } from "./bare/load.ts";
import type { Bench } from "./lib/bench.ts";

/** As many as a task asks for ahead of its clients, and one that waits. */
const IN_FLIGHT = 3;

const numbers = Dataset.range(Number.MAX_SAFE_INTEGER);
const tiny = (x: number) => x + 1;
const busy = (x: number) => {
  for (let i = 0; i < 100_000; i++) x = (x * 31 + i) | 0;
  return x;
};

export const benches: Bench[] = [
  bench("a tiny function an element", numbers.map(tiny), 0.4),
  bench(
    "an async one, four at once",
    numbers.map(async (x) => await x, { numParallelCalls: 4 }),
    0.4,
  ),
  bench("a function of 0.1 ms an element", numbers.map(busy), 0.5),
  bench("batches of 1,000 calls", numbers.map(tiny).batch(1_000), 0.5),
];

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

function open(runners: RunnerFactory, graph: Uint8Array): Load {
  const settings = { graph, seed: "0000000000000007", epoch: 0, splits: false, shared: false };
  const runner = runners.start(settings, {
    next: () => Promise.resolve(null),
    total: () => Promise.resolve(0),
  });
  return pipelinedLoad(IN_FLIGHT, async () => {
    const { kind } = await runner.next();
    if (kind !== "element") throw new LeatError("internal", `an element was expected, not ${kind}`);
    return 1;
  }, async () => {
    runner.dispose();
    await runners.close();
  });
}
