/**
 * Tests in virtual time: the clock moves only when everything is at rest, and then to the next
 * timer. A busy machine changes nothing, and an hour takes no time.
 *
 * @example
 * ```ts ignore
 * testInVirtualTime("a node stops after a minute", async (time) => {
 *   const system = new ActorSystem({ node: "a", world: time.world("a") });
 *   await time.sleep(60_000);
 *   await system.stop();
 * });
 * ```
 */
import type { World } from "../../actors/runtime/world.ts";
import { SimCluster } from "../../sim/engine/cluster.ts";

/** Maximum virtual time of a test: one day. */
const TIME_MAX_MS = 86_400_000;

/** The clock of one test, and the worlds of its nodes. */
export class VirtualTime {
  /** Nodes that simulated links join, for tests that want more than a clock. */
  readonly cluster: SimCluster;

  constructor(cluster: SimCluster) {
    this.cluster = cluster;
  }

  /** Virtual time since the test began, in ms. */
  get nowMs(): number {
    return this.cluster.scheduler.nowUs / 1_000;
  }

  /** A world in this time, with random numbers that depend on its name alone. */
  world(name: string): World {
    return this.cluster.addNode(name, () => {}).world;
  }

  /** Resolves after that much virtual time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.cluster.after(ms, "sleep", resolve));
  }

  /** Waits until `look` returns a result, and returns that; it looks each millisecond. */
  readonly until = async <T>(look: () => T): Promise<Exclude<T, false | undefined>> => {
    for (;;) {
      const found = look();
      if (found !== false && found !== undefined) return found as Exclude<T, false | undefined>;
      await this.sleep(1);
    }
  };
}

/**
 * Runs a function in virtual time. It may wait for actors, timers and promises of this time, but
 * not for a real file, socket, thread or timer.
 *
 * @throws LeatError `failed_precondition` if it waits and no event is left, and `deadline_exceeded`
 * if it takes longer than a day; otherwise the function's own error.
 */
export async function runInVirtualTime(run: (time: VirtualTime) => Promise<void>): Promise<void> {
  const cluster = new SimCluster({ seed: 1n, readable: true });
  let ended = false;
  const outcome = Promise.try(() => run(new VirtualTime(cluster))).finally(() => ended = true);
  // It is awaited below; until then a failure must not become an unhandled rejection.
  outcome.catch(() => {});
  await cluster.run({ until: () => ended, timeMaxMs: TIME_MAX_MS });
  await outcome;
}

/** Registers a test that runs in virtual time, see {@linkcode runInVirtualTime}. */
export function testInVirtualTime(name: string, test: (time: VirtualTime) => Promise<void>): void {
  Deno.test(name, () => runInVirtualTime(test));
}
