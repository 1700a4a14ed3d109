/**
 * A small cluster whose trainers share one stream per worker, of an OFF or a DYNAMIC job: a dispatcher,
 * two workers, and four trainers. One trainer is fast, one is slow, one leaves and returns with its id,
 * and one stops reading.
 *
 * Promises: each trainer receives a subsequence of each worker's stream, in order, and misses nothing
 * that is still in the window. It starts at the back of the window, or after an absence at its old
 * position. Windows stay within their bounds. Once the cluster has healed, every trainer that reads makes
 * progress, whatever the others do.
 */
import { LeatError } from "../../core/error.ts";
import { Dataset } from "../../data/dataset.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { Violations } from "../checkers/checker.ts";
import { type SharedElement, SharingChecker } from "../checkers/sharing.ts";
import { SimCluster } from "../engine/cluster.ts";
import { Crashes } from "../faults/crashes.ts";
import type { SimNode } from "../engine/node.ts";
import { takenElement, withFailures } from "../checkers/failing_elements.ts";
import type { SimRandom } from "../engine/random.ts";
import { pacedBy } from "../faults/paced_runners.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE, startClient } from "../engine/service.ts";
import { drawTimings, type ServiceTimings } from "../engine/timings.ts";
import { outcomeOf, type RunOptions, type RunOutcome, runThroughTrouble } from "./workload.ts";

const WORKERS = ["worker-1", "worker-2"] as const;

/** How a trainer reads. */
interface Habits {
  /** Number of elements that the training loop reads, in all its lives together. */
  readonly elements: number;
  /** Maximum training step, in ms. */
  readonly stepMaxMs: number;
  /** Probability that it leaves after a step, and its maximum absence, in ms. */
  readonly leaveProbability: number;
  readonly awayMaxMs: number;
  /** Maximum delay before it joins, in ms. */
  readonly lateMaxMs: number;
  /** Whether it stays after its elements without reading. */
  readonly stays: boolean;
}

const DILIGENT: Habits = {
  elements: 40,
  stepMaxMs: 10,
  leaveProbability: 0,
  awayMaxMs: 0,
  lateMaxMs: 0,
  stays: false,
};

const TRAINERS: Readonly<Record<string, Habits>> = {
  fast: DILIGENT,
  slow: { ...DILIGENT, elements: 10, stepMaxMs: 300, lateMaxMs: 1_000 },
  fickle: { ...DILIGENT, elements: 20, stepMaxMs: 50, leaveProbability: 0.2, awayMaxMs: 500 },
  idle: { ...DILIGENT, elements: 1, stays: true },
};

const NODES = {
  dispatcher: [DISPATCHER_NODE],
  worker: WORKERS,
  client: Object.keys(TRAINERS),
} as const;

/** Quick timings of the actors. */
const WORKER_HEARTBEAT_MS = 500;
const CLIENT_TIMINGS = { requestTimeoutMs: 1_000 };
/** Sizes of a worker's windows in bytes: for a few elements, for some, or for all. */
const WINDOW_BYTES: [number, ...number[]] = [4_000, 16_000, 2 ** 20];
/** Requests in flight and buffered elements of one trainer. */
const OUTSTANDING: [number, ...number[]] = [1, 2, 8];
/** Maximum time of a worker per element, in ms. In some runs trainers wait for workers. */
const WORK_MAX_MS: [number, ...number[]] = [0, 0, 30];
const MODES: [ShardingPolicy, ...ShardingPolicy[]] = [ShardingPolicy.OFF, ShardingPolicy.DYNAMIC];

export async function runSharing(options: RunOptions): Promise<RunOutcome> {
  const run = new SharingRun(options);
  const outcome = await outcomeOf(run, ({ checker }) => checker.delivered);
  run.cluster.counters.tally("elements_skipped", run.checker.skipped);
  return outcome;
}

/** Each task draws a number for its stream, and counts. Elements have about 100 to 1,600 bytes. */
const DATASET = Dataset.range(1)
  .map((_, { random }) => random.int(2 ** 31))
  .flatMap((stream, { Dataset }) =>
    Dataset.range(1_000_000).map((place, { stream }) => ({
      stream,
      place,
      ballast: new Uint8Array(1_500 * (place * 7 % 11) / 11),
    }), { captures: { stream } })
  )
  .repeat();
const DEFINITION = definitionOf(DATASET);
const FAILING_DEFINITION = definitionOf(withFailures(DATASET));

function definitionOf({ node }: Dataset<SharedElement>) {
  return { graph: serializeGraph(node), fingerprint: fingerprintGraph(node), cardinality: -1 };
}

class SharingRun {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly checker: SharingChecker;
  readonly #crashes: Crashes;
  readonly #maxOutstandingRequests: number;
  readonly #timings: ServiceTimings;
  readonly #mode: ShardingPolicy;
  readonly #isFailing: boolean;
  /** Number of elements that each trainer still wants. */
  readonly #wanted = new Map(Object.entries(TRAINERS).map(([id, { elements }]) => [id, elements]));

  constructor(options: RunOptions) {
    const { seed, faults, readable = false, failing = false, crashes = [], crashPoint } = options;
    this.#isFailing = failing;
    this.cluster = new SimCluster({ seed, faults, readable });
    const rng = this.cluster.random.fork("sharing");
    const windowBytesMax = rng.pick(WINDOW_BYTES);
    this.#maxOutstandingRequests = rng.pick(OUTSTANDING);
    this.checker = new SharingChecker(
      windowBytesMax,
      this.#maxOutstandingRequests,
      this.violations.by("windows"),
    );
    this.cluster.addNode(DISPATCHER_NODE, bootDispatcher());
    const workMaxMs = rng.pick(WORK_MAX_MS);
    this.#mode = rng.pick(MODES);
    this.#timings = drawTimings(this.cluster, {
      worker: { heartbeatMs: WORKER_HEARTBEAT_MS },
      client: CLIENT_TIMINGS,
    });
    const boot = bootWorker(
      { ...this.#timings.worker, windowBytesMax },
      pacedBy(workMaxMs, rng.fork("work")),
    );
    for (const name of WORKERS) {
      this.cluster.addNode(name, (node) => {
        node.system.inspect(this.checker.observer(node.lifetime()));
        boot(node);
      });
    }
    for (const [id, habits] of Object.entries(TRAINERS)) {
      this.cluster.addNode(id, (node) => this.#bootTrainer(node, habits));
    }
    this.#crashes = new Crashes(this.cluster, {
      nodes: NODES,
      roles: crashes,
      point: crashPoint,
      onCrash: () => {},
    });
  }

  async toTheEnd(): Promise<void> {
    const isDone = () => [...this.#wanted.values()].every((wanted) => wanted === 0);
    await runThroughTrouble(this.cluster, this.#crashes, isDone);
  }

  #bootTrainer(node: SimNode, habits: Habits): void {
    const rng = node.world.random.fork("training");
    const train = async () => {
      await node.host.sleep(rng.between(0, habits.lateMaxMs));
      while (this.#wants(node)) {
        await this.#read(node, habits, rng);
        if (habits.stays) return;
        await node.system.stopActor("client");
        await node.host.sleep(rng.between(0, habits.awayMaxMs));
      }
    };
    train().catch((error) => {
      this.violations.by("training").add(
        `${node.name} (life ${node.lives}) failed: ${LeatError.from(error).message}`,
      );
    });
  }

  #wants({ name }: SimNode): boolean {
    return this.#wanted.get(name)! > 0;
  }

  /** Runs a training loop until it has enough elements, or leaves. */
  async #read(node: SimNode, habits: Habits, rng: SimRandom): Promise<void> {
    const feed = startClient(node, {
      dataset: this.#isFailing ? FAILING_DEFINITION : DEFINITION,
      parameters: { processingMode: this.#mode, sharing: true },
      jobName: "job",
      repetition: 0,
      trainerId: node.name,
      maxOutstandingRequests: this.#maxOutstandingRequests,
      ...this.#timings.client,
    });
    this.checker.joined(node.name);
    while (this.#wants(node)) {
      const fed = await feed.take();
      if (fed.kind !== "element" && fed.kind !== "error") {
        throw new LeatError("internal", `A stream without end: ${fed.kind}`);
      }
      const element = takenElement(fed) as SharedElement;
      this.checker.took(node.name, element, fed.skipped ?? 0);
      this.#wanted.set(node.name, this.#wanted.get(node.name)! - 1);
      this.#crashes.delivered(this.checker.delivered);
      await node.host.sleep(rng.between(0, habits.stepMaxMs));
      if (rng.chance(habits.leaveProbability)) return;
    }
  }
}
