/** A simulated cluster: nodes, the network between them, and a record of what happened. */
import type { ActorKind } from "../../actors/runtime/system.ts";
import { LeatError } from "../../core/error.ts";
import { Counters } from "./counters.ts";
import { FaultPoints } from "../faults/fault_points.ts";
import { SimNetwork, type Wires } from "./network.ts";
import { type Boot, SimNode } from "./node.ts";
import { type FaultOptions, NO_FAULTS } from "../faults/options.ts";
import { SimRandom } from "./random.ts";
import { SharedFiles } from "./shared_files.ts";
import { type RunLimits, Scheduler } from "./scheduler.ts";
import { Trace } from "./trace.ts";
import type { SimLogLine } from "../world.ts";

/** Maximum number of log lines kept; the oldest are dropped. */
const LOG_LINES_MAX = 1_000;
/** Events per turn of the event loop in runs that copy messages. See {@linkcode RunLimits}. */
const EVENTS_PER_TURN = 128;

/** How to set up a {@linkcode SimCluster}. */
interface SimClusterOptions {
  readonly seed: bigint;
  /** Default: none. */
  readonly faults?: FaultOptions;
  /** Whether to keep a readable timeline and error stacks. The trace's hash stays. Default false. */
  readonly readable?: boolean;
  /** Kinds of actors that nodes start when another node requests it. */
  readonly kinds?: Readonly<Record<string, ActorKind>>;
  /** See {@linkcode Wires}. Default: the faults' `bytesPerSecond` alone. */
  readonly wires?: Wires;
}

/** A deterministic cluster in virtual time. */
export class SimCluster {
  readonly random: SimRandom;
  readonly scheduler = new Scheduler();
  readonly counters = new Counters();
  readonly trace: Trace;
  readonly network: SimNetwork;
  readonly faultPoints: FaultPoints;
  readonly kinds: Readonly<Record<string, ActorKind>>;
  /** The files that pipelines on all nodes read and write. */
  readonly files = new SharedFiles();
  /** Called before each event. */
  onStep: () => void = () => {};
  onStart: (node: SimNode) => void = () => {};
  /** The names of nodes with training processes. */
  trainers: readonly string[] = [];
  readonly #nodes = new Map<string, SimNode>();
  /** Replacement nodes, by the name of the node that they replace. */
  readonly #moved = new Map<string, SimNode>();
  readonly #readable: boolean;
  #logs: SimLogLine[] = [];

  constructor(options: SimClusterOptions) {
    const { seed, faults = NO_FAULTS, readable = false, kinds = {}, wires } = options;
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

  /** The log lines of the actors, oldest first. */
  get logs(): readonly SimLogLine[] {
    return this.#logs.slice(-LOG_LINES_MAX);
  }

  /** Adds a node and starts it. @param boot Starts the node's actors, each time the node starts. */
  addNode(name: string, boot: Boot): SimNode {
    if (this.#nodes.has(name)) {
      throw new LeatError("already_exists", `There is already a node named "${name}"`);
    }
    const node = new SimNode(this, name, boot);
    this.#nodes.set(name, node);
    node.start();
    return node;
  }

  /** Replaces a node that is down by a new node, which is found under both names. */
  moveNode(name: string, newName: string): void {
    const { boot, name: oldName } = this.node(name);
    this.counters.count("node_moved");
    this.#nodes.delete(oldName);
    this.#moved.set(name, this.addNode(newName, boot));
  }

  /** Returns the node of that name, or its replacement. */
  node(name: string): SimNode {
    const node = this.#moved.get(name) ?? this.#nodes.get(name);
    if (node === undefined) throw new LeatError("not_found", `There is no node named "${name}"`);
    return node;
  }

  /** Calls `fn` after that virtual time, whatever the state of the nodes. */
  after(delayMs: number, what: string, fn: () => void): void {
    this.scheduler.at(this.scheduler.nowUs + delayMs * 1_000, what, fn);
  }

  /**
   * Lets time pass until `until()` holds: see {@linkcode Scheduler.run}. Also throws an unhandled
   * rejection, as a `LeatError`.
   */
  async run(limits: RunLimits): Promise<void> {
    let uncaught: unknown;
    const onUncaught = (event: PromiseRejectionEvent) => {
      event.preventDefault();
      uncaught ??= new LeatError("internal", "An unhandled rejection", {
        cause: event.reason,
      });
    };
    const until = () => {
      if (uncaught !== undefined) throw uncaught;
      this.onStep();
      return limits.until();
    };
    globalThis.addEventListener("unhandledrejection", onUncaught);
    // Other runs are slower, and also report a rejection that only a later event handles.
    const eventsPerTurn = this.network.copiesMessages ? EVENTS_PER_TURN : 1;
    // Some runs take a third less time without error stacks.
    const errors: { stackTraceLimit: number | undefined } = Error;
    const { stackTraceLimit } = errors;
    // With `undefined`, errors have no `stack`. With 0, each error would make an empty one.
    if (!this.#readable) errors.stackTraceLimit = undefined;
    try {
      await this.scheduler.run({ ...limits, until, eventsPerTurn });
    } finally {
      errors.stackTraceLimit = stackTraceLimit;
      globalThis.removeEventListener("unhandledrejection", onUncaught);
    }
  }

  /** Ends the faults of the network, disks and fault points, and starts the wanted nodes that are down. */
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
