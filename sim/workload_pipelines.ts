/**
 * A small cluster that reads a pipeline drawn at random from the operators, in a mode drawn as well:
 * DYNAMIC, OFF or DETERMINISTIC, by one to five workers and one or two clients.
 *
 * What must hold: under DETERMINISTIC, what must of the ordered workload, tokens included, and the
 * stream has the values that the plain definitions of the operators give. Otherwise no value comes
 * more often than by these definitions (under OFF: from each worker's life), and no element more often
 * than tasks have made it; nothing is lost of what living workers have made, but for what clients that
 * crashed had asked for; where no operator counts elements each value is made as often as it has to be,
 * if no worker has crashed, and comes as often, if no client has either; and once the cluster has
 * healed every client reaches the end.
 *
 * @module
 */
import { PipelineRunners } from "../actors/worker/pipeline_runner.ts";
import type { Dataset } from "../data/dataset.ts";
import { ShardingPolicy } from "../data/sharding_policy.ts";
import { decodeMessage } from "../transport/codec.ts";
import { BagChecker } from "./checkers/bag.ts";
import { Violations } from "./checkers/checker.ts";
import { HandoverChecker } from "./checkers/handover.ts";
import { SimCluster } from "./cluster.ts";
import { Crashes } from "./crashes.ts";
import type { SimNode } from "./node.ts";
import {
  type Bag,
  bagOf,
  drawPipeline,
  type RandomPipeline,
  valuesOf,
} from "./random_pipelines.ts";
import type { SimRandom } from "./random.ts";
import { Readings, takeAll, Trainings } from "./reading.ts";
import { referenceRun, textOf } from "./reference_stream.ts";
import { watchedRunners } from "./runners_around.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "./service.ts";
import { TaskedWorkers } from "./tasked_workers.ts";
import { drawTimings, type ServiceTimings } from "./timings.ts";
import { outcomeOf, type RunOptions, type RunOutcome, runThroughTrouble } from "./workload.ts";
import { runOrderedOver } from "./workload_ordered.ts";

/** Names may hold anything. */
const WORKERS = ["worker-1", "wörker 2", "worker/3?x=#", "4", "worker|5"] as const;
const CLIENTS = ["client-1", "client 2 ☂"] as const;

const STEP_MAX_MS = 20;
const WORKER_HEARTBEAT_MS = 1_000;
const CLIENT_TIMINGS = { refreshMs: 200, requestTimeoutMs: 1_000 };
const OUTSTANDING: [number, ...number[]] = [1, 4, 16];

/** Runs one seed. */
export async function runPipelines(options: RunOptions): Promise<RunOutcome> {
  const luck = new SimCluster({ seed: options.seed }).random.fork("random pipeline");
  const pipeline = drawPipeline(luck);
  const mode = luck.pick(["DYNAMIC", "OFF", "DETERMINISTIC"]) as ShardingPolicy;
  const outcome = mode === ShardingPolicy.DETERMINISTIC
    ? await runInOrder(pipeline, 1 + luck.int(2), options)
    : await runWithoutOrder(pipeline, mode, options);
  const what = `${mode} of ${pipeline.text}`;
  return { ...outcome, violations: outcome.violations.map((each) => `${each} [${what}]`) };
}

async function runWithoutOrder(
  pipeline: RandomPipeline,
  mode: ShardingPolicy,
  options: RunOptions,
): Promise<RunOutcome> {
  using run = new PipelineRun(options, pipeline, mode);
  return await outcomeOf(run, ({ bag }) => bag.delivered);
}

/** The reference is itself checked, against the plain definitions. */
async function runInOrder(
  { make, bag, isExact }: RandomPipeline,
  epochs: number,
  options: RunOptions,
): Promise<RunOutcome> {
  const wanted: string[] = [];
  const values: number[] = [];
  await referenceRun(make, epochs, (given) => {
    wanted.push(textOf(given));
    if ("error" in given) throw given.error;
    values.push(...valuesOf(given.element));
  });
  const outcome = await runOrderedOver({ make, epochs, wanted }, options);
  if (!isExact || isSame(bagOf(values), bag, epochs)) return outcome;
  return {
    ...outcome,
    violations: [
      ...outcome.violations,
      `definitions: the stream has ${values.length} values that differ from what operators say`,
    ],
    checkers: [...outcome.checkers, "definitions"],
  };
}

function isSame(found: Bag, once: Bag, times: number): boolean {
  return found.size === once.size &&
    [...once].every(([value, count]) => found.get(value) === count * times);
}

class PipelineRun implements Disposable {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly bag: BagChecker;
  readonly #handover = new HandoverChecker(this.violations.by("handover"));
  /** The values of all that tasks have made. */
  readonly #made: number[] = [];
  readonly #pipeline: RandomPipeline;
  readonly #mode: ShardingPolicy;
  readonly #workers: readonly string[];
  readonly #clients: readonly string[];
  readonly #crashes: Crashes;
  readonly #trainings = new Trainings(this.violations.by("training"));
  readonly #readings = new Readings();
  readonly #maxOutstandingRequests: number;
  readonly #timings: ServiceTimings;
  readonly #tasked = new TaskedWorkers();
  #workerLives = 0;

  constructor(
    { seed, faults, readable = false, crashes = [], crashPoint }: RunOptions,
    pipeline: RandomPipeline,
    mode: ShardingPolicy,
  ) {
    this.#pipeline = pipeline;
    this.#mode = mode;
    this.cluster = new SimCluster({ seed, faults, readable });
    const luck = this.cluster.random.fork("pipelines");
    this.#workers = WORKERS.slice(0, 1 + luck.int(WORKERS.length));
    this.#clients = CLIENTS.slice(0, 1 + luck.int(CLIENTS.length));
    this.#maxOutstandingRequests = luck.pick(OUTSTANDING);
    const { bag, pool, isExact } = pipeline;
    const isOff = mode === ShardingPolicy.OFF;
    this.bag = new BagChecker(
      isOff && isExact ? bag : pool,
      () => isOff ? this.#workerLives : 1,
      this.violations.by("values"),
    );
    this.cluster.addNode(DISPATCHER_NODE, bootDispatcher());
    this.#timings = drawTimings(this.cluster, {
      worker: { heartbeatMs: WORKER_HEARTBEAT_MS },
      client: CLIENT_TIMINGS,
    });
    for (const name of this.#workers) {
      this.cluster.addNode(name, (node) => {
        this.#workerLives++;
        if (isOff) this.#tasked.watch(node);
        this.#bootWorker(node);
      });
    }
    for (const name of this.#clients) {
      this.cluster.addNode(
        name,
        (node) => this.#trainings.begin(node, (who, luck) => this.#train(node, who, luck)),
      );
    }
    this.#crashes = new Crashes(this.cluster, {
      nodes: { dispatcher: [DISPATCHER_NODE], worker: this.#workers, client: this.#clients },
      roles: crashes,
      point: crashPoint,
      onCrash: (node) => this.#trainings.crashed(node),
    });
  }

  async toTheEnd(): Promise<void> {
    const haveEnded = () => this.#trainings.haveEnded(this.#clients);
    await runThroughTrouble(this.cluster, this.#crashes, haveEnded);
    this.#handover.expectAll();
    const { bag, isExact, isDivisible } = this.#pipeline;
    const isOff = this.#mode === ShardingPolicy.OFF;
    const haveWorkersLived = this.#workerLives === this.#workers.length;
    if (!haveWorkersLived || !(isOff ? isExact : isDivisible && isExact)) return;
    if (this.#clients.every((name) => this.cluster.node(name).lives === 1)) {
      return this.bag.expectAll(bag, isOff ? this.#tasked.count : 1);
    }
    // Under OFF it is not known which worker came to the job when its last client was at the end.
    if (isOff || isSame(bagOf(this.#made), bag, 1)) return;
    this.violations.by("values").add(
      `tasks have made ${this.#made.length} values that differ from what operators say`,
    );
  }

  [Symbol.dispose](): void {
    this.#readings[Symbol.dispose]();
  }

  #bootWorker(node: SimNode): void {
    const made = this.#handover.worker(node.lifetime());
    const onMade = (frame: Uint8Array) => {
      const element = decodeMessage(frame);
      made(textOf({ element }));
      this.#made.push(...valuesOf(element));
    };
    bootWorker(
      this.#timings.worker,
      (host) => watchedRunners(new PipelineRunners(host), onMade),
    )(node);
  }

  async #train(node: SimNode, who: string, luck: SimRandom): Promise<void> {
    const handedOver = this.#handover.consumer(who, node.lifetime());
    node.system.inspect(handedOver.observe);
    const distributed = (service: string): Dataset<unknown> =>
      this.#pipeline.make().distribute({
        service,
        processingMode: this.#mode,
        jobName: "job",
        maxOutstandingRequests: this.#maxOutstandingRequests,
      });
    const iterator = this.#readings.open(node, distributed, this.#timings.client);
    await takeAll(iterator, async (element) => {
      handedOver.took(textOf({ element }));
      for (const value of valuesOf(element)) this.bag.took(value, who);
      this.#crashes.delivered(this.bag.delivered);
      await node.host.sleep(luck.between(0, STEP_MAX_MS));
    });
  }
}
