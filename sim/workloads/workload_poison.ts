/**
 * A job that kills its runners, next to a healthy job on the same workers. Its pipeline is OFF or DYNAMIC
 * and ends its runner after a few elements, or DETERMINISTIC with a split that ends it after some of the
 * split's elements. In some runs it kills instead the runner that lists the splits. It kills once or
 * twice, or always.
 *
 * Promises, however often workers and dispatcher crash:
 * - A pipeline that always kills fails its job, and its trainer gets the error. No more new runners are
 *   allowed than the limit, and afterwards no worker gets a task of the job.
 * - A pipeline that kills once or twice does not fail its job, and a DETERMINISTIC stream loses nothing.
 * - The healthy DYNAMIC job delivers every element, as if it were alone.
 */
import { RUNNERS_DIED } from "../../actors/dispatcher/jobs/runner_deaths.ts";
import { PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import type { OwnStep } from "../../actors/worker/runner/runner.ts";
import { LeatError } from "../../core/error.ts";
import { Dataset } from "../../data/dataset.ts";
import type { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { DeliveryChecker } from "../checkers/deliveries.ts";
import { PoisonChecker } from "../checkers/poison.ts";
import { Violations } from "../checkers/checker.ts";
import { SimCluster } from "../engine/cluster.ts";
import { Crashes } from "../faults/crashes.ts";
import { dyingRunners } from "../faults/dying_runners.ts";
import type { SimHost } from "../host.ts";
import type { SimNode } from "../engine/node.ts";
import { pacedRunners } from "../faults/paced_runners.ts";
import type { SimRandom } from "../engine/random.ts";
import { Readings, Trainings } from "./lib/reading.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "../engine/service.ts";
import { drawTimings, type ServiceTimings } from "../engine/timings.ts";
import { outcomeOf, type RunOptions, type RunOutcome, runThroughTrouble } from "./workload.ts";

const SPLITS = 10;
/** Under DETERMINISTIC, a runner may die within a split, when the reader has a part of it. */
const SPLIT_ELEMENTS = 4;
const ELEMENTS = SPLITS * SPLIT_ELEMENTS;
const WORKERS = ["worker-1", "worker-2", "worker-3"] as const;
const [VICTIM, BYSTANDER] = ["victim", "bystander"];
const MODES: [ShardingPolicy, ...ShardingPolicy[]] = ["OFF", "DYNAMIC", "DETERMINISTIC"];
/** Maximum number of runners that the poison kills. */
const KILLS: [number, ...number[]] = [Infinity, Infinity, 2, 1];
/** How often the listing kills, where the mode lists splits. */
const LISTERS_CHANCE = 0.25;
/** Number of deaths that fail a job. */
const DEATHS_MAX = 3;
/** A runner dies after fewer steps than this; under DETERMINISTIC, of its fatal split. */
const STEPS_MAX = SPLIT_ELEMENTS;
/** A restarting dispatcher reads a snapshot and up to this many records. */
const JOURNAL_RECORDS_MAX = 20;
const STEP_MAX_MS = 20;
const WORK_MAX_MS = 20;
const QUICK = {
  worker: { heartbeatMs: 1_000 },
  client: { refreshMs: 200, requestTimeoutMs: 1_000 },
};

export async function runPoison(options: RunOptions): Promise<RunOutcome> {
  using run = new PoisonRun(options);
  return await outcomeOf(run, ({ delivered }) => delivered);
}

const HEALTHY = Dataset.range(ELEMENTS);
/** The poisoned dataset. A name in its graph distinguishes its tasks from the others. */
const POISONED = Dataset.range(SPLITS).flatMap(
  (split, { Dataset, poison, length }) =>
    Dataset.range(split * length + poison, (split + 1) * length),
  { captures: { poison: 0, length: SPLIT_ELEMENTS } },
);
const MARK = "poison";

class PoisonRun implements Disposable {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly #bystander = new DeliveryChecker(ELEMENTS, this.violations.by("deliveries"));
  readonly #poison = new PoisonChecker(this.violations.by("poison"), DEATHS_MAX);
  readonly #trainings = new Trainings(this.violations.by("training"));
  readonly #readings = new Readings();
  readonly #crashes: Crashes;
  readonly #timings: ServiceTimings;
  readonly #mode: ShardingPolicy;
  readonly #kills: number;
  /** Whether the listing of splits kills, and no step. */
  readonly #killsListers: boolean;
  readonly #workersCrash: boolean;
  #deaths = 0;

  constructor({ seed, faults, crashes = [], crashPoint, readable = false }: RunOptions) {
    this.cluster = new SimCluster({ seed, faults, readable });
    const rng = this.cluster.random.fork("poison");
    this.#mode = rng.pick(MODES);
    this.#kills = rng.pick(KILLS);
    const split = rng.int(SPLITS);
    this.#killsListers = this.#mode !== "OFF" && rng.fork("listers").chance(LISTERS_CHANCE);
    // A job restarts when its trainer opens it again, so trainers do not crash.
    const roles = crashes.filter((role) => role !== "client");
    const point = crashPoint?.role === "client" ? undefined : crashPoint;
    this.#workersCrash = roles.includes("worker") || point?.role === "worker";
    this.#timings = drawTimings(this.cluster, QUICK);
    this.cluster.addNode(DISPATCHER_NODE, (node) => this.#bootDispatcher(node));
    const steps = rng.fork("steps");
    for (const name of WORKERS) {
      const boot = bootWorker(this.#timings.worker, (host) => this.#runners(host, split, steps));
      this.cluster.addNode(name, boot);
    }
    this.cluster.addNode(VICTIM!, (node) => this.#begin(node, () => this.#readPoisoned(node)));
    this.cluster.addNode(BYSTANDER!, (node) => this.#begin(node, () => this.#readHealthy(node)));
    this.#crashes = new Crashes(this.cluster, {
      nodes: { dispatcher: [DISPATCHER_NODE], worker: WORKERS, client: [VICTIM!, BYSTANDER!] },
      roles,
      point,
      onCrash: () => {},
    });
  }

  get delivered(): number {
    return this.#bystander.delivered;
  }

  async toTheEnd(): Promise<void> {
    const haveEnded = () => this.#trainings.haveEnded([VICTIM!, BYSTANDER!]);
    await runThroughTrouble(this.cluster, this.#crashes, haveEnded);
    // A crashed worker loses the elements of a DYNAMIC job that it held.
    if (!this.#workersCrash) this.#bystander.expectAll();
  }

  [Symbol.dispose](): void {
    this.#readings[Symbol.dispose]();
  }

  #bootDispatcher(node: SimNode): void {
    node.system.inspect(this.#poison.observe);
    bootDispatcher({ journalRecordsMax: JOURNAL_RECORDS_MAX }, this.#poison)(node);
  }

  /** @param split The poisoned split under DETERMINISTIC. */
  #runners(host: SimHost, split: number, rng: SimRandom) {
    const runners = pacedRunners(
      new PipelineRunners(host),
      () => host.sleep(rng.between(0, WORK_MAX_MS)),
    );
    return dyingRunners(runners, {
      isIn: (graph) => new TextDecoder().decode(graph).includes(MARK),
      killer: () => {
        const after = rng.int(STEPS_MAX);
        /** Steps of the runner so far, those of other splits than the fatal one left out. */
        let steps = 0;
        return (ownStep) =>
          !this.#killsListers && this.#isFatal(split, ownStep) && steps++ >= after &&
          this.#deaths < this.#kills;
      },
      killsLister: () => this.#killsListers && this.#deaths < this.#kills,
      onDeath: () => {
        this.#deaths++;
        this.cluster.counters.tally(this.#killsListers ? "lister_died" : "runner_died");
      },
    });
  }

  #isFatal(split: number, ownStep: OwnStep | undefined): boolean {
    if (this.#mode !== "DETERMINISTIC") return true;
    return ownStep !== undefined && "index" in ownStep && ownStep.index === split;
  }

  #begin(node: SimNode, read: () => Promise<void>): void {
    this.#trainings.begin(node, read);
  }

  async #readHealthy(node: SimNode): Promise<void> {
    for await (const element of this.#open(node, HEALTHY, "DYNAMIC")) {
      const timeMs = this.cluster.scheduler.nowUs / 1_000;
      this.#bystander.took({ element, consumer: BYSTANDER!, timeMs });
      await this.#step(node);
    }
  }

  async #readPoisoned(node: SimNode): Promise<void> {
    const iterator = this.#open(node, POISONED, this.#mode);
    const given: unknown[] = [];
    const found = this.violations.by("poison");
    let failed = 0;
    for (;;) {
      try {
        const { done, value } = await iterator.next();
        if (done) break;
        given.push(value);
      } catch (error) {
        const { code, details, message } = LeatError.from(error);
        if (details?.["reason"] === RUNNERS_DIED) {
          this.cluster.counters.tally("job_failed");
          if (code !== "aborted" || this.#kills < DEATHS_MAX) {
            found.add(`its trainer got ${code}: ${message}`);
          }
          return await iterator.return?.().then(() => {});
        }
        if (details?.["reason"] !== "runner_died") throw error;
        failed++;
      }
      await this.#step(node);
    }
    // If crashing workers lose most splits, too few runners die.
    const mustFail = this.#mode === "DETERMINISTIC" || this.#killsListers ||
      this.#deaths >= DEATHS_MAX;
    if (this.#kills === Infinity && mustFail) {
      found.add("its trainer got the end, and no failure");
    }
    if (failed > (this.#killsListers ? 0 : this.#deaths)) {
      found.add(`${failed} elements failed of ${this.#deaths} deaths`);
    }
    if (this.#mode !== "DETERMINISTIC") return;
    const whole = Array.from({ length: ELEMENTS }, (_, element) => element);
    if (failed > 0 || String(given) !== String(whole)) {
      found.add(`of a stream whose runners died ${this.#deaths} times was given ${given}`);
    }
  }

  async #step({ host, world }: SimNode): Promise<void> {
    this.#crashes.delivered(this.delivered);
    await host.sleep(world.random.int(STEP_MAX_MS));
  }

  #open<T>(node: SimNode, dataset: Dataset<T>, processingMode: ShardingPolicy) {
    const jobName = node.name;
    const distributed = (service: string) =>
      dataset.distribute({ service, processingMode, jobName });
    return this.#readings.open(node, distributed, this.#timings.client);
  }
}
