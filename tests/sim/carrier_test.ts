/**
 * The simulated carrier in the conformance suite: without faults it keeps every promise of a
 * carrier; with loss, the promises that do not depend on delivery.
 */
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import { Counters } from "../../sim/engine/counters.ts";
import { SimDisk } from "../../sim/engine/disk.ts";
import { FaultPoints } from "../../sim/faults/fault_points.ts";
import { Life } from "../../sim/engine/life.ts";
import type { LinkEnd } from "../../sim/engine/link.ts";
import { SimNetwork } from "../../sim/engine/network.ts";
import { type FaultOptions, NO_FAULTS } from "../../sim/faults/options.ts";
import { SimRandom } from "../../sim/engine/random.ts";
import { Scheduler } from "../../sim/engine/scheduler.ts";
import { Trace } from "../../sim/engine/trace.ts";
import { SimWorld } from "../../sim/world.ts";
import { WORKLOAD_FAULTS } from "../../sim/workloads/workload.ts";
import { assert } from "../assert.ts";
import { conformance } from "../transport/conformance.ts";
import type { CarrierUnderTest } from "../transport/conformance_lib.ts";

/** Virtual time in which everything in transit arrives, in ms. */
const SETTLE_MS = 100;

let seeds = 0n;

function simulated(name: string, faults: FaultOptions): CarrierUnderTest {
  const random = new SimRandom(++seeds);
  const scheduler = new Scheduler();
  const counters = new Counters();
  const lives = {
    near: new Life(scheduler, "near", 1),
    far: new Life(scheduler, "far", 1),
  };
  const worldOf = (life: Life) =>
    new SimWorld({
      scheduler,
      life,
      random: random.fork(life.node),
      disk: new SimDisk({ random, counters, faults: () => faults }),
      faultPoints: new FaultPoints(random, counters, 0),
      driftPpm: 0,
      onLog: () => {},
    });
  const run = async <T>(promise: Promise<T>): Promise<T> => {
    let isSettled = false;
    promise.then(() => isSettled = true, () => isSettled = true);
    await scheduler.run({ until: () => isSettled, timeMaxMs: 3_600_000 });
    return await promise;
  };
  let networks = 0;
  return {
    name,
    worlds: [worldOf(lives.near), worldOf(lives.far)],
    overtakes: false,
    largeBytes: 20_000_000,
    run,
    settle: () => run(new Promise((resolve) => lives.near.after(SETTLE_MS, "settle", resolve))),
    close: () => Promise.resolve(),
    async join(near: NodeId, far: NodeId, limits = {}) {
      const network = new SimNetwork({
        scheduler,
        random: random.fork(`network ${++networks}`),
        trace: new Trace(),
        counters,
        faults,
        limits,
      });
      const accepted = Promise.withResolvers<Link>();
      network.listen(lives[far.node as keyof typeof lives], far, accepted.resolve);
      const connector = network.connector(lives[near.node as keyof typeof lives]);
      const dialled = await connector.connect(far.node, near);
      return {
        near: dialled,
        far: await accepted.promise,
        cut: () => (dialled as LinkEnd).sever(),
      };
    },
  };
}

conformance("simulated", () => Promise.resolve(simulated("simulated", NO_FAULTS)));

const PROMISED_IN_SPITE_OF_LOSS = new Set([
  "a repeated ask gets no second turn",
  "closed settles every ask",
  "close tells both ends why, once",
]);
const LOSSY = { ...WORKLOAD_FAULTS, connectFailureProbability: 0 };

conformance(
  "simulated, lossy",
  () => Promise.resolve(simulated("lossy", LOSSY)),
  (scenario) => PROMISED_IN_SPITE_OF_LOSS.delete(scenario),
);

Deno.test("the promises listed as independent of loss are in the suite", () => {
  assert(PROMISED_IN_SPITE_OF_LOSS.size === 0, [...PROMISED_IN_SPITE_OF_LOSS].join(", "));
});
