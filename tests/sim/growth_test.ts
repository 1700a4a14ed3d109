/**
 * How work grows with the size of a cluster. Goal: per worker, the dispatcher's state accesses and
 * messages do not depend on the number of workers. Method: modelled clusters of two sizes, in which
 * all accesses to the dispatcher's state are counted; no clock is read.
 */
import { ModelledCluster, type ModelledOptions } from "../../sim/model/modelled_cluster.ts";
import { Looks } from "../actors/dispatcher/looks.ts";
import { assert } from "../assert.ts";

const SMALL = 40;
const LARGE = 4 * SMALL;
/** Tolerated growth, for one-time work and random variation. */
const GROWTH_MAX = 1.05;
/** Long enough to start, and for some heartbeats of each trainer. */
const RUN_MS = 12_000;

/** The work of a run, per worker. */
interface Work {
  /** Accesses to the dispatcher's state. */
  readonly looks: number;
  readonly events: number;
  /** Messages that the dispatcher handled. */
  readonly handled: number;
}

const SLOW = { batchMs: 24_000, stepMs: 3_000, batchesPerSplit: 1 };

Deno.test("growth: pools of workers with their own jobs take as much work for each worker in a cluster four times as large", async () => {
  const work = (workers: number) =>
    workOf({ ...SLOW, workers, trainers: workers / 5, jobs: workers / 10, pools: workers / 20 });
  expectLinear(await work(SMALL), await work(LARGE));
});

Deno.test("growth: one job on all workers takes as much work for each worker in a cluster four times as large", async () => {
  const work = (workers: number) => workOf({ ...SLOW, workers, trainers: 2 });
  expectLinear(await work(SMALL), await work(LARGE));
});

function expectLinear(small: Work, large: Work): void {
  for (const what of ["looks", "events", "handled"] as const) {
    const growth = large[what] / small[what];
    const told = `${what} per worker: ${small[what].toFixed(1)}, then ${large[what].toFixed(1)}`;
    assert(growth < GROWTH_MAX, told);
  }
}

async function workOf(options: ModelledOptions): Promise<Work> {
  let handled = 0;
  using looks = new Looks();
  const cluster = new ModelledCluster({
    ...options,
    wrapDispatcher: (actor) => ({
      ...actor,
      handlers: new Proxy(actor.handlers, {
        get: (handlers, method) => {
          handled++;
          return Reflect.get(handlers, method);
        },
      }),
    }),
  });
  await cluster.runFor(RUN_MS);
  assert(cluster.counts.batches > 0, "nothing was read");
  const { workers } = options;
  return {
    looks: looks.count / workers,
    events: cluster.cluster.scheduler.steps / workers,
    handled: handled / workers,
  };
}
