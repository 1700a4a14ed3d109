/**
 * A small cluster that reads one dataset under `DYNAMIC` sharding, or `OFF`: a dispatcher, three
 * workers and two clients of one job. In some runs workers lack a tag that the job wants, serve only
 * clients of their own process, or do not answer at their address.
 *
 * Promises:
 * - No element is received twice. Under `OFF`, no element is received more often than workers started.
 * - A client receives a task's elements in the task's order.
 * - An element of a living worker is lost only if a crashed client had requested it.
 * - If no client has crashed, every element is received once, except those that a crashed worker held.
 *   Under `OFF`, it is received once from each worker that took part and did not crash.
 * - If a client has crashed, under `DYNAMIC` every element was at least made.
 * - A worker serves only the clients that may read it.
 * - Once the cluster has healed, every client reaches the end.
 */
import type { Feed } from "../../actors/client/feed.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import { decodeMessage } from "../../transport/codec.ts";
import { LeatError, type WireError } from "../../core/error.ts";
import type { DispatcherConfig } from "../../actors/dispatcher/config.ts";
import { Dataset } from "../../data/dataset.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { Violations } from "../checkers/checker.ts";
import { DeliveryChecker } from "../checkers/deliveries.ts";
import { HandoverChecker } from "../checkers/handover.ts";
import { SplitLedger } from "../checkers/splits/split_ledger.ts";
import { TaskOrderChecker } from "../checkers/task_order.ts";
import { SimCluster } from "../engine/cluster.ts";
import { Crashes, type Role } from "../faults/crashes.ts";
import type { SimNode } from "../engine/node.ts";
import type { SimHost } from "../host.ts";
import { failedWith, takenElement, withFailures } from "../checkers/failing_elements.ts";
import { pacedBy } from "../faults/paced_runners.ts";
import { SimRandom } from "../engine/random.ts";
import { watchedRunners } from "../faults/runners_around.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE, startClient } from "../engine/service.ts";
import { Targets } from "./lib/targets.ts";
import { TaskLives } from "./lib/task_lives.ts";
import { TaskedWorkers } from "./lib/tasked_workers.ts";
import { drawTimings, FIRST_ANSWER_TIMEOUT_MS, type ServiceTimings } from "../engine/timings.ts";
import { outcomeOf, type RunOptions, type RunOutcome, runThroughTrouble } from "./workload.ts";

const SPLITS = 40;
const WORKERS = ["worker-1", "worker-2", "worker-3"] as const;
const CLIENTS = ["client-1", "client-2"] as const;
const NODES = { dispatcher: [DISPATCHER_NODE], worker: WORKERS, client: CLIENTS } as const;

/** Longest training step, in ms. */
const STEP_MAX_MS = 20;
/** Maximum time of a worker per element, in ms. In some runs clients wait for workers. */
const WORK_MAX_MS: [number, ...number[]] = [0, 0, 20];
/**
 * Maximum requests of a client to all workers together. In some runs, it is below the number of workers.
 */
const OUTSTANDING: [number, ...number[]] = [Infinity, Infinity, 1, 2];

/** Quick timings of the actors. */
const WORKER_HEARTBEAT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 1_000;

/**
 * Maximum number of crashes of a repeatedly crashing dispatcher, and of the message at which it
 * crashes.
 */
const RESTARTS_MAX = 20;
const RESTART_MESSAGES_MAX = 12;
/** Maximum length of its journal, in records. */
const JOURNAL_RECORDS_MAX: [number, ...number[]] = [1, 5, 20];

export interface DynamicOptions extends RunOptions {
  /** Wraps the dispatcher's journal, to observe it. */
  readonly wrapJournal?: (node: SimNode) => NonNullable<DispatcherConfig["wrapJournal"]>;
  /** Default DYNAMIC. */
  readonly mode?: "DYNAMIC" | "OFF";
  /** Number of records after which the dispatcher compacts its journal. Default: its own. */
  readonly journalRecordsMax?: number;
  /** Clients register the dataset first and then use its id. Default false. */
  readonly registered?: boolean;
}

/** A dispatcher that compacts its journal every few records, and crashes repeatedly. */
export async function runRestarts(options: DynamicOptions): Promise<RunOutcome> {
  const rng = new SimRandom(options.seed).fork("restarts");
  const point = { message: 1 + rng.int(RESTART_MESSAGES_MAX), lives: 1 + rng.int(RESTARTS_MAX) };
  return await runDynamic({
    ...options,
    crashes: options.crashes?.filter((role) => role !== "dispatcher") ?? [],
    crashPoint: options.crashPoint ?? { role: "dispatcher", ...point },
    journalRecordsMax: rng.pick(JOURNAL_RECORDS_MAX),
  });
}

export async function runDynamic(options: DynamicOptions): Promise<RunOutcome> {
  const run = new DynamicRun(options);
  return await outcomeOf(run, ({ deliveries }) => deliveries.delivered);
}

const DATASET = Dataset.range(SPLITS);
const DATASET_ID = "numbers";
const DEFINITION = definitionOf(DATASET);
const FAILING_DEFINITION = definitionOf(withFailures(DATASET));

function definitionOf({ node }: Dataset<number>) {
  return {
    graph: serializeGraph(node),
    fingerprint: fingerprintGraph(node),
    cardinality: SPLITS,
  };
}

class DynamicRun {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly deliveries: DeliveryChecker;
  readonly #options: DynamicOptions;
  readonly #ledger = new SplitLedger(this.violations.by("splits"));
  readonly #handover = new HandoverChecker(this.violations.by("handover"));
  /** Splits are assigned in order, so a task's numbers also increase under DYNAMIC. */
  readonly #order = new TaskOrderChecker(this.violations.by("order"));
  readonly #crashes: Crashes;
  readonly #ended = new Set<string>();
  readonly #tasked = new TaskedWorkers();
  readonly #taskLives = new TaskLives();
  readonly #maxOutstandingRequests: number;
  readonly #timings: ServiceTimings;
  readonly #targets: Targets;

  constructor(options: DynamicOptions) {
    this.#options = options;
    const lives = WORKERS.length + this.#crashesOf("worker");
    this.deliveries = new DeliveryChecker(
      SPLITS,
      this.violations.by("deliveries"),
      this.#isOff ? lives : 1,
    );
    const { seed, faults, readable = false, crashes = [] } = options;
    this.cluster = new SimCluster({ seed, faults, readable });
    this.#targets = new Targets({
      cluster: this.cluster,
      violations: this.violations,
      workers: WORKERS,
      clients: CLIENTS,
      clientsCrash: this.#crashesOf("client") > 0,
    });
    this.cluster.addNode(DISPATCHER_NODE, (node) => this.#bootDispatcher(node));
    const rng = this.cluster.random.fork("pace");
    this.#maxOutstandingRequests = rng.pick(OUTSTANDING);
    const pace = pacedBy(rng.pick(WORK_MAX_MS), rng.fork("work"));
    this.#timings = drawTimings(this.cluster, {
      worker: { heartbeatMs: WORKER_HEARTBEAT_MS },
      client: { requestTimeoutMs: REQUEST_TIMEOUT_MS },
    });
    for (const name of WORKERS) {
      this.cluster.addNode(name, (node) => {
        if (this.#isOff) this.#tasked.watch(node);
        else this.#taskLives.watch(node);
        const made = this.#handover.worker(node.lifetime());
        const onMade = (frame: Uint8Array) => made(String(decodeMessage(frame)));
        const onFailed = ({ message }: WireError) => made(String(failedWith(message)));
        const runnersOf = (host: SimHost) => watchedRunners(pace(host), onMade, onFailed);
        const target = this.#targets.worker(name, node);
        bootWorker({ ...this.#timings.worker, ...target }, runnersOf)(node);
      });
    }
    for (const name of CLIENTS) this.cluster.addNode(name, (node) => this.#bootClient(node));
    this.#crashes = new Crashes(this.cluster, {
      nodes: NODES,
      roles: crashes,
      point: options.crashPoint,
      onCrash: ({ name }) => this.#ended.delete(name),
    });
  }

  async toTheEnd(): Promise<void> {
    await runThroughTrouble(
      this.cluster,
      this.#crashes,
      () => this.#ended.size === CLIENTS.length,
    );
    await this.#targets.expectDeafKnown(this.cluster.node(CLIENTS[0]));
    this.#handover.expectAll();
    if (this.#crashesOf("client") > 0) return this.#expectAllMade();
    // A crashing dispatcher loses nothing, because it answers only after it has journaled.
    const crashes = this.#crashesOf("worker");
    if (this.#isOff) this.deliveries.expectAll(Math.max(0, this.#tasked.count - crashes));
    else if (crashes === 0) this.deliveries.expectAll();
    else this.#expectLost(this.deliveries.missing());
  }

  /** Checks under DYNAMIC that every element was made. A crashed client may have received it. */
  #expectAllMade(): void {
    if (this.#isOff) return;
    const elements = Array.from({ length: SPLITS }, (_, element) => element);
    this.#expectLost(elements.filter((element) => !this.#handover.wasMade(String(element))));
  }

  #expectLost(elements: readonly number[]): void {
    this.#ledger.expectLost(elements, (taskId) => this.#taskLives.isOver(taskId));
  }

  get #isOff(): boolean {
    return this.#options.mode === "OFF";
  }

  #crashesOf(role: Role): number {
    const { crashes = [], crashPoint } = this.#options;
    const counted = crashPoint?.role === role ? crashPoint.lives ?? 1 : 0;
    return crashes.filter((each) => each === role).length + counted;
  }

  #bootDispatcher(node: SimNode): void {
    const { wrapJournal, journalRecordsMax } = this.#options;
    node.system.inspect(this.#ledger.observe);
    const config = {
      ...this.#targets.dispatcher,
      ...(journalRecordsMax === undefined ? {} : { journalRecordsMax }),
      ...(wrapJournal === undefined ? {} : { wrapJournal: wrapJournal(node) }),
    };
    bootDispatcher(config, this.#targets.checker)(node);
  }

  /** Starts a training loop, which takes an element and performs a step, until the end. */
  #bootClient(node: SimNode): void {
    const consumer = `${node.name} (life ${node.lives})`;
    const { world, host } = node;
    const rng = world.random.fork("training");
    node.system.inspect(this.#order.observe);
    const handedOver = this.#handover.consumer(consumer, node.lifetime());
    node.system.inspect(handedOver.observe);
    const train = async () => {
      const feed = await this.#open(node);
      for (;;) {
        const fed = await feed.take();
        if (fed.kind === "end") break;
        if (fed.kind !== "element" && fed.kind !== "error") continue;
        const { scheduler } = this.cluster;
        const element = takenElement(fed);
        this.deliveries.took({ element, consumer, timeMs: scheduler.nowUs / 1_000 });
        if (fed.kind === "element") this.#order.took(fed.element, Number(element), consumer);
        handedOver.took(String(element));
        this.#crashes.delivered(this.deliveries.delivered);
        await host.sleep(rng.between(0, STEP_MAX_MS));
      }
    };
    train().catch((error) => {
      this.violations.by("training").add(`${consumer} failed: ${LeatError.from(error).message}`);
    }).finally(() => this.#ended.add(node.name));
  }

  async #open(node: SimNode): Promise<Feed> {
    const { mode = ShardingPolicy.DYNAMIC, registered = false, failing = false } = this.#options;
    const definition = failing ? FAILING_DEFINITION : DEFINITION;
    if (registered) {
      await node.system.ask(
        dispatcherAt(DISPATCHER_NODE),
        "registerDataset",
        { ...definition, datasetId: DATASET_ID },
        { timeoutMs: FIRST_ANSWER_TIMEOUT_MS, attemptMs: REQUEST_TIMEOUT_MS },
      );
    }
    return startClient(node, {
      dataset: registered ? { datasetId: DATASET_ID } : definition,
      parameters: { processingMode: mode, sharing: false, ...this.#targets.job },
      ...this.#targets.client(node),
      jobName: "job",
      repetition: 0,
      maxOutstandingRequests: this.#maxOutstandingRequests,
      ...this.#timings.client,
    });
  }
}
