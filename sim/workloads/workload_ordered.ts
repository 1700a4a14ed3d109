/**
 * A small cluster that reads one dataset under `DETERMINISTIC` sharding: a dispatcher, three workers and
 * a trainer. The trainer saves its iterator from time to time. It continues from a checkpoint after a
 * crash, when another reader replaced it, or without a reason. Sometimes this is a much earlier
 * checkpoint, while its previous iterator is still open. Epochs are those of a `repeat`, or of the
 * iterators that a program opens of one dataset, one after the other.
 *
 * Promises: the training loop receives the canonical stream, each element once and in order. No
 * split is produced beyond the window. Once the cluster has healed, the loop reaches the end, and
 * nothing of the job is left anywhere.
 */
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../core/error.ts";
import type { Dataset } from "../../data/dataset.ts";
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import { Violations } from "../checkers/checker.ts";
import { SplitWindowChecker } from "../checkers/splits/split_window.ts";
import { StreamChecker } from "../checkers/stream.ts";
import { SimCluster } from "../engine/cluster.ts";
import { Crashes, crashesRole } from "../faults/crashes.ts";
import type { SimNode } from "../engine/node.ts";
import { PIPELINE_NAMES, pipelineOf, streamOf } from "../reference/ordered_pipelines.ts";
import type { SimRandom } from "../engine/random.ts";
import { type NextIterator, Readings, take, Trainings } from "./lib/reading.ts";
import { textOf } from "../reference/reference_stream.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "../engine/service.ts";
import { drawStreamTimings, type ServiceTimings } from "../engine/timings.ts";
import {
  outcomeOf,
  type RunOptions,
  type RunOutcome,
  runThroughTrouble,
  runUntil,
} from "./workload.ts";

const WORKERS = ["worker-1", "worker-2", "worker-3"] as const;
const TRAINER = "trainer";
const NODES = { dispatcher: [DISPATCHER_NODE], worker: WORKERS, client: [TRAINER] } as const;

/** Maximum training step, in ms. */
const STEP_MAX_MS = 20;
/**
 * Probabilities, per element, that the loop saves its iterator, and that it then restores a new
 * one.
 */
const SAVE_PROBABILITY = 0.3;
const RESTORE_PROBABILITY = 0.1;
/** Probability, per element, that the loop goes back to any checkpoint, and how often it may go back. */
const GO_BACK_PROBABILITY = 0.1;
const GO_BACKS_MAX = 3;
/** Delay before the loop tries again to be the reader, in ms. */
const LOST_PAUSE_MS = 500;
/** Timeouts of requests for the dispatcher's state, in ms. */
const DESCRIBE_TIMEOUT_MS = 60_000;
const DESCRIBE_ATTEMPT_MS = 500;
/** Number of splits that are assigned beyond the reader's mark. */
const WINDOW_SPLITS = 8;
/** Sizes of the reader's buffer for elements out of order: about one batch, a few batches, or all. */
const WINDOW_BYTES: [number, ...number[]] = [100, 1_000, 2 ** 20];

/** The dataset that is read, and its expected stream. */
interface OrderedStream {
  readonly make: () => Dataset<unknown>;
  readonly epochs: number;
  /** Whether each epoch has its own iterator. */
  readonly areApart: boolean;
  /** All epochs, as texts. */
  readonly wanted: readonly string[];
}

export async function runOrdered(options: RunOptions): Promise<RunOutcome> {
  const rng = new SimCluster({ seed: options.seed }).random.fork("pipeline");
  const pipeline = rng.pick(PIPELINE_NAMES);
  const epochs = 1 + rng.int(2);
  const areApart = epochs > 1 && rng.chance(0.5);
  const wanted = await streamOf(pipeline, epochs);
  const make = () => pipelineOf(pipeline);
  return await runOrderedOver({ make, epochs, areApart, wanted }, options);
}

/** Runs one seed over that stream. */
export async function runOrderedOver(
  stream: OrderedStream,
  options: RunOptions,
): Promise<RunOutcome> {
  using run = new OrderedRun(options, stream);
  return await outcomeOf(run, ({ stream }) => stream.furthest);
}

/** The start of an iterator. */
interface Beginning {
  readonly position: number;
  /** The epoch, if each has its own iterator. */
  readonly epoch: number;
  /** Whether this iterator, or that of an earlier epoch, was restored. */
  readonly isRestored: boolean;
}

/** The trainer's checkpoint on its disk. */
interface Saved extends Beginning {
  readonly token: Uint8Array;
}

const START: Beginning = { position: 0, epoch: 0, isRestored: false };

class OrderedRun implements Disposable {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly stream: StreamChecker;
  readonly #make: () => Dataset<unknown>;
  /** Number of iterators that read everything, and of repetitions in each. */
  readonly #iterators: number;
  readonly #repeats: number;
  readonly #windowBytes: number;
  readonly #timings: ServiceTimings;
  readonly #window = new SplitWindowChecker(WINDOW_SPLITS, this.violations.by("split window"));
  readonly #crashes: Crashes;
  readonly #trainings = new Trainings(this.violations.by("training"));
  readonly #readings = new Readings();
  /** Whether the dispatcher takes no reader for lost. */
  readonly #losesNoReader: boolean;
  readonly #saves: Saved[] = [];
  #goneBack = 0;
  /** The checkpoint from which the trainer continues. */
  #saved: Saved | undefined;

  constructor(options: RunOptions, { make, epochs, areApart, wanted }: OrderedStream) {
    const { seed, faults, readable = false, crashes = [], crashPoint } = options;
    this.#make = make;
    this.#iterators = areApart ? epochs : 1;
    this.#repeats = areApart ? 1 : epochs;
    this.stream = new StreamChecker(wanted, this.violations.by("stream"));
    this.cluster = new SimCluster({
      seed,
      faults,
      readable,
    });
    const rng = this.cluster.random.fork("timings");
    this.#windowBytes = rng.pick(WINDOW_BYTES);
    this.#timings = drawStreamTimings(this.cluster, rng);
    const { dispatcher, worker, areOfProduction } = this.#timings;
    this.#losesNoReader = areOfProduction && !crashesRole("client", options);
    const config = { ...dispatcher, windowSplits: WINDOW_SPLITS };
    this.cluster.addNode(DISPATCHER_NODE, bootDispatcher(config));
    for (const name of WORKERS) this.cluster.addNode(name, bootWorker(worker));
    this.cluster.addNode(TRAINER, (node) => this.#bootTrainer(node));
    this.#crashes = new Crashes(this.cluster, {
      nodes: NODES,
      roles: crashes,
      point: crashPoint,
      onCrash: (node) => this.#trainings.crashed(node),
    });
  }

  async toTheEnd(): Promise<void> {
    await runThroughTrouble(
      this.cluster,
      this.#crashes,
      () => this.#trainings.haveEnded([TRAINER]),
    );
    await this.#expectNothingLeft();
  }

  [Symbol.dispose](): void {
    this.#readings[Symbol.dispose]();
  }

  #bootTrainer(node: SimNode): void {
    node.system.inspect(this.#window.observe);
    this.#trainings.begin(node, (who, rng) => this.#train(node, who, rng));
  }

  async #train(node: SimNode, who: string, rng: SimRandom): Promise<void> {
    const { counters } = this.cluster;
    /** An iterator that is still open while the next one reads. */
    let leftOpen: DatasetIterator<unknown> | undefined;
    let hasRival = false;
    let next = this.#dataset(node);
    let begin = this.#saved ?? START;
    for (;;) {
      const iterator = next();
      const outcome = await this.#readOn(iterator, begin, { node, who, rng, hasRival });
      await leftOpen?.return();
      leftOpen = undefined;
      if (outcome === "goes back") leftOpen = iterator;
      else await iterator.return();
      if (typeof outcome === "object") {
        if (begin.epoch + 1 === this.#iterators) return this.stream.ended(outcome.endedAt, who);
        const { epoch, isRestored } = begin;
        begin = { position: outcome.endedAt, epoch: epoch + 1, isRestored };
        counters.tally("epoch_begun");
        continue;
      }
      counters.tally(leftOpen === undefined ? "iterator_restored" : "iterator_left_open");
      hasRival = leftOpen !== undefined && begin.isRestored;
      begin = this.#saved ?? START;
      // An iterator that is not restored would be the next epoch's.
      const isSame = this.#iterators > 1 && "token" in begin && rng.chance(0.5);
      if (!isSame) next = this.#dataset(node);
    }
  }

  /**
   * Reads an iterator to its end, or until another is to be restored.
   * @param at.hasRival Whether another restored iterator was left open when the last one was restored.
   *   It takes the stream over if its first request arrives later.
   */
  async #readOn(
    iterator: DatasetIterator<unknown>,
    begin: Beginning | Saved,
    { node, who, rng, hasRival }: {
      node: SimNode;
      who: string;
      rng: SimRandom;
      hasRival: boolean;
    },
  ): Promise<{ readonly endedAt: number } | "restores" | "goes back"> {
    if ("token" in begin) await iterator.restore(begin.token);
    for (let { position } = begin;; position++) {
      const given = await take(iterator, {
        isRestored: begin.isRestored && !hasRival,
        isOnly: () => this.#losesNoReader && this.#goneBack === 0,
      });
      if (given === "lost") {
        await node.host.sleep(LOST_PAUSE_MS);
        return "restores";
      }
      if (given === undefined) return { endedAt: position };
      this.stream.took(position, textOf(given), who);
      this.#crashes.delivered(this.stream.furthest);
      if (rng.chance(SAVE_PROBABILITY)) {
        const token = await iterator.save();
        this.#saved = { token, position: position + 1, epoch: begin.epoch, isRestored: true };
        this.#saves.push(this.#saved);
        if (rng.chance(RESTORE_PROBABILITY)) return "restores";
      }
      if (this.#goesBack(rng)) return "goes back";
      await node.host.sleep(rng.between(0, STEP_MAX_MS));
    }
  }

  #goesBack(rng: SimRandom): boolean {
    const [first, ...others] = this.#saves;
    if (first === undefined || this.#goneBack === GO_BACKS_MAX) return false;
    if (!rng.chance(GO_BACK_PROBABILITY)) return false;
    this.#goneBack++;
    this.#saved = rng.pick([first, ...others]);
    return true;
  }

  #dataset(node: SimNode): NextIterator<unknown> {
    const distributed = (service: string) => {
      const job = { service, processingMode: "DETERMINISTIC", jobName: "job" } as const;
      const once = this.#make().distribute(job);
      return this.#repeats === 1 ? once : once.repeat(this.#repeats);
    };
    return this.#readings.dataset(node, distributed, {
      ...this.#timings.client,
      bufferBytesMax: this.#windowBytes,
    });
  }

  /**
   * Waits until no task, reader or job is left, because finished jobs must be removed once vanished
   * clients have timed out.
   */
  async #expectNothingLeft(): Promise<void> {
    // This node does not crash any more.
    const { host, system } = this.cluster.node(WORKERS.at(-1)!);
    const isLeft = () =>
      this.cluster.nodes.filter(({ isUp }) => isUp).flatMap(({ system }) => system.actors())
        .some(({ kind }) => kind === "task" || kind === "client");
    let jobs = Infinity;
    const look = async () => {
      const limits = { timeoutMs: DESCRIBE_TIMEOUT_MS, attemptMs: DESCRIBE_ATTEMPT_MS };
      while (jobs > 0) {
        const dispatcher = dispatcherAt(DISPATCHER_NODE);
        jobs = (await system.ask(dispatcher, "describe", null, limits)).jobs.length;
        await host.sleep(DESCRIBE_ATTEMPT_MS);
      }
    };
    look().catch((error) => this.violations.by("leftovers").add(LeatError.from(error).message));
    await runUntil(
      this.cluster,
      () => jobs === 0 && this.#crashes.over && !isLeft(),
      "the job and its tasks are gone",
    );
  }
}
