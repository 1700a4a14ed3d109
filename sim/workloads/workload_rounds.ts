/**
 * A small cluster that reads one dataset in rounds (coordinated reads): a dispatcher, two workers and
 * three consumers of one job, of which one or two may be slow. In some runs the schedulers have a node of
 * their own, which may crash as well. In some runs the dataset ends.
 *
 * Promises: in every common step, each consumer receives its own part of one round of one task. A
 * consumer that restarts too soon gets an error that names the holder of its index. Once the cluster has
 * healed, all consumers continue together, or all active consumers reach one end.
 */
import { createClient } from "../../actors/client/client.ts";
import { Feed } from "../../actors/client/feed.ts";
import type { ClientProtocol } from "../../actors/client/protocol.ts";
import { type DatasetDefinition, dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../core/error.ts";
import { Dataset } from "../../data/dataset.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { PROXY_KINDS } from "../../platform/nodes/service_kinds.ts";
import { Violations } from "../checkers/checker.ts";
import { RoundsChecker } from "../checkers/rounds.ts";
import { SimCluster } from "../engine/cluster.ts";
import { CRASH_AFTER_MAX_MS, Crashes, DOWN_MAX_MS } from "../faults/crashes.ts";
import type { SimNode } from "../engine/node.ts";
import { takenElement, withFailures } from "../checkers/failing_elements.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "../engine/service.ts";
import { drawTimings, type ServiceTimings } from "../engine/timings.ts";
import { outcomeOf, type RunOptions, type RunOutcome, runThroughTrouble } from "./workload.ts";

const WORKERS = ["worker-1", "worker-2"] as const;
const CONSUMERS = ["consumer-0", "consumer-1", "consumer-2"] as const;
/** The node of the schedulers in some runs. If it crashes, their queues are lost. */
const FRONT = "front";

/** Probability that this node crashes, in runs in which workers crash. */
const FRONT_CRASH_PROBABILITY = 0.5;

/**
 * The run ends when every consumer has met all others and has taken this many steps since its last
 * start.
 */
const STEPS = 10;
/** Maximum training step, in ms. */
const STEP_MAX_MS: [number, ...number[]] = [10, 50, 200];
/** How many times longer the steps of slow consumers take, and the probability that a run has any. */
const STRAGGLER_TIMES = 5;
const STRAGGLER_PROBABILITY = 0.3;
/** Delay before a refused consumer tries again, in ms. */
const REFUSED_PAUSE_MS = 300;
/** Bytes that a consumer reads ahead: one round, or any number of rounds. */
const BUFFER_BYTES: [number, ...number[]] = [1, 2 ** 20];
const ROUNDS_AHEAD: [number, ...number[]] = [1, 4, 10];

/** Quick timings of the actors, so short that some living nodes are declared lost. */
const WORKER_HEARTBEAT_MS = 300;
const WORKER_TIMEOUT_MS: [number, ...number[]] = [1_000, 10_000];
const CLIENT_TIMEOUT_MS: [number, ...number[]] = [2_000, 5_000];
const CLIENT_GRACE_MS: [number, ...number[]] = [300, 2_000];
const LOST_TASK_TIMEOUT_MS: [number, ...number[]] = [500, 5_000];
const SKIP_AFTER_MS: [number, ...number[]] = [20, 1_000];
const CLIENT_TIMINGS = { refreshMs: 200, requestTimeoutMs: 1_000 };

/** An endless dataset. Every element names the task that made it. */
const ENDLESS = Dataset.zip([
  Dataset.range(1_000_000).repeat(),
  Dataset.random().take(1).cache().repeat(),
]);
/** A dataset that ends in the middle of a round of each task. The end is not known before. */
const ENDING = ENDLESS.takeWhile(([number]) => number < 50);
const FAILING = withFailures(ENDLESS);
const FAILING_ENDING = withFailures(ENDING);
const ENDING_PROBABILITY = 0.3;
/** The cardinality of a dataset of unknown size. */
const UNKNOWN = -2;

export async function runRounds(options: RunOptions): Promise<RunOutcome> {
  const run = new RoundsRun(options);
  return await outcomeOf(run, ({ rounds }) => rounds.delivered);
}

class RoundsRun {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly rounds = new RoundsChecker(CONSUMERS.length, this.violations.by("rounds"));
  readonly #crashes: Crashes;
  readonly #stepMaxMs: number;
  readonly #timings: ServiceTimings;
  readonly #stragglers: readonly string[];
  readonly #reading: { readonly bufferBytesMax: number; readonly maxOutstandingRequests: number };
  /** The newest life of each consumer's client. */
  readonly #lives = new Map<string, string>();
  readonly #definition: Omit<DatasetDefinition, "datasetId">;
  /** Whether the dataset ends. */
  readonly #isEnding: boolean;
  /** Consumers that have reached the end in the current lives of their nodes. */
  readonly #ended = new Set<string>();
  #clients = 0;

  constructor(options: RunOptions) {
    const { seed, faults, readable = false, failing = false, crashes = [], crashPoint } = options;
    this.cluster = new SimCluster({
      seed,
      faults,
      readable,
      kinds: PROXY_KINDS,
    });
    const rng = this.cluster.random.fork("timings");
    this.#stepMaxMs = rng.pick(STEP_MAX_MS);
    this.#reading = {
      bufferBytesMax: rng.pick(BUFFER_BYTES),
      maxOutstandingRequests: rng.pick(ROUNDS_AHEAD),
    };
    const straggling = this.cluster.random.fork("straggler");
    const isStraggling = straggling.chance(STRAGGLER_PROBABILITY);
    const picked = straggling.pick(CONSUMERS);
    const isAlone = straggling.chance(0.5);
    this.#stragglers = isStraggling
      ? CONSUMERS.filter((name) => (name === picked) === isAlone)
      : [];
    this.#isEnding = this.cluster.random.fork("ending").chance(ENDING_PROBABILITY);
    const [endless, ending] = failing ? [FAILING, FAILING_ENDING] : [ENDLESS, ENDING];
    const { node } = this.#isEnding ? ending : endless;
    this.#definition = {
      graph: serializeGraph(node),
      fingerprint: fingerprintGraph(node),
      cardinality: this.#isEnding ? UNKNOWN : -1,
    };
    this.#timings = drawTimings(this.cluster, {
      dispatcher: {
        workerTimeoutMs: rng.pick(WORKER_TIMEOUT_MS),
        clientTimeoutMs: rng.pick(CLIENT_TIMEOUT_MS),
        clientGraceMs: this.cluster.random.fork("grace").pick(CLIENT_GRACE_MS),
        lostTaskTimeoutMs: rng.pick(LOST_TASK_TIMEOUT_MS),
      },
      worker: { heartbeatMs: WORKER_HEARTBEAT_MS, skipAfterMs: rng.pick(SKIP_AFTER_MS) },
      client: CLIENT_TIMINGS,
    });
    this.cluster.addNode(DISPATCHER_NODE, bootDispatcher(this.#timings.dispatcher, this.rounds));
    const front = this.cluster.addNode(FRONT, () => {});
    if (crashes.includes("worker")) this.#planCrash(front);
    const placement = rng.chance(0.3) ? { reads: FRONT } : {};
    const worker = { ...this.#timings.worker, placement };
    for (const name of WORKERS) this.cluster.addNode(name, bootWorker(worker));
    for (const [index, name] of CONSUMERS.entries()) {
      this.cluster.addNode(name, (node) => {
        this.#lives.delete(name);
        this.#ended.delete(name);
        this.#train(node, index);
      });
    }
    this.#crashes = new Crashes(this.cluster, {
      nodes: {
        dispatcher: [DISPATCHER_NODE],
        worker: WORKERS,
        client: CONSUMERS,
      },
      roles: crashes,
      point: crashPoint,
      onCrash: () => {},
    });
  }

  async toTheEnd(): Promise<void> {
    await runThroughTrouble(this.cluster, this.#crashes, () => this.#isDone);
    this.rounds.expectNoneLost({
      started: this.#clients - CONSUMERS.length,
      aheadMax: this.#reading.maxOutstandingRequests,
    });
  }

  /** Plans a crash of the schedulers' node in some runs. */
  #planCrash(front: SimNode): void {
    const rng = this.cluster.random.fork("front");
    if (!rng.chance(FRONT_CRASH_PROBABILITY)) return;
    this.cluster.after(rng.between(0, CRASH_AFTER_MAX_MS), "crash", () => {
      this.cluster.counters.tally("front_crashed");
      front.crash({ silent: rng.chance(this.cluster.network.faults.silentCrashProbability) });
      this.cluster.after(rng.between(0, DOWN_MAX_MS), "restart", () => {
        if (!front.isUp) front.start();
      });
    });
  }

  get #isDone(): boolean {
    if (this.#isEnding) return this.#haveEnded;
    const lives = [...this.#lives.values()];
    return lives.length === CONSUMERS.length &&
      lives.every((life) => this.rounds.stepsOf(life) >= STEPS) && this.rounds.haveMet(lives);
  }

  /** Whether all consumers have ended. One that restarts after the others ended also reaches the end. */
  get #haveEnded(): boolean {
    return this.#ended.size === CONSUMERS.length;
  }

  /** Runs a training loop, which restarts if it is refused or was declared dead. */
  async #train(node: SimNode, index: number): Promise<void> {
    for (;;) {
      const life = `${node.name} (client ${++this.#clients})`;
      if (this.#clients <= CONSUMERS.length) this.rounds.began(life, index);
      const { feed, stop } = this.#startClient(node, index, life);
      try {
        await this.#read(node, index, life, feed);
        this.rounds.ended(life);
        this.#ended.add(node.name);
        return await stop();
      } catch (error) {
        const { code, message } = LeatError.from(error);
        this.cluster.counters.tally(`consumer_${code}`);
        if (/is held by client \d+, .* is at round \d+/.test(message)) {
          this.cluster.counters.tally("consumer_told_the_round");
        }
        if (/which it was given/.test(message)) {
          return this.violations.by("training").add(
            `${life} began at a round of its earlier life: ${message}`,
          );
        }
        if (code === "not_found" || code === "failed_precondition") {
          await stop();
          await node.host.sleep(REFUSED_PAUSE_MS);
          continue;
        }
        return this.violations.by("training").add(`${life} failed: ${message}`);
      }
    }
  }

  async #read(node: SimNode, index: number, life: string, feed: Feed): Promise<void> {
    const rng = node.world.random.fork(life);
    const stepMaxMs = this.#stepMaxMs *
      (this.#stragglers.includes(node.name) ? STRAGGLER_TIMES : 1);
    for (;;) {
      const fed = await feed.take();
      if (fed.kind === "end" && this.#isEnding) return;
      if (fed.kind !== "element" && fed.kind !== "error") {
        throw new LeatError("internal", `it was fed ${fed.kind}`);
      }
      const [number, task] = takenElement(fed) as [number, number];
      this.#lives.set(node.name, life);
      this.rounds.took(life, index, { index: number, task });
      this.#crashes.delivered(this.rounds.delivered);
      await node.host.sleep(rng.between(0, stepMaxMs));
    }
  }

  #startClient({ system }: SimNode, consumerIndex: number, life: string) {
    const feed = new Feed();
    const name = life.replace(/\W+/g, "-");
    system.spawn<ClientProtocol>({
      name,
      restart: "temporary",
      create: (context) =>
        createClient(context, {
          dispatcher: dispatcherAt(DISPATCHER_NODE),
          dataset: this.#definition,
          parameters: {
            processingMode: ShardingPolicy.OFF,
            sharing: false,
            numConsumers: CONSUMERS.length,
          },
          jobName: "job",
          repetition: 0,
          consumerIndex,
          ...this.#timings.client,
          ...this.#reading,
        }, feed),
    });
    return { feed, stop: () => system.stopActor(name) };
  }
}
