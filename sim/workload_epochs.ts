/**
 * A small cluster that reads some epochs of one DYNAMIC job: a dispatcher, three workers, and two or three
 * clients, each in an epoch of its own at times. In some runs clients leave epochs before their end.
 *
 * What must hold: no element of an epoch is taken twice, whatever happens; if no client has crashed or
 * left early, each is taken once in every epoch but for those that a worker held which has crashed; and
 * once the cluster has healed, every client reaches the end of the last epoch.
 *
 * @module
 */
import { Dataset } from "../data/dataset.ts";
import { ShardingPolicy } from "../data/sharding_policy.ts";
import { Violations } from "./checkers/checker.ts";
import { DeliveryChecker } from "./checkers/deliveries.ts";
import { SplitLedger } from "./checkers/split_ledger.ts";
import { SimCluster } from "./cluster.ts";
import { Crashes } from "./crashes.ts";
import type { SimNode } from "./node.ts";
import { pacedBy } from "./paced_runners.ts";
import type { SimRandom } from "./random.ts";
import { Readings, Trainings } from "./reading.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "./service.ts";
import { TaskLives } from "./task_lives.ts";
import { drawTimings, type ServiceTimings } from "./timings.ts";
import { outcomeOf, type RunOptions, type RunOutcome, runThroughTrouble } from "./workload.ts";

/** Of an epoch. */
const ELEMENTS = 16;
const EPOCHS_MIN = 2;
const EPOCHS_MAX = 3;
const WORKERS = ["worker-1", "worker-2", "worker-3"] as const;
const CLIENTS = ["client-1", "client-2", "client-3"] as const;

/** How long a training step takes at most, in ms: in some runs clients are epochs apart. */
const STEP_MAX_MS: [number, ...number[]] = [20, 20, 100];
/** What an element costs a worker at most, in ms. */
const WORK_MAX_MS: [number, ...number[]] = [0, 0, 20];
const OUTSTANDING: [number, ...number[]] = [1, 2, 16];
/** How many epochs of a hundred a client leaves early, and after how many elements at most. */
const LEFT_EARLY_PERCENT: [number, ...number[]] = [0, 30];
const LEFT_AFTER_MAX = 4;

const WORKER_HEARTBEAT_MS = 1_000;
const CLIENT_TIMINGS = { refreshMs: 200, requestTimeoutMs: 1_000 };
/** Longer than a run: who crashes begins with the first epoch again, which is over and not to be given anew. */
const JOB_GC_TIMEOUT_MS = 120_000;

/** Runs one seed. */
export async function runEpochs(options: RunOptions): Promise<RunOutcome> {
  using run = new EpochsRun(options);
  return await outcomeOf(run, ({ deliveries }) => deliveries.delivered);
}

class EpochsRun implements Disposable {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly deliveries: DeliveryChecker;
  readonly #ledger = new SplitLedger(this.violations.by("splits"), ELEMENTS);
  readonly #taskLives = new TaskLives();
  readonly #trainings = new Trainings(this.violations.by("training"));
  readonly #readings = new Readings();
  readonly #crashes: Crashes;
  readonly #timings: ServiceTimings;
  readonly #clients: readonly string[];
  readonly #epochs: number;
  readonly #stepMaxMs: number;
  readonly #maxOutstandingRequests: number;
  readonly #leftEarlyPercent: number;
  #leftEarly = 0;

  constructor({ seed, faults, readable = false, crashes = [], crashPoint }: RunOptions) {
    this.cluster = new SimCluster({ seed, faults, readable });
    const luck = this.cluster.random.fork("epochs");
    this.#epochs = EPOCHS_MIN + luck.int(EPOCHS_MAX - EPOCHS_MIN + 1);
    this.#clients = CLIENTS.slice(0, 2 + luck.int(2));
    this.#stepMaxMs = luck.pick(STEP_MAX_MS);
    this.#maxOutstandingRequests = luck.pick(OUTSTANDING);
    this.#leftEarlyPercent = luck.pick(LEFT_EARLY_PERCENT);
    this.deliveries = new DeliveryChecker(
      ELEMENTS * this.#epochs,
      this.violations.by("deliveries"),
    );
    this.#timings = drawTimings(this.cluster, {
      worker: { heartbeatMs: WORKER_HEARTBEAT_MS },
      client: CLIENT_TIMINGS,
    });
    const bootOne = bootDispatcher({ jobGcTimeoutMs: JOB_GC_TIMEOUT_MS });
    this.cluster.addNode(DISPATCHER_NODE, (node) => {
      node.system.inspect(this.#ledger.observe);
      bootOne(node);
    });
    const boot = bootWorker(
      this.#timings.worker,
      pacedBy(luck.pick(WORK_MAX_MS), luck.fork("work")),
    );
    for (const name of WORKERS) {
      this.cluster.addNode(name, (node) => {
        this.#taskLives.watch(node);
        boot(node);
      });
    }
    for (const name of this.#clients) {
      this.cluster.addNode(
        name,
        (node) => this.#trainings.begin(node, (who, luck) => this.#train(node, who, luck)),
      );
    }
    this.#crashes = new Crashes(this.cluster, {
      nodes: { dispatcher: [DISPATCHER_NODE], worker: WORKERS, client: this.#clients },
      roles: crashes,
      point: crashPoint,
      onCrash: (node) => this.#trainings.crashed(node),
    });
  }

  async toTheEnd(): Promise<void> {
    const haveEnded = () => this.#trainings.haveEnded(this.#clients);
    await runThroughTrouble(this.cluster, this.#crashes, haveEnded);
    const haveLived = this.#clients.every((name) => this.cluster.node(name).lives === 1);
    if (!haveLived || this.#leftEarly > 0) return;
    this.#ledger.expectLost(this.deliveries.missing(), (taskId) => this.#taskLives.isOver(taskId));
  }

  [Symbol.dispose](): void {
    this.#readings[Symbol.dispose]();
  }

  async #train(node: SimNode, who: string, luck: SimRandom): Promise<void> {
    for (let epoch = 0; epoch < this.#epochs; epoch++) {
      const leaves = luck.int(100) < this.#leftEarlyPercent;
      await this.#read(node, who, luck, {
        epoch,
        most: leaves ? luck.int(LEFT_AFTER_MAX + 1) : Infinity,
      });
    }
  }

  async #read(
    node: SimNode,
    who: string,
    luck: SimRandom,
    { epoch, most }: { readonly epoch: number; readonly most: number },
  ): Promise<void> {
    const distributed = (service: string): Dataset<number> =>
      Dataset.range(ELEMENTS).distribute({
        service,
        processingMode: ShardingPolicy.DYNAMIC,
        jobName: "job",
        maxOutstandingRequests: this.#maxOutstandingRequests,
      });
    await using iterator = this.#readings.open(node, distributed, this.#timings.client, epoch);
    for (let taken = 0; taken < most; taken++) {
      const { done, value } = await iterator.next();
      if (done) return;
      const timeMs = this.cluster.scheduler.nowUs / 1_000;
      this.deliveries.took({ element: epoch * ELEMENTS + value, consumer: who, timeMs });
      this.#crashes.delivered(this.deliveries.delivered);
      await node.host.sleep(luck.between(0, this.#stepMaxMs));
    }
    this.#leftEarly++;
    this.cluster.counters.tally("epoch_left_early");
  }
}
