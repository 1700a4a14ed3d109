/**
 * The workers of a simulated cluster, if their number changes. The fleet starts workers and stops them
 * gracefully, as `server/cluster/scaler.ts` or an operator does.
 */
import { workerAt } from "../../actors/worker/protocol.ts";
import type { WorkerFleet } from "../../server/cluster/scaler.ts";
import type { SimCluster } from "./cluster.ts";
import type { Boot, SimNode } from "./node.ts";

/** The node that requests workers to stop. */
export const OPERATOR_NODE = "operator";
/** Maximum time to start a machine, in ms. */
const START_MAX_MS = 300;
/** Default time for clients to fetch the elements that a stopping worker holds, in ms. */
const DRAIN_MS = 8_000;
/** Additional time for the answer, in ms. */
const ANSWER_MS = 1_000;
/** Time after which an unanswered request to a worker is repeated, in ms. */
const ATTEMPT_MS = 300;
/** Maximum time between two changes by {@linkcode SimFleet.changeNowAndThen}, in ms. */
const BETWEEN_MAX_MS = 400;

/** A fleet of simulated workers. */
export class SimFleet implements WorkerFleet {
  readonly #cluster: SimCluster;
  readonly #boot: Boot;
  readonly #drainMs: number;
  /** Workers that are being stopped. */
  readonly #stopping = new Set<string>();
  #count = 0;
  /** Whether a worker was stopped, and clients had perhaps not fetched all of its elements. */
  hasCutShort = false;

  /**
   * @param workers Initial number of workers.
   * @param drainMs Time for clients to fetch the elements that a stopping worker holds, in ms.
   */
  constructor(cluster: SimCluster, workers: number, boot: Boot, drainMs = DRAIN_MS) {
    this.#cluster = cluster;
    this.#boot = boot;
    this.#drainMs = drainMs;
    cluster.addNode(OPERATOR_NODE, () => {});
    for (let i = 0; i < workers; i++) this.#add();
  }

  /** All workers that ever existed. */
  get all(): readonly string[] {
    return Array.from({ length: this.#count }, (_, i) => nameOf(i));
  }

  get names(): readonly string[] {
    return this.all.filter((name) => {
      const node = this.#cluster.node(name);
      return node.isUp && node.isWanted && !this.#stopping.has(name);
    });
  }

  /** Restarts a stopped worker under its name, or starts a new one. */
  async start(): Promise<void> {
    const operator = this.#cluster.node(OPERATOR_NODE);
    await operator.host.sleep(operator.world.random.fork("starts").between(0, START_MAX_MS));
    const stopped = this.all.find((name) => {
      const node = this.#cluster.node(name);
      return !node.isWanted && !node.isUp && !this.#stopping.has(name);
    });
    this.#cluster.counters.tally("worker_came");
    if (stopped === undefined) this.#add();
    else this.#cluster.node(stopped).start();
  }

  async stop(name: string): Promise<void> {
    const node = this.#cluster.node(name);
    const life = node.lives;
    this.#stopping.add(name);
    this.#cluster.counters.tally("worker_left");
    try {
      const isDrained = await this.drain(name);
      if (!isDrained) this.#cluster.counters.tally("drain_cut_short");
      if (!isDrained || node.lives !== life) this.hasCutShort = true;
      await node.stop();
    } finally {
      this.#stopping.delete(name);
    }
  }

  /** Drains a worker and makes it leave. Returns whether clients fetched all elements that it held. */
  async drain(name: string): Promise<boolean> {
    const { system } = this.#cluster.node(OPERATOR_NODE);
    const worker = workerAt(name);
    const timeoutMs = this.#drainMs;
    const limits = { timeoutMs: timeoutMs + ANSWER_MS, attemptMs: ATTEMPT_MS };
    const isDrained = await system.ask(worker, "drain", { timeoutMs }, limits)
      .catch(() => false);
    await system.ask(worker, "leave", null, { timeoutMs: ANSWER_MS }).catch(() => null);
    return isDrained;
  }

  /** Starts or stops a worker from time to time, until `until()` holds. Keeps `min` to `max` workers. */
  async changeNowAndThen(
    { min, max, until }: { min: number; max: number; until: () => boolean },
  ): Promise<void> {
    const { host, world } = this.#cluster.node(OPERATOR_NODE);
    const rng = world.random.fork("changes");
    for (;;) {
      await host.sleep(rng.between(0, BETWEEN_MAX_MS));
      if (until()) return;
      const { names } = this;
      const isMore = rng.chance(0.5);
      if (isMore && names.length < max) await this.start();
      else if (!isMore && names.length > min) await this.stop(names[rng.int(names.length)]!);
    }
  }

  #add(): SimNode {
    return this.#cluster.addNode(nameOf(this.#count++), this.#boot);
  }
}

function nameOf(index: number): string {
  return `worker-${index + 1}`;
}
