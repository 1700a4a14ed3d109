/**
 * Causes faults at random times: partitions, links clogged one by one, nodes that pause, are slow or
 * sleep, wall clocks that jump, and disks that are full for a while.
 */
import type { SimCluster } from "../engine/cluster.ts";
import type { SimNode } from "../engine/node.ts";
import type { SimRandom } from "../engine/random.ts";

/** Maximum time between two faults of one kind, in ms. */
const BETWEEN_MAX_MS = 2_000;

/** Causes faults from `start()` to `stop()`, as the cluster's fault options say. */
export class Nemesis {
  readonly #cluster: SimCluster;
  readonly #random: SimRandom;
  #active = false;

  constructor(cluster: SimCluster) {
    this.#cluster = cluster;
    this.#random = cluster.random.fork("nemesis");
  }

  start(): void {
    this.#active = true;
    const { partition, pauseMaxMs, wallClockStepMaxMs, diskFullMaxMs } =
      this.#cluster.network.faults;
    const { swizzleMaxMs, slowTurnMaxMs, slowForMaxMs, suspendMaxMs } =
      this.#cluster.network.faults;
    if (swizzleMaxMs > 0) {
      this.#again("swizzle", (rng) => this.#swizzle(rng, rng.between(0, swizzleMaxMs)));
    }
    if (slowTurnMaxMs > 0) {
      this.#again("slow turns", (rng) => {
        this.#someNode(rng)?.slowDown(rng.between(0, slowForMaxMs), slowTurnMaxMs);
      });
    }
    if (suspendMaxMs > 0) {
      this.#again(
        "suspend",
        (rng) => this.#someNode(rng)?.suspend(rng.between(0, suspendMaxMs)),
      );
    }
    if (partition !== "none") this.#again("partition", (rng) => this.#partition(rng));
    if (pauseMaxMs > 0) {
      this.#again("pause", (rng) => this.#someNode(rng)?.pause(rng.between(0, pauseMaxMs)));
    }
    if (diskFullMaxMs > 0) {
      this.#again("disk full", (rng) => {
        const node = this.#someNode(rng);
        if (node !== undefined) this.#fillDisk(node, rng.between(0, diskFullMaxMs));
      });
    }
    if (wallClockStepMaxMs > 0) {
      this.#again("clock step", (rng) => {
        const byMs = rng.between(-wallClockStepMaxMs, wallClockStepMaxMs);
        this.#someNode(rng)?.stepWallClock(byMs);
      });
    }
  }

  stop(): void {
    this.#active = false;
  }

  /** Repeats a kind of fault until `stop()`. */
  #again(what: string, strike: (rng: SimRandom) => void): void {
    const rng = this.#random.fork(what);
    const next = () => {
      this.#cluster.after(rng.between(0, BETWEEN_MAX_MS), what, () => {
        if (!this.#active) return;
        strike(rng);
        next();
      });
    };
    next();
  }

  #partition(rng: SimRandom): void {
    const { network, counters, trace, scheduler, nodes } = this.#cluster;
    const { partition, partitionSymmetric, partitionMaxMs } = network.faults;
    const alone = rng.int(nodes.length);
    const isInside = nodes.map((_, i) =>
      partition === "isolate_one" ? i === alone : rng.chance(0.5)
    );
    const cut = new Set<string>();
    for (const [i, from] of nodes.entries()) {
      for (const [j, to] of nodes.entries()) {
        if (isInside[i] && !isInside[j]) cut.add(`${from.name}>${to.name}`);
        if (partitionSymmetric && !isInside[i] && isInside[j]) cut.add(`${from.name}>${to.name}`);
      }
    }
    counters.count("partition");
    trace.mark(scheduler.nowUs, `partition: ${[...cut].join(" ")}`);
    network.partition(cut);
    this.#cluster.after(rng.between(0, partitionMaxMs), "partition ends", () => {
      if (this.#active) network.partition(new Set());
    });
  }

  /**
   * Clogs some nodes or directions one by one, and frees them in another order, so that waiting
   * messages arrive in an unusual order.
   */
  #swizzle(rng: SimRandom, durationMs: number): void {
    const { network, counters, nodes } = this.#cluster;
    const names = nodes.map(({ name }) => name);
    const directions = names.flatMap((from) =>
      names.filter((to) => to !== from).map((to) => `${from}>${to}`)
    );
    counters.count("swizzled");
    for (const scope of rng.chance(0.5) ? names : directions) {
      if (rng.chance(0.5)) continue;
      this.#cluster.after(rng.between(0, durationMs / 2), "clog", () => {
        if (this.#active) network.clog(scope);
      });
      this.#cluster.after(rng.between(durationMs / 2, durationMs), "free", () => {
        network.free(scope);
      });
    }
  }

  #fillDisk({ disk }: SimNode, durationMs: number): void {
    disk.capacityBytes = disk.usedBytes;
    this.#cluster.after(durationMs, "disk has room", () => disk.capacityBytes = Infinity);
  }

  #someNode(rng: SimRandom): SimNode | undefined {
    const up = this.#cluster.nodes.filter((node) => node.isUp);
    return up.length === 0 ? undefined : up[rng.int(up.length)];
  }
}
