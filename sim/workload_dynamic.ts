/**
 * A small cluster that reads one dataset under `DYNAMIC` sharding: a dispatcher, three workers and
 * two clients of one job. First everything goes wrong that the options say, then the cluster heals
 * and must finish.
 *
 * What must hold: no element is taken twice, whatever happens; every element is taken once, if
 * nothing has crashed; and once the cluster has healed, every client reaches the end.
 *
 * @module
 */
import { decodeMessage } from "../transport/codec.ts";
import { LeatError } from "../core/error.ts";
import type { DispatcherConfig } from "../actors/dispatcher/dispatcher.ts";
import { Dataset } from "../data/dataset.ts";
import { ShardingPolicy } from "../data/sharding_policy.ts";
import { fingerprintGraph, serializeGraph } from "../data/wire.ts";
import { Violations } from "./checkers/checker.ts";
import { DeliveryChecker } from "./checkers/deliveries.ts";
import { SplitLedger } from "./checkers/split_ledger.ts";
import { SimCluster } from "./cluster.ts";
import { Nemesis } from "./nemesis.ts";
import type { SimNode } from "./node.ts";
import { type FaultOptions, NO_FAULTS } from "./options.ts";
import type { SimRandom } from "./random.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE, startClient } from "./service.ts";

const SPLITS = 40;
const WORKERS = ["worker-1", "worker-2", "worker-3"] as const;
const CLIENTS = ["client-1", "client-2"] as const;

/** How long a training step takes at most, in ms. */
const STEP_MAX_MS = 20;
/** A crash comes after so many elements at the latest, so that it falls into the work… */
const CRASH_AFTER_ELEMENTS_MAX = 12;
/** …or, when elements come too slowly, after so long, in ms. */
const CRASH_AFTER_MAX_MS = 8_000;
/** How long a crashed node stays down at most, in ms. */
const DOWN_MAX_MS = 1_000;
/** When the cluster heals, at the latest, in ms. */
const HEAL_AFTER_MAX_MS = 20_000;
/** Virtual time within which a healed cluster must have finished, in ms. */
const LIVENESS_MAX_MS = 300_000;
/** Events within which a run must be over. */
const STEPS_MAX = 500_000;

/** Timings that the actors offer to be set. */
const WORKER_HEARTBEAT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 1_000;
/** Longer than any trouble lasts: a client that has given up by right would show nothing. */
const FIRST_ANSWER_TIMEOUT_MS = 60_000;

/** What a node is in the cluster. */
export type Role = "dispatcher" | "worker" | "client";

/** All of them. */
export const ROLES: readonly Role[] = ["dispatcher", "worker", "client"];

const NODES = { dispatcher: [DISPATCHER_NODE], worker: WORKERS, client: CLIENTS } as const;

/** One run. */
export interface DynamicOptions {
  readonly seed: bigint;
  readonly faults: FaultOptions;
  /** Of each of these roles one node crashes. Default: of none. */
  readonly crashes?: readonly Role[];
  /** Puts something before the dispatcher's journal, to see what comes of it. */
  readonly wrapJournal?: (node: SimNode) => NonNullable<DispatcherConfig["wrapJournal"]>;
  /** See {@linkcode SimCluster}. */
  readonly readable?: boolean;
}

/** What came of it. */
export interface DynamicOutcome {
  /** Broken promises; empty when all was well. */
  readonly violations: readonly string[];
  readonly hash: string;
  /** Elements delivered. */
  readonly delivered: number;
  readonly cluster: SimCluster;
}

/** Runs one seed. */
export async function runDynamic(options: DynamicOptions): Promise<DynamicOutcome> {
  const run = new DynamicRun(options);
  try {
    await run.toTheEnd();
  } catch (error) {
    run.violations.add(LeatError.from(error).message);
  }
  const { cluster } = run;
  return {
    violations: run.violations.list(),
    hash: cluster.trace.hash,
    delivered: run.deliveries.delivered,
    cluster,
  };
}

const DATASET = Dataset.range(SPLITS);
const DEFINITION = {
  graph: serializeGraph(DATASET.node),
  fingerprint: fingerprintGraph(DATASET.node),
  cardinality: SPLITS,
};

interface PlannedCrash {
  readonly role: Role;
  readonly node: SimNode;
  /** It comes once so many elements were delivered. */
  readonly after: number;
}

class DynamicRun {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly deliveries = new DeliveryChecker(SPLITS, this.violations);
  readonly #options: DynamicOptions;
  readonly #ledger = new SplitLedger(this.violations);
  readonly #nemesis: Nemesis;
  readonly #ended = new Set<string>();
  /** Those that are still to come. */
  readonly #crashes: PlannedCrash[] = [];
  #restarts = 0;

  constructor(options: DynamicOptions) {
    this.#options = options;
    const { seed, faults, readable = false } = options;
    this.cluster = new SimCluster({ seed, faults, readable });
    this.#nemesis = new Nemesis(this.cluster);
    this.cluster.addNode(DISPATCHER_NODE, (node) => this.#bootDispatcher(node));
    for (const name of WORKERS) {
      this.cluster.addNode(name, bootWorker({ heartbeatMs: WORKER_HEARTBEAT_MS }));
    }
    for (const name of CLIENTS) this.cluster.addNode(name, (node) => this.#bootClient(node));
    this.#planCrashes(options.crashes ?? []);
  }

  async toTheEnd(): Promise<void> {
    const luck = this.cluster.random.fork("heal");
    let isTimeToHeal = false;
    this.cluster.after(luck.between(0, HEAL_AFTER_MAX_MS), "heal", () => isTimeToHeal = true);
    this.#nemesis.start();
    await this.cluster.run({
      until: () => (isTimeToHeal || this.#isDone) && this.#crashes.length + this.#restarts === 0,
      timeMaxMs: HEAL_AFTER_MAX_MS + CRASH_AFTER_MAX_MS + DOWN_MAX_MS,
      stepsMax: STEPS_MAX,
    });
    this.#nemesis.stop();
    this.cluster.heal();
    await this.cluster.run({
      until: () => this.#isDone,
      timeMaxMs: LIVENESS_MAX_MS,
      stepsMax: STEPS_MAX,
    });
    if (!this.#losesElements) this.deliveries.expectAll();
  }

  /** A dispatcher that crashes loses nothing: what it had not journaled it had told nobody. */
  get #losesElements(): boolean {
    return this.#options.crashes?.some((role) => role !== "dispatcher") ?? false;
  }

  get #isDone(): boolean {
    return this.#ended.size === CLIENTS.length;
  }

  #bootDispatcher(node: SimNode): void {
    const { wrapJournal } = this.#options;
    node.system.inspect(this.#ledger.observe);
    bootDispatcher(wrapJournal === undefined ? {} : { wrapJournal: wrapJournal(node) })(node);
  }

  /** A training loop: takes an element, takes a step, takes the next. */
  #bootClient(node: SimNode): void {
    const feed = startClient(node, {
      dataset: DEFINITION,
      parameters: { processingMode: ShardingPolicy.DYNAMIC, sharing: false },
      jobName: "job",
      repetition: 0,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      firstAnswerTimeoutMs: FIRST_ANSWER_TIMEOUT_MS,
    });
    const consumer = `${node.name} (life ${node.lives})`;
    const luck = node.world.random.fork("training");
    const train = async () => {
      for (;;) {
        const fed = await feed.take();
        if (fed.kind === "end") break;
        if (fed.kind === "error") throw LeatError.fromWire(fed.error);
        const { scheduler } = this.cluster;
        const element = decodeMessage(fed.element.bytes);
        this.deliveries.took({ element, consumer, timeMs: scheduler.nowUs / 1_000 });
        this.#crashThoseDue();
        await node.host.sleep(luck.between(0, STEP_MAX_MS));
      }
    };
    train().catch((error) => {
      this.violations.add(`${consumer} failed: ${LeatError.from(error).message}`);
    }).finally(() => this.#ended.add(node.name));
  }

  #planCrashes(roles: readonly Role[]): void {
    const luck = this.cluster.random.fork("crashes");
    for (const role of roles) {
      const names = NODES[role];
      const node = this.cluster.node(names[luck.int(names.length)]!);
      this.#crashes.push({ role, after: luck.int(CRASH_AFTER_ELEMENTS_MAX + 1), node });
    }
    this.cluster.after(luck.between(0, CRASH_AFTER_MAX_MS), "crashes", () => {
      this.#crashThoseDue(Infinity);
    });
  }

  #crashThoseDue(delivered = this.deliveries.delivered): void {
    const luck = this.cluster.random.fork(`crash at ${delivered}`);
    for (const due of this.#crashes.filter(({ after }) => after <= delivered)) {
      this.#crashes.splice(this.#crashes.indexOf(due), 1);
      this.#restarts++;
      this.cluster.after(luck.between(0, STEP_MAX_MS), "crash", () => this.#crash(due, luck));
    }
  }

  #crash({ role, node }: PlannedCrash, luck: SimRandom): void {
    const { counters, network } = this.cluster;
    counters.tally(`${role}_crashed`);
    const silent = luck.chance(network.faults.silentCrashProbability);
    if (node.isUp) node.crash({ silent });
    this.#ended.delete(node.name);
    this.cluster.after(luck.between(0, DOWN_MAX_MS), "restart", () => {
      this.#restarts--;
      if (!node.isUp) node.start();
    });
  }
}

/** What the faults of this workload are where they are not drawn: a tenth of all messages is lost. */
export const WORKLOAD_FAULTS: FaultOptions = {
  ...NO_FAULTS,
  lossProbability: 0.1,
  duplicateProbability: 0.1,
  reorderProbability: 0.1,
  delayMaxMs: 5,
  reorderDelayMaxMs: 50,
  connectFailureProbability: 0.1,
  silentCrashProbability: 0.3,
  diskSyncMaxMs: 20,
};
