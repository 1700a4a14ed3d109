/**
 * A simulated cluster: nodes, the network between them, and what has happened.
 *
 * @module
 */
import type { ActorKind } from "../actors/runtime/system.ts";
import { LeatError } from "../core/error.ts";
import { Counters } from "./counters.ts";
import { FaultPoints } from "./fault_points.ts";
import { SimNetwork, type Wires } from "./network.ts";
import { type Boot, SimNode } from "./node.ts";
import { type FaultOptions, NO_FAULTS } from "./options.ts";
import { SimRandom } from "./random.ts";
import { SharedFiles } from "./shared_files.ts";
import { type RunLimits, Scheduler } from "./scheduler.ts";
import { Trace } from "./trace.ts";
import type { SimLogLine } from "./world.ts";

/** Log lines kept for people; beyond it the oldest are forgotten. */
const LOG_LINES_MAX = 1_000;
/** See {@linkcode RunLimits}, of runs whose messages are copied. */
const EVENTS_PER_TURN = 128;

/** How to set up a {@linkcode SimCluster}. */
export interface SimClusterOptions {
  readonly seed: bigint;
  /** Default: none. */
  readonly faults?: FaultOptions;
  /** Keep a readable timeline, and the stacks of errors. The trace's hash holds those too. Default false. */
  readonly readable?: boolean;
  /** What nodes start at another's request. */
  readonly kinds?: Readonly<Record<string, ActorKind>>;
  /** See {@linkcode Wires}. Default: the faults' `bytesPerSecond` alone. */
  readonly wires?: Wires;
}

/**
 * See the module.
 *
 * @example
 * ```ts
 * import { SimCluster } from "./cluster.ts";
 *
 * const cluster = new SimCluster({ seed: 1n });
 * const node = cluster.addNode("node", ({ world }) => {
 *   world.timer(60_000, () => world.log("info", "a minute has passed"));
 * });
 * cluster.after(30_000, "crash", () => node.crash());
 * cluster.after(31_000, "restart", () => node.start());
 * await cluster.run({ until: () => cluster.logs.length > 0, timeMaxMs: 120_000 });
 * cluster.scheduler.nowUs; // 91 s, in no time
 * ```
 */
export class SimCluster {
  readonly seed: bigint;
  readonly random: SimRandom;
  readonly scheduler = new Scheduler();
  readonly counters = new Counters();
  readonly trace: Trace;
  readonly network: SimNetwork;
  readonly faultPoints: FaultPoints;
  readonly kinds: Readonly<Record<string, ActorKind>>;
  /** What pipelines on all nodes read and write. */
  readonly files = new SharedFiles();
  /** Called before each event, for whoever looks on. */
  onStep: () => void = () => {};
  /** Called when a node has started, for whoever looks on. */
  onStart: (node: SimNode) => void = () => {};
  /** The names of nodes with training processes. */
  trainers: readonly string[] = [];
  readonly #nodes = new Map<string, SimNode>();
  /** Nodes that run what another one did, by the name of that. */
  readonly #moved = new Map<string, SimNode>();
  readonly #readable: boolean;
  #logs: SimLogLine[] = [];

  constructor(options: SimClusterOptions) {
    const { seed, faults = NO_FAULTS, readable = false, kinds = {}, wires } = options;
    this.seed = seed;
    this.#readable = readable;
    this.kinds = kinds;
    this.random = new SimRandom(seed);
    this.trace = new Trace({ readable });
    this.faultPoints = new FaultPoints(
      this.random.fork("fault points"),
      this.counters,
      faults.faultPointProbability,
    );
    this.network = new SimNetwork({
      scheduler: this.scheduler,
      random: this.random.fork("network"),
      trace: this.trace,
      counters: this.counters,
      faults,
      ...(wires === undefined ? {} : { wires }),
    });
  }

  get nodes(): readonly SimNode[] {
    return [...this.#nodes.values()];
  }

  /** What actors have written for their operators, oldest first. */
  get logs(): readonly SimLogLine[] {
    return this.#logs.slice(-LOG_LINES_MAX);
  }

  /** Adds a node and starts it. @param boot Starts its actors, each time the node starts. */
  addNode(name: string, boot: Boot): SimNode {
    if (this.#nodes.has(name)) {
      throw new LeatError("already_exists", `There is already a node named "${name}"`);
    }
    const node = new SimNode(this, name, boot);
    this.#nodes.set(name, node);
    node.start();
    return node;
  }

  /** What ran on a node that is down runs on a new one from now on, which is found by both names. */
  moveNode(name: string, newName: string): void {
    const { boot, name: oldName } = this.node(name);
    this.counters.count("node_moved");
    this.#nodes.delete(oldName);
    this.#moved.set(name, this.addNode(newName, boot));
  }

  /** The node of that name, or the one that has taken its place. */
  node(name: string): SimNode {
    const node = this.#moved.get(name) ?? this.#nodes.get(name);
    if (node === undefined) throw new LeatError("not_found", `There is no node named "${name}"`);
    return node;
  }

  /** Calls `fn` at that virtual time from now, whatever becomes of the nodes. */
  after(delayMs: number, what: string, fn: () => void): void {
    this.scheduler.at(this.scheduler.nowUs + delayMs * 1_000, what, fn);
  }

  /**
   * Lets time pass until `until()` holds. See {@linkcode Scheduler.run}.
   *
   * @throws LeatError also for a promise that was rejected and that nobody has caught.
   */
  async run(limits: RunLimits): Promise<void> {
    let uncaught: unknown;
    const onUncaught = (event: PromiseRejectionEvent) => {
      event.preventDefault();
      uncaught ??= new LeatError("internal", "A rejection that nobody caught", {
        cause: event.reason,
      });
    };
    const until = () => {
      if (uncaught !== undefined) throw uncaught;
      this.onStep();
      return limits.until();
    };
    globalThis.addEventListener("unhandledrejection", onUncaught);
    // In the other runs what is caught late, by another event, is told of as well: such runs are slower.
    const eventsPerTurn = this.network.copiesMessages ? EVENTS_PER_TURN : 1;
    // Errors travel with their stacks, which name files of this machine: no business of a trace.
    // Not taking them down saves a third of the time of some runs, too.
    const errors: { stackTraceLimit: number | undefined } = Error;
    const { stackTraceLimit } = errors;
    // Without a limit there is no `stack`; with one of 0 there would be one, to be made and sent.
    if (!this.#readable) errors.stackTraceLimit = undefined;
    try {
      await this.scheduler.run({ ...limits, until, eventsPerTurn });
    } finally {
      errors.stackTraceLimit = stackTraceLimit;
      globalThis.removeEventListener("unhandledrejection", onUncaught);
    }
  }

  /** Ends all trouble between nodes, and starts those that are down and should not be. */
  heal(): void {
    this.trace.mark(this.scheduler.nowUs, "healed");
    this.network.heal(NO_FAULTS);
    this.faultPoints.heal();
    for (const node of this.#nodes.values()) {
      node.disk.capacityBytes = Infinity;
      if (!node.isUp && node.isWanted) node.start();
    }
  }

  /** Keeps a log line. */
  logged(line: SimLogLine): void {
    this.#logs.push(line);
    if (this.#logs.length >= 2 * LOG_LINES_MAX) this.#logs = this.#logs.slice(-LOG_LINES_MAX);
  }
}
