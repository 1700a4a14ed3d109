/**
 * A cluster whose workers start and stop, and one to three consumers of one DETERMINISTIC stream. Each
 * consumer saves its position from time to time. When a consumer crashes, it or another node continues
 * from that position, and the others continue from theirs.
 *
 * In some runs no client is declared lost, and the consumers read several epochs, of a `repeat` or of
 * iterators of one dataset. Each consumer moves to the next epoch separately. When a consumer crashes
 * there, all restart from the last step that all have saved, as a launcher of training programs does. In
 * half of all runs each such start has a `runId`. Then readers of the previous start may live on for a
 * while, and some starts follow a failed start of one consumer. Without a `runId` the launcher also
 * restarts all consumers when they wait for each other in different epochs.
 *
 * Promises: with any faults and any number of workers, consumer i of n receives every n-th element of the
 * canonical stream of each epoch from the i-th on, in order. Once the cluster has healed, all consumers
 * reach the end. Consumers that name their runs are refused only if a later run replaced theirs.
 */
import { LeatError } from "../../core/error.ts";
import type { Dataset } from "../../data/dataset.ts";
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import { Violations } from "../checkers/checker.ts";
import { RunsChecker } from "../checkers/runs.ts";
import { StreamChecker } from "../checkers/stream.ts";
import { SimCluster } from "../engine/cluster.ts";
import { type Consumer, type ConsumersPlan, epochsOf, type Process } from "./lib/consumers_plan.ts";
import { Crashes, crashesRole } from "../faults/crashes.ts";
import { SimFleet } from "../engine/fleet.ts";
import type { SimNode } from "../engine/node.ts";
import { PIPELINE_NAMES, type PipelineName, pipelineOf } from "../reference/ordered_pipelines.ts";
import type { SimRandom } from "../engine/random.ts";
import { Launcher } from "./lib/launcher.ts";
import { type NextIterator, Readings, take, Trainings } from "./lib/reading.ts";
import { textOf } from "../reference/reference_stream.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "../engine/service.ts";
import { drawStreamTimings, type ServiceTimings } from "../engine/timings.ts";
import { outcomeOf, type RunOptions, type RunOutcome, runThroughTrouble } from "./workload.ts";

const CONSUMERS_MAX = 3;
const EPOCHS: [number, ...number[]] = [1, 1, 2, 3];
const WORKERS_MAX = 5;
/** How long workers start and stop, in ms. */
const CHANGES_MS = 5_000;
/** A restarting dispatcher reads a snapshot and up to this many records. */
const JOURNAL_RECORDS_MAX = 20;

const STEP_MAX_MS = 20;
const SAVE_PROBABILITY = 0.3;
/** Number of steps between checkpoints, if all save at the same steps. */
const SAVE_EVERY_STEPS = 3;
/** Probability that a consumer moves to another process without a crash, after saving. */
const MOVE_PROBABILITY = 0.05;
/** Probability that a reader survives the end of its run. */
const LINGER_PROBABILITY = 0.5;
/** Time of a start in vain, in ms. */
const STRAY_MS = 1_000;
/** Number of epochs that a surviving reader tries to read. */
const LINGER_EPOCHS = 3;
/**
 * Time in ms without an element for any consumer, after which a consumer that has ended restarts, or all
 * consumers do.
 */
const STUCK_MS = 8_000;
/** Delay before a consumer restarts, or checks again whether others have, in ms. */
const PAUSE_MS = 300;

/**
 * Timeouts of a dispatcher that must not declare clients lost: longer than any fault, in ms.
 */
const CLIENT_TIMEOUTS = { clientTimeoutMs: 30_000, clientGraceMs: 30_000 };

/** Number of splits that are assigned beyond the slowest consumer. */
const WINDOW_SPLITS = 8;

export async function runConsumers(options: RunOptions): Promise<RunOutcome> {
  const rng = new SimCluster({ seed: options.seed }).random.fork("pipeline");
  const pipeline = rng.pick(PIPELINE_NAMES);
  const epochs = rng.fork("count of epochs").pick(EPOCHS);
  const areApart = epochs > 1 && rng.fork("iterators").chance(0.5);
  const areNamed = rng.fork("runs").chance(0.5);
  const all = await epochsOf(pipeline, epochs);
  using run = new ConsumersRun(options, { pipeline, areApart, areNamed, epochs: all });
  if (areNamed) run.cluster.counters.tally("runs_named");
  if (epochs > 1) run.cluster.counters.tally("several_epochs");
  return await outcomeOf(run, ({ delivered }) => delivered);
}

class ConsumersRun implements Disposable {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly #pipeline: PipelineName;
  readonly #epochs: number;
  readonly #areApart: boolean;
  readonly #areNamed: boolean;
  /** Whether all consumers restart when one crashes. */
  readonly #areOneGroup: boolean;
  /** Whether no reader has taken the place of others so far, and the dispatcher takes none for lost. */
  #areOnly: boolean;
  /** Readers of earlier starts, in processes that live on. */
  readonly #lingering: DatasetIterator<unknown>[] = [];
  readonly #consumers: readonly Consumer[];
  readonly #launcher: Launcher;
  readonly #fleet: SimFleet;
  readonly #timings: ServiceTimings;
  readonly #crashes: Crashes;
  readonly #trainings = new Trainings(this.violations.by("training"));
  readonly #readings = new Readings();
  readonly #runs = new RunsChecker(this.violations.by("runs"));
  /** When any consumer last received an element. */
  #progressUs = 0;

  constructor(options: RunOptions, { pipeline, areApart, areNamed, epochs }: ConsumersPlan) {
    const { seed, faults, readable = false, crashes = [], crashPoint } = options;
    this.#pipeline = pipeline;
    this.#areApart = areApart;
    this.#areNamed = areNamed;
    this.#epochs = epochs.length;
    this.#areOneGroup = areNamed || this.#epochs > 1;
    this.cluster = new SimCluster({ seed, faults, readable });
    const rng = this.cluster.random.fork("consumers");
    const count = 1 + rng.int(CONSUMERS_MAX);
    this.#timings = drawStreamTimings(this.cluster, rng);
    const { dispatcher, worker, areOfProduction } = this.#timings;
    this.#areOnly = areOfProduction && !areNamed && !crashesRole("client", options);
    const windows = { windowSplits: WINDOW_SPLITS, journalRecordsMax: JOURNAL_RECORDS_MAX };
    const timeouts = this.#areOneGroup ? CLIENT_TIMEOUTS : {};
    const config = { ...dispatcher, ...windows, ...timeouts };
    this.cluster.addNode(DISPATCHER_NODE, (node) => {
      node.system.inspect(this.#runs.observe);
      bootDispatcher(config, this.#runs)(node);
    });
    const workers = 1 + rng.int(3);
    this.#fleet = new SimFleet(this.cluster, workers, bootWorker(worker));
    this.#consumers = Array.from({ length: count }, (_, index) => {
      const nodes = [`trainer-${index}a`, `trainer-${index}b`];
      const own = epochs.map((all) => all.filter((_, position) => position % count === index));
      const stream = new StreamChecker(own.flat(), this.violations.by("stream"));
      const ends = own.map((_, epoch) => own.slice(0, epoch + 1).flat().length);
      const begin = { active: nodes[0]!, position: 0, hasEnded: false };
      return { index, nodes, stream, ends, saved: new Map(), ...begin };
    });
    this.#launcher = new Launcher(this.cluster, this.#consumers, {
      startsInVain: areNamed ? (rng) => this.#startInVain(rng) : undefined,
    });
    for (const consumer of this.#consumers) {
      for (const name of consumer.nodes) {
        this.cluster.addNode(name, (node) => this.#begin(consumer, node));
      }
    }
    this.#crashes = new Crashes(this.cluster, {
      nodes: {
        dispatcher: [DISPATCHER_NODE],
        worker: this.#fleet.all,
        client: this.#consumers.map(({ nodes }) => nodes[0]!),
      },
      roles: crashes,
      point: crashPoint,
      onCrash: (node) => this.#crashed(node, rng),
    });
  }

  get delivered(): number {
    return this.#consumers.reduce((sum, { stream }) => sum + stream.furthest, 0);
  }

  async toTheEnd(): Promise<void> {
    const { scheduler } = this.cluster;
    this.#fleet.changeNowAndThen({
      min: 1,
      max: WORKERS_MAX,
      until: () => scheduler.nowUs > 1_000 * CHANGES_MS,
    }).catch((error) => this.violations.by("fleet").add(LeatError.from(error).message));
    if (this.#areOneGroup && !this.#areNamed) this.#restartWhenApart();
    await runThroughTrouble(this.cluster, this.#crashes, () => this.#isDone);
    for (const iterator of this.#lingering) iterator.return()?.catch(() => {});
  }

  [Symbol.dispose](): void {
    this.#readings[Symbol.dispose]();
  }

  /** Whether consumers may wait for one that has ended, which must restart and read its end again. */
  get #isStuck(): boolean {
    return !this.#isDone && this.cluster.scheduler.nowUs - this.#progressUs > 1_000 * STUCK_MS;
  }

  get #isDone(): boolean {
    return this.#consumers.every(({ hasEnded }) => hasEnded);
  }

  /** Handles a crash: the consumer moves to another node, or continues on its node after the restart. */
  #crashed(node: SimNode, rng: SimRandom): void {
    this.#trainings.crashed(node);
    const consumer = this.#consumers.find(({ active }) => active === node.name);
    if (consumer === undefined) return;
    consumer.hasEnded = false;
    if (this.#areOneGroup) this.#launcher.restartAll();
    if (rng.chance(0.5)) this.#move(consumer);
  }

  /**
   * Restarts all consumers when they wait for each other in different epochs. Without a `runId`, a
   * consumer that enters an epoch which another has finished waits there for the other, which waits in
   * the next epoch. From checkpoints of different epochs they would wait again, so those are dropped.
   */
  #restartWhenApart(): void {
    if (this.#isStuck && mayBeApart(this.#consumers)) {
      this.#progressUs = this.cluster.scheduler.nowUs;
      for (const { saved } of this.#consumers) {
        for (const step of saved.keys()) {
          if (isAcrossEpochs(this.#consumers, step)) saved.delete(step);
        }
      }
      this.#areOnly = false;
      this.#launcher.restartAll();
    }
    this.cluster.after(PAUSE_MS, "launcher looks", () => this.#restartWhenApart());
  }

  /** Starts one consumer alone, in vain. Its reader may live on. */
  async #startInVain(rng: SimRandom): Promise<void> {
    const consumer = rng.pick(this.#consumers as [Consumer, ...Consumer[]]);
    const node = this.cluster.node(consumer.active);
    if (!node.isUp) return;
    const next = this.#dataset(consumer, node);
    const iterator = next();
    const [, checkpoint] = [...consumer.saved].at(-1) ?? [0];
    if (checkpoint !== undefined) await iterator.restore(checkpoint.token);
    const given = await Promise.race([take(iterator).catch(() => undefined), this.#wait()]);
    this.cluster.counters.tally("started_in_vain");
    // A reader that has received nothing by then ends, as if its process was killed.
    const lingers = given !== undefined && rng.chance(LINGER_PROBABILITY);
    if (lingers) this.#linger(iterator, next).catch(() => {});
    else await Promise.race([iterator.return(), this.#wait()]);
  }

  /** Lets a replaced reader read on for a while, despite errors, and also other epochs. */
  async #linger(iterator: DatasetIterator<unknown>, next: NextIterator<unknown>): Promise<void> {
    for (let epoch = 0; epoch < LINGER_EPOCHS; epoch++) {
      const reading = epoch === 0 ? iterator : next();
      this.#lingering.push(reading);
      for (;;) {
        const given = await take(reading);
        if (given === undefined || given === "lost" || "error" in given) break;
      }
    }
  }

  /** Waits for the time of a start in vain, whatever the state of the nodes. */
  #wait(): Promise<undefined> {
    return new Promise((resolve) =>
      this.cluster.after(STRAY_MS, "started in vain", () => resolve(undefined))
    );
  }

  #move(consumer: Consumer): void {
    // Its next reader replaces those of the others, too.
    this.#areOnly = false;
    consumer.active = consumer.nodes.find((name) => name !== consumer.active)!;
    this.cluster.counters.tally("consumer_moved");
    const node = this.cluster.node(consumer.active);
    if (node.isUp) this.#begin(consumer, node);
  }

  #begin(consumer: Consumer, node: SimNode): void {
    if (consumer.active !== node.name) return;
    consumer.hasEnded = false;
    const { lives } = node;
    const isActive = () => consumer.active === node.name && node.isUp && node.lives === lives;
    this.#trainings.begin(
      node,
      (who, rng) => this.#train(consumer, { node, who, rng, isActive }),
    );
  }

  /** Reads from the consumer's position to the end, and then stays, because the others may restart. */
  async #train(consumer: Consumer, process: Process): Promise<void> {
    const { node, rng } = process;
    let next: NextIterator<unknown> | undefined;
    while (process.isActive()) {
      await this.#launcher.launched();
      if (!process.isActive()) return;
      const { restart } = this.#launcher;
      // A program may continue with the same dataset, unless each start has a name.
      const isSame = this.#areApart && !this.#areNamed && consumer.saved.size > 0 &&
        rng.chance(0.5);
      if (next === undefined || !isSame) next = this.#dataset(consumer, node);
      const outcome = await this.#readOn(consumer, process, next);
      if (outcome === "restarted") continue;
      if (outcome === "moves") return this.#move(consumer);
      if (outcome === "lost") {
        if (this.#areNamed && this.#launcher.restart === restart) {
          this.violations.by("runs").add(
            `${process.who} was fenced, and no later run replaced its own`,
          );
        }
        this.cluster.counters.tally("consumer_lost");
        await node.host.sleep(PAUSE_MS);
        continue;
      }
      consumer.hasEnded = true;
      // Waits even if all have ended, because a consumer that crashes now may need the others again.
      while ((this.#areOneGroup || !this.#isStuck) && this.#launcher.restart === restart) {
        await node.host.sleep(PAUSE_MS);
      }
      this.#progressUs = this.cluster.scheduler.nowUs;
      consumer.hasEnded = false;
      // It reads its end again, by a reader that replaces those of the others.
      this.#areOnly = false;
    }
  }

  async #readOn(
    consumer: Consumer,
    { node, who, rng, isActive }: Process,
    next: NextIterator<unknown>,
  ): Promise<"end" | "lost" | "moves" | "restarted"> {
    const { saved, stream } = consumer;
    const { restart } = this.#launcher;
    const [begin, checkpoint] = [...saved].at(-1) ?? [0];
    let position = consumer.position = begin;
    let iterator = next();
    let epoch = checkpoint?.epoch ?? 0;
    if (checkpoint !== undefined) await iterator.restore(checkpoint.token);
    else saved.set(0, { token: await iterator.save(), epoch });
    for (;;) {
      const reader = { isRestored: checkpoint !== undefined, isOnly: () => this.#areOnly };
      const taken = take(iterator, reader).catch((error) => {
        // A reader of a replaced run is refused.
        if (!this.#areNamed || this.#launcher.restart === restart) throw error;
        return "restarted" as const;
      });
      const given = await Promise.race([taken, restart]);
      if (given === "restarted" && !isActive()) return given;
      if (given === "lost" || given === undefined || given === "restarted") {
        // The launcher has ended the processes that have received nothing.
        const hasReceived = this.#areNamed && position > begin;
        const lingers = hasReceived && given === "restarted" && rng.chance(LINGER_PROBABILITY);
        if (lingers) this.#linger(iterator, next).catch(() => {});
        else await iterator.return();
        if (given !== undefined) return given;
        if (!this.#areApart || epoch + 1 === this.#epochs) {
          stream.ended(position, who);
          return "end";
        }
        epoch++;
        iterator = next();
        continue;
      }
      this.#progressUs = this.cluster.scheduler.nowUs;
      stream.took(position++, textOf(given), who);
      consumer.position = position;
      this.#crashes.delivered(this.delivered);
      if (this.#isSaving(position, rng)) {
        const token = await iterator.save();
        // A consumer that must restart keeps no later checkpoint.
        if (this.#launcher.restart === restart) saved.set(position, { token, epoch });
        if (!this.#areOneGroup && rng.chance(MOVE_PROBABILITY)) {
          await iterator.return();
          return "moves";
        }
      }
      await node.host.sleep(rng.between(0, STEP_MAX_MS));
    }
  }

  #isSaving(position: number, rng: SimRandom): boolean {
    return this.#areOneGroup ? position % SAVE_EVERY_STEPS === 0 : rng.chance(SAVE_PROBABILITY);
  }

  #dataset({ index }: Consumer, node: SimNode): NextIterator<unknown> {
    const distributed = (service: string): Dataset<unknown> => {
      const once = pipelineOf(this.#pipeline).distribute({
        service,
        processingMode: "DETERMINISTIC",
        jobName: "job",
        numConsumers: this.#consumers.length,
        consumerIndex: index,
        ...(this.#areNamed ? { runId: this.#launcher.runId } : {}),
      });
      return this.#areApart ? once : once.repeat(this.#epochs);
    };
    return this.#readings.dataset(node, distributed, this.#timings.client);
  }
}

/** Whether one consumer may wait in an epoch that another has finished. */
function mayBeApart(consumers: readonly Consumer[]): boolean {
  if (consumers.some(({ hasEnded }) => hasEnded)) return true;
  // A consumer that has all elements of an epoch either still waits for its end, or reads the next.
  return consumers.some((ahead) => {
    const latest = ahead.ends.filter((end) => end <= ahead.position).length;
    return consumers.some((other) => other !== ahead && epochAt(other, other.position) < latest);
  });
}

/** Whether the consumers save in different epochs after this number of steps. */
function isAcrossEpochs(consumers: readonly Consumer[], step: number): boolean {
  return new Set(consumers.map((consumer) => epochAt(consumer, step))).size > 1;
}

/** The epoch of the element before a position. */
function epochAt({ ends }: Consumer, position: number): number {
  return ends.filter((end) => end < position).length;
}
