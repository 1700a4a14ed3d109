/**
 * A cluster whose number of workers follows the autoscaler. The scaler of production starts and stops the
 * workers of a simulated fleet, while trainers read at changing speed.
 *
 * Promises:
 * - Under `DYNAMIC`, no element is delivered twice, and all are delivered if workers stop gracefully and
 *   no node crashes. Under `DETERMINISTIC`, the canonical stream is delivered.
 * - The number of workers stays within its limits.
 * - In a healed cluster with a constant load, the scaler looks regularly, and the number of workers
 *   settles. It stays when the dispatcher restarts.
 */
import { checkScaling, type ScalingOptions } from "../../actors/dispatcher/scaling/autoscaler.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import type { DispatcherDescription } from "../../actors/dispatcher/protocol_figures.ts";
import { PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import { LeatError } from "../../core/error.ts";
import { Dataset } from "../../data/dataset.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { autoscale, type Scaler, type ScalingStep } from "../../server/cluster/scaler.ts";
import { Violations } from "../checkers/checker.ts";
import { DeliveryChecker } from "../checkers/deliveries.ts";
import { StreamChecker } from "../checkers/stream.ts";
import {
  type AutoscalingPace,
  autoscalingPace,
  STEADY_WORKERS,
  STEADY_WORKERS_MIN,
} from "./lib/autoscaling_pace.ts";
import { SimCluster } from "../engine/cluster.ts";
import { Crashes, crashesRole } from "../faults/crashes.ts";
import { OPERATOR_NODE, SimFleet } from "../engine/fleet.ts";
import type { SimHost } from "../host.ts";
import type { SimNode } from "../engine/node.ts";
import { PIPELINE_NAMES, pipelineOf, streamOf } from "../reference/ordered_pipelines.ts";
import { pacedRunners } from "../faults/paced_runners.ts";
import type { SimRandom } from "../engine/random.ts";
import { Readings, take, takeAll, type Timings, Trainings } from "./lib/reading.ts";
import { textOf } from "../reference/reference_stream.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "../engine/service.ts";
import { drawTimings, FIRST_ANSWER_TIMEOUT_MS, type ServiceTimings } from "../engine/timings.ts";
import {
  outcomeOf,
  type RunOptions,
  type RunOutcome,
  runThroughTrouble,
  runUntil,
} from "./workload.ts";

const TRAINERS = ["trainer-1", "trainer-2"] as const;
const SPLITS = 30;
const WORKERS_MIN: [number, ...number[]] = [0, 1, 2];
const WORKERS_MAX: [number, ...number[]] = [2, 3, 5];

/** Probability, per element, that a trainer of a DETERMINISTIC stream saves its position. */
const SAVE_PROBABILITY = 0.3;
/** Delay before a reader that the dispatcher does not know any more tries again, in ms. */
const LOST_PAUSE_MS = 300;

/** Downtime of a restarting dispatcher, in ms. */
const AWAY_MS = 500;

/** Quick timings. */
const SCALING = { intervalMs: 1_000, measureMs: 3_000, downAfterMs: 4_000 };
const WORKER = { heartbeatMs: 1_000 };
const CLIENT = { refreshMs: 1_000, requestTimeoutMs: 2_000 };
/** Probability that an operator of a run with the timings of production makes scaling faster. */
const SOONER_PROBABILITY = 0.5;
const SOONER = { intervalMs: 1_000, downAfterMs: 4_000 };

export async function runAutoscaling(options: RunOptions): Promise<RunOutcome> {
  const rng = new SimCluster({ seed: options.seed }).random.fork("mode");
  const pipeline = rng.pick(PIPELINE_NAMES);
  const job = rng.chance(0.5)
    ? new DynamicJob()
    : new OrderedJob(() => pipelineOf(pipeline), await streamOf(pipeline, 1));
  using run = new AutoscalingRun(options, job);
  return await outcomeOf(run, ({ delivered }) => delivered);
}

/** What trainers read while the number of workers changes. */
interface Job {
  readonly trainers: readonly string[];
  /** Timeout of a client with quick timings, in ms. */
  readonly clientTimeoutMs: number;
  readonly delivered: number;
  /** A training program: reads to the end. */
  train(run: AutoscalingRun, node: SimNode, who: string, rng: SimRandom): Promise<void>;
  /** Called when all trainers have reached the end. @param isWhole Whether no element may be missing. */
  ended(isWhole: boolean): void;
  /** Called before the run begins. */
  watch(violations: Violations): void;
}

class AutoscalingRun implements Disposable {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly readings = new Readings();
  readonly #job: Job;
  readonly #crashes: Crashes;
  readonly #fleet: SimFleet;
  readonly #limits: { readonly minWorkers: number; readonly maxWorkers: number };
  /** Whether no trainer and no worker crashes. */
  readonly #losesNothing: boolean;
  /** Whether no trainer crashes, and the dispatcher takes none for lost. */
  readonly areTrainersKept: boolean;
  readonly #trainings = new Trainings(this.violations.by("training"));
  readonly #scaler: Scaler;
  readonly #timings: ServiceTimings;
  readonly #scaling: Required<ScalingOptions>;
  readonly #pace: AutoscalingPace;
  /** How much of the first phase has passed when the run begins, in ms. */
  readonly #aheadMs: number;
  /** Number of looks of the scaler since it last changed the number of workers. */
  #looks = 0;
  /** Number of workers according to the dispatcher's last answer. */
  #counted = 0;
  /**
   * When the previous look got an answer in a healed cluster; undefined if it got none, or if something
   * has failed since.
   */
  #answeredUs: number | undefined;
  #hasHealed = false;
  #stops = 0;

  constructor(options: RunOptions, job: Job) {
    const { seed, faults, readable = false, crashes = [], crashPoint } = options;
    this.#job = job;
    job.watch(this.violations);
    const trainersCrash = crashesRole("client", options);
    this.#losesNothing = !trainersCrash && !crashesRole("worker", options);
    this.cluster = new SimCluster({ seed, faults, readable });
    const rng = this.cluster.random.fork("autoscaling");
    this.#limits = { minWorkers: rng.pick(WORKERS_MIN), maxWorkers: rng.pick(WORKERS_MAX) };
    const { clientTimeoutMs } = job;
    this.#timings = drawTimings(this.cluster, {
      dispatcher: { scaling: SCALING, clientTimeoutMs, clientGraceMs: clientTimeoutMs },
      worker: WORKER,
      client: CLIENT,
    });
    const { dispatcher, areOfProduction } = this.#timings;
    this.areTrainersKept = areOfProduction && !trainersCrash;
    const operators = rng.fork("scaling").chance(SOONER_PROBABILITY) ? SOONER : {};
    this.#scaling = checkScaling(dispatcher.scaling ?? operators);
    this.#pace = autoscalingPace(this.#scaling);
    this.#aheadMs = rng.between(0, this.#pace.fastMs);
    const config = { ...dispatcher, scaling: this.#scaling };
    this.cluster.addNode(DISPATCHER_NODE, bootDispatcher(config));
    const workers = Math.max(1, this.#limits.minWorkers);
    const boot = (node: SimNode) => this.#bootWorker(node);
    this.#fleet = new SimFleet(this.cluster, workers, boot, this.#pace.drainMs);
    for (const name of job.trainers) {
      this.cluster.addNode(name, (node) => {
        this.#trainings.begin(node, (who, rng) => job.train(this, node, who, rng));
      });
    }
    this.#crashes = new Crashes(this.cluster, {
      nodes: { dispatcher: [DISPATCHER_NODE], worker: this.#fleet.all, client: job.trainers },
      roles: crashes,
      point: crashPoint,
      onCrash: (node) => {
        this.#trainings.crashed(node);
        // Only the scaler starts a worker that has ended.
        if (this.#fleet.all.includes(node.name)) void node.stop();
      },
    });
    this.#scaler = this.#startScaler();
  }

  get delivered(): number {
    return this.#job.delivered;
  }

  /** Timings of trainers. They buffer so little that workers hold elements while trainers are slow. */
  get reading(): Timings {
    return { ...this.#timings.client, bufferBytesMax: 1 };
  }

  async toTheEnd(): Promise<void> {
    const haveEnded = () => this.#trainings.haveEnded(this.#job.trainers);
    await runThroughTrouble(this.cluster, this.#crashes, haveEnded, this.#pace.livenessMaxMs);
    this.#job.ended(this.#losesNothing && !this.#fleet.hasCutShort);
    await this.#expectSettled();
    let isClosed = false;
    this.#scaler.close().then(() => isClosed = true);
    await runUntil(this.cluster, () => isClosed, "the scaler has ended");
  }

  [Symbol.dispose](): void {
    this.readings[Symbol.dispose]();
  }

  async step({ host }: SimNode, rng: SimRandom): Promise<void> {
    this.#crashes.delivered(this.delivered);
    const { fastMs, slowMs, stepMaxMs } = this.#pace;
    const atMs = (this.cluster.scheduler.nowUs / 1_000 + this.#aheadMs) % (fastMs + slowMs);
    await host.sleep(rng.between(0, atMs < fastMs ? stepMaxMs.fast : stepMaxMs.slow));
  }

  #bootWorker(node: SimNode): void {
    const { maxWorkers } = this.#limits;
    const up = this.cluster.nodes.filter(({ name, isUp }) => isUp && name.startsWith("worker-"));
    if (up.length > maxWorkers) {
      this.violations.by("size").add(`there are ${up.length} workers of at most ${maxWorkers}`);
    }
    const { workMs } = this.#pace;
    const work = (host: SimHost) => () =>
      host.sleep(this.#hasHealed ? workMs.steady : workMs.changing);
    bootWorker(
      this.#timings.worker,
      (host) => pacedRunners(new PipelineRunners(host), work(host)),
    )(node);
  }

  #startScaler(): Scaler {
    const { world } = this.cluster.node(OPERATOR_NODE);
    return autoscale({
      dispatcher: { describe: () => this.#describe() },
      fleet: this.#fleet,
      ...this.#limits,
      intervalMs: this.#scaling.intervalMs,
      timer: (delayMs, fn) => world.timer(delayMs, fn),
      onStep: (step) => this.#noteStep(step),
    });
  }

  async #describe(): Promise<DispatcherDescription> {
    const { nowUs } = this.cluster.scheduler;
    const sinceMs = (nowUs - (this.#answeredUs ?? nowUs)) / 1_000;
    if (sinceMs > this.#pace.lookWithinMs) {
      this.violations.by("pace").add(`the scaler looked ${sinceMs} ms after it was answered`);
    }
    this.#answeredUs = undefined;
    const { system } = this.cluster.node(OPERATOR_NODE);
    const limits = { timeoutMs: this.#pace.describeTimeoutMs };
    const state = await system.ask(dispatcherAt(DISPATCHER_NODE), "describe", null, limits);
    this.#looks++;
    this.#counted = state.scaling.workers;
    if (this.#hasHealed) this.#answeredUs = this.cluster.scheduler.nowUs;
    return state;
  }

  #noteStep({ action }: ScalingStep): void {
    this.#looks = 0;
    // After a failure the scaler waits longer, though it got an answer.
    if (action === "fail") this.#answeredUs = undefined;
    if (action !== "stop") return;
    this.#stops++;
    const remaining = this.#fleet.names.length - 1;
    if (remaining >= this.#limits.minWorkers) return;
    this.violations.by("size").add(
      `${remaining} workers are left of ${this.#limits.minWorkers} or more`,
    );
  }

  /** Checks that the number of workers settles under a constant load, and stays after a restart. */
  async #expectSettled(): Promise<void> {
    const { scheduler } = this.cluster;
    const { settledMs, afterRestartMs, livenessMaxMs } = this.#pace;
    const settledLooks = settledMs / this.#scaling.intervalMs;
    this.#looks = 0;
    this.#hasHealed = true;
    const node = this.cluster.node(this.#job.trainers[0]!);
    let isOver = false;
    this.#loadConstantly(node, () => isOver).catch((error) =>
      this.violations.by("training").add(LeatError.from(error).message)
    );
    // A restarted dispatcher keeps the workers that it counts, so none of them may be dead.
    const hasSettled = () =>
      this.#looks > settledLooks && this.#counted === this.#fleet.names.length;
    const what = "the number of workers has settled";
    await runUntil(this.cluster, hasSettled, what, livenessMaxMs);
    const [size, stops] = [this.#fleet.names.length, this.#stops];
    const needed = Math.min(STEADY_WORKERS_MIN, this.#limits.maxWorkers);
    if (size < needed) {
      this.violations.by("settled").add(`${size} workers are there of the ${needed} that it needs`);
    }
    const dispatcher = this.cluster.node(DISPATCHER_NODE);
    dispatcher.crash();
    this.cluster.after(AWAY_MS, "restart", () => dispatcher.start());
    const untilUs = scheduler.nowUs + 1_000 * (AWAY_MS + afterRestartMs);
    const isLate = () => scheduler.nowUs >= untilUs;
    await runUntil(this.cluster, isLate, "the time is over", livenessMaxMs);
    isOver = true;
    // A restarted dispatcher has forgotten that fewer workers were too few, so it tries them again.
    const { length: remaining } = this.#fleet.names;
    const isEnough = remaining >= Math.min(size, STEADY_WORKERS);
    if (isEnough && remaining <= size && this.#stops - stops === size - remaining) return;
    this.violations.by("settled").add(
      `of ${size} workers ${remaining} are there after a restart of the dispatcher`,
    );
  }

  async #loadConstantly(node: SimNode, isOver: () => boolean): Promise<void> {
    const steady = (service: string) =>
      Dataset.range(SPLITS).repeat()
        .distribute({ service, processingMode: ShardingPolicy.OFF, jobName: "steady" });
    const iterator = this.readings.open(node, steady, this.#timings.client);
    while (!isOver()) {
      await take(iterator);
      await node.host.sleep(this.#pace.steadyStepMs);
    }
    await iterator.return();
  }
}

class DynamicJob implements Job {
  readonly trainers = TRAINERS;
  readonly clientTimeoutMs = FIRST_ANSWER_TIMEOUT_MS;
  #deliveries!: DeliveryChecker;

  get delivered(): number {
    return this.#deliveries.delivered;
  }

  watch(violations: Violations): void {
    this.#deliveries = new DeliveryChecker(SPLITS, violations.by("deliveries"));
  }

  async train(run: AutoscalingRun, node: SimNode, consumer: string, rng: SimRandom) {
    const dataset = (service: string) =>
      Dataset.range(SPLITS)
        .distribute({
          service,
          processingMode: ShardingPolicy.DYNAMIC,
          jobName: "job",
          maxOutstandingRequests: 2,
        });
    const iterator = run.readings.open(node, dataset, run.reading);
    await takeAll(iterator, async (element) => {
      const timeMs = run.cluster.scheduler.nowUs / 1_000;
      this.#deliveries.took({ element, consumer, timeMs });
      await run.step(node, rng);
    });
  }

  ended(isWhole: boolean): void {
    if (isWhole) this.#deliveries.expectAll(1);
  }
}

class OrderedJob implements Job {
  readonly trainers = TRAINERS.slice(0, 1);
  /**
   * Short, because a reader that timed out continues from its position. So it is not refused for long
   * because of its previous life.
   */
  readonly clientTimeoutMs = 10_000;
  #stream!: StreamChecker;
  readonly #wanted: readonly string[];
  readonly #make: () => Dataset<unknown>;
  /** The trainer's checkpoint on its disk. */
  #saved: { readonly token: Uint8Array; readonly position: number } | undefined;

  constructor(make: () => Dataset<unknown>, wanted: readonly string[]) {
    this.#make = make;
    this.#wanted = wanted;
  }

  get delivered(): number {
    return this.#stream.furthest;
  }

  watch(violations: Violations): void {
    this.#stream = new StreamChecker(this.#wanted, violations.by("stream"));
  }

  async train(run: AutoscalingRun, node: SimNode, who: string, rng: SimRandom): Promise<void> {
    while (!await this.#readOn(run, node, who, rng)) await node.host.sleep(LOST_PAUSE_MS);
  }

  /** Checks nothing, because a reader that has reached the end has received everything. */
  ended(): void {}

  /** Reads from the last checkpoint. Returns whether it has reached the end of the stream. */
  async #readOn(run: AutoscalingRun, node: SimNode, who: string, rng: SimRandom) {
    const dataset = (service: string) =>
      this.#make().distribute({
        service,
        processingMode: "DETERMINISTIC",
        jobName: "job",
        maxOutstandingRequests: 2,
      });
    const iterator = run.readings.open(node, dataset, run.reading);
    const saved = this.#saved;
    if (saved !== undefined) await iterator.restore(saved.token);
    for (let position = saved?.position ?? 0;; position++) {
      const given = await take(iterator, { isOnly: () => run.areTrainersKept });
      if (given === "lost") {
        await iterator.return();
        return false;
      }
      if (given === undefined) {
        this.#stream.ended(position, who);
        return true;
      }
      this.#stream.took(position, textOf(given), who);
      if (rng.chance(SAVE_PROBABILITY)) {
        this.#saved = { token: await iterator.save(), position: position + 1 };
      }
      await run.step(node, rng);
    }
  }
}
