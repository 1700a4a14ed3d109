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
/** See {@linkcode RunLimits}; for runs whose messages are copied. */
const EVENTS_PER_TURN = 128;

/** How to set up a {@linkcode SimCluster}. */
interface SimClusterOptions {
  readonly seed: bigint;
  /** Default: none. */
  readonly faults?: FaultOptions;
  /**
   * Keep a readable timeline and error stacks, which then enter the trace's hash, too. Default
   * false.
   */
  readonly readable?: boolean;
  /** Actor kinds that nodes start at another node's request. */
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

  /** Replaces a node that is down by a new one, which is found under both names. */
  moveNode(name: string, newName: string): void {
    const { boot, name: oldName } = this.node(name);
    this.counters.count("node_moved");
    this.#nodes.delete(oldName);
    this.#moved.set(name, this.addNode(newName, boot));
  }

  /** The node of that name, or its replacement. */
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
   * Lets time pass until `until()` holds. See {@linkcode Scheduler.run}.
   * @throws LeatError also for an unhandled rejection.
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
    // In the other runs a rejection handled late, by another event, is reported too; they are
    // slower.
    const eventsPerTurn = this.network.copiesMessages ? EVENTS_PER_TURN : 1;
    // Error stacks name files of this machine, so they must not enter the trace. Not recording them
    // also saves a third of the time of some runs.
    const errors: { stackTraceLimit: number | undefined } = Error;
    const { stackTraceLimit } = errors;
    // `undefined` gives errors no `stack`; a limit of 0 would give an empty one, to be made and
    // sent.
    if (!this.#readable) errors.stackTraceLimit = undefined;
    try {
      await this.scheduler.run({ ...limits, until, eventsPerTurn });
    } finally {
      errors.stackTraceLimit = stackTraceLimit;
      globalThis.removeEventListener("unhandledrejection", onUncaught);
    }
  }

  /** Ends all faults between nodes, and starts the nodes that are down but wanted. */
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
