/**
 * A small cluster that reads some epochs of one DYNAMIC job: a dispatcher, three workers, and two
 * or three clients, which may be in different epochs. In some runs clients leave epochs early.
 *
 * Promises: no element of an epoch is received twice. If no client has crashed or left early, each
 * element is received once in every epoch, except those that a crashed worker held. Once the
 * cluster has healed, every client reaches the end of the last epoch.
 */
import { Dataset } from "../../data/dataset.ts";
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { Violations } from "../checkers/checker.ts";
import { DeliveryChecker } from "../checkers/deliveries.ts";
import { SplitLedger } from "../checkers/splits/split_ledger.ts";
import { SimCluster } from "../engine/cluster.ts";
import { pacedBy } from "../faults/paced_runners.ts";
import { bootDispatcher, bootWorker } from "../engine/service.ts";
import { withFailures } from "../checkers/failing_elements.ts";
import { nextOrFailed } from "./lib/reading.ts";
import { TaskLives } from "./lib/task_lives.ts";
import { type Trainer, Trainers } from "./lib/trainers.ts";
import { outcomeOf, type RunOptions, type RunOutcome } from "./workload.ts";

/** Number of elements of an epoch. */
const ELEMENTS = 16;
const EPOCHS_MIN = 2;
const EPOCHS_MAX = 3;
const WORKERS = ["worker-1", "worker-2", "worker-3"] as const;
const CLIENTS = ["client-1", "client-2", "client-3"] as const;

/** Maximum training step, in ms. In some runs clients are epochs apart. */
const STEP_MAX_MS: [number, ...number[]] = [20, 20, 100];
/** Maximum time of a worker per element, in ms. */
const WORK_MAX_MS: [number, ...number[]] = [0, 0, 20];
const OUTSTANDING: [number, ...number[]] = [1, 2, 16];
/** Percentage of epochs that a client leaves early, and the latest element at which it does. */
const LEFT_EARLY_PERCENT: [number, ...number[]] = [0, 30];
const LEFT_AFTER_MAX = 4;

/**
 * Longer than a run, because a crashed client starts with the first epoch again, whose elements must not
 * be delivered twice.
 */
const JOB_GC_TIMEOUT_MS = 120_000;

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
  readonly #trainers: Trainers;
  readonly #epochs: number;
  readonly #stepMaxMs: number;
  readonly #leftEarlyPercent: number;
  readonly #isFailing: boolean;
  #leftEarly = 0;

  constructor(options: RunOptions) {
    this.cluster = new SimCluster(options);
    const rng = this.cluster.random.fork("epochs");
    this.#isFailing = options.failing ?? false;
    this.#epochs = EPOCHS_MIN + rng.int(EPOCHS_MAX - EPOCHS_MIN + 1);
    const clients = CLIENTS.slice(0, 2 + rng.int(2));
    this.#stepMaxMs = rng.pick(STEP_MAX_MS);
    const maxOutstandingRequests = rng.pick(OUTSTANDING);
    this.#leftEarlyPercent = rng.pick(LEFT_EARLY_PERCENT);
    this.deliveries = new DeliveryChecker(
      ELEMENTS * this.#epochs,
      this.violations.by("deliveries"),
    );
    const boot = bootDispatcher({ jobGcTimeoutMs: JOB_GC_TIMEOUT_MS });
    const pace = pacedBy(rng.pick(WORK_MAX_MS), rng.fork("work"));
    this.#trainers = new Trainers({
      cluster: this.cluster,
      violations: this.violations,
      run: options,
      dispatcher: (node) => {
        node.system.inspect(this.#ledger.observe);
        boot(node);
      },
      workers: WORKERS,
      worker: (settings) => {
        const boot = bootWorker(settings, pace);
        return (node) => {
          this.#taskLives.watch(node);
          boot(node);
        };
      },
      clients,
      train: (trainer) => this.#train(trainer),
      processingMode: ShardingPolicy.DYNAMIC,
      maxOutstandingRequests,
    });
  }

  async toTheEnd(): Promise<void> {
    await this.#trainers.toTheEnd();
    if (!this.#trainers.haveLived || this.#leftEarly > 0) return;
    this.#ledger.expectLost(this.deliveries.missing(), (taskId) => this.#taskLives.isOver(taskId));
  }

  [Symbol.dispose](): void {
    this.#trainers[Symbol.dispose]();
  }

  async #train(trainer: Trainer): Promise<void> {
    const numbers = Dataset.range(ELEMENTS);
    const next = trainer.dataset(() => this.#isFailing ? withFailures(numbers) : numbers);
    for (let epoch = 0; epoch < this.#epochs; epoch++) {
      const leaves = trainer.rng.int(100) < this.#leftEarlyPercent;
      const elementsMax = leaves ? trainer.rng.int(LEFT_AFTER_MAX + 1) : Infinity;
      await using iterator = next();
      await this.#read(iterator, trainer, epoch, elementsMax);
    }
  }

  async #read(
    iterator: DatasetIterator<number>,
    { who, step }: Trainer,
    epoch: number,
    elementsMax: number,
  ): Promise<void> {
    for (let taken = 0; taken < elementsMax; taken++) {
      const { done, value } = await nextOrFailed(iterator);
      if (done) return;
      const timeMs = this.cluster.scheduler.nowUs / 1_000;
      this.deliveries.took({ element: epoch * ELEMENTS + value, consumer: who, timeMs });
      await step(this.deliveries.delivered, this.#stepMaxMs);
    }
    this.#leftEarly++;
    this.cluster.counters.tally("epoch_left_early");
  }
}
