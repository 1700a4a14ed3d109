/**
 * A cluster whose workers come and go, and one to three consumers of one DETERMINISTIC stream. Each
 * saves its place now and then; when one crashes, it or another node in its stead goes on from there,
 * and the others, whom that is told, go on from theirs. In some runs, in which none is thought lost,
 * they read several epochs, to the next of which each goes on by itself: those of a `repeat`, or of
 * the iterators that a program opens of one dataset. When one crashes there, all are begun again from
 * the last step that all have saved, as what launches training programs does it. In half of all runs
 * each such start has a `runId`; then readers of the last one may live on for a while, and before some
 * starts there is one that comes to nothing, of one consumer alone.
 *
 * What must hold: whatever happens, and however many workers there are by then, consumer i of n is
 * given every n-th element of the canonical stream of each epoch from the i-th on, each in its place;
 * and once the cluster has healed all of them reach the end. Consumers that name their runs are never
 * refused, but where their run was followed by another one.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";
import type { Dataset } from "../data/dataset.ts";
import type { DatasetIterator } from "../data/dataset_iterator.ts";
import { Violations } from "./checkers/checker.ts";
import { RunsChecker } from "./checkers/runs.ts";
import { StreamChecker } from "./checkers/stream.ts";
import { SimCluster } from "./cluster.ts";
import { type Consumer, type ConsumersPlan, epochsOf, type Process } from "./consumers_plan.ts";
import { Crashes } from "./crashes.ts";
import { SimFleet } from "./fleet.ts";
import type { SimNode } from "./node.ts";
import { PIPELINE_NAMES, type PipelineName, pipelineOf } from "./ordered_pipelines.ts";
import type { SimRandom } from "./random.ts";
import { type NextIterator, Readings, take, Trainings } from "./reading.ts";
import { textOf } from "./reference_stream.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE, watchedJournal } from "./service.ts";
import { drawStreamTimings, type ServiceTimings } from "./timings.ts";
import { outcomeOf, type RunOptions, type RunOutcome, runThroughTrouble } from "./workload.ts";

const CONSUMERS_MAX = 3;
const EPOCHS: [number, ...number[]] = [1, 1, 2, 3];
const WORKERS_MAX = 5;
/** For how long they come and go, in ms. */
const CHANGES_MS = 5_000;
/** A dispatcher that starts has a snapshot and some records to read. */
const JOURNAL_RECORDS_MAX = 20;

const STEP_MAX_MS = 20;
const SAVE_PROBABILITY = 0.3;
/** Where all save at the same steps: at every so manieth. */
const SAVE_EVERY_STEPS = 3;
/** How often a consumer goes on in another process though nothing has happened, after saving. */
const MOVE_PROBABILITY = 0.05;
/** How often the launcher starts one consumer alone, in vain, before it starts all of them. */
const STRAY_PROBABILITY = 0.5;
/** How often a reader lives on when its run is over, and how long that start which comes to nothing takes. */
const LINGER_PROBABILITY = 0.5;
const STRAY_MS = 1_000;
/** How many epochs it tries to read. */
const LINGER_EPOCHS = 3;
/** After how long without an element for anybody one that has ended comes again, in ms. */
const STUCK_MS = 8_000;
/** How long a consumer waits before it comes again, and looks whether others have, in ms. */
const PAUSE_MS = 300;

/** Of a dispatcher that is not to think consumers lost: longer than any trouble lasts, in ms. */
const CLIENT_PATIENCE = { clientTimeoutMs: 30_000, clientGraceMs: 30_000 };

/** How far beyond what all consumers have splits are handed out. */
const WINDOW_SPLITS = 8;

/** Runs one seed. */
export async function runConsumers(options: RunOptions): Promise<RunOutcome> {
  const luck = new SimCluster({ seed: options.seed }).random.fork("pipeline");
  const pipeline = luck.pick(PIPELINE_NAMES);
  const epochs = luck.fork("count of epochs").pick(EPOCHS);
  const areApart = epochs > 1 && luck.fork("iterators").chance(0.5);
  const areNamed = luck.fork("runs").chance(0.5);
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
  /** All begin again when one crashes. */
  readonly #areOneGroup: boolean;
  #starts = 1;
  #launch = Promise.resolve();
  /** Readers of earlier starts, in processes that live on. */
  readonly #lingering: DatasetIterator<unknown>[] = [];
  readonly #consumers: readonly Consumer[];
  readonly #fleet: SimFleet;
  readonly #timings: ServiceTimings;
  readonly #crashes: Crashes;
  readonly #trainings = new Trainings(this.violations.by("training"));
  readonly #readings = new Readings();
  readonly #runs = new RunsChecker(this.violations.by("runs"));
  /** What is settled when all have to begin again; another one from then on. */
  #restart = Promise.withResolvers<"restarted">();
  /** When anybody was given anything last. */
  #progressUs = 0;

  constructor(
    { seed, faults, readable = false, crashes = [], crashPoint }: RunOptions,
    { pipeline, areApart, areNamed, epochs }: ConsumersPlan,
  ) {
    this.#pipeline = pipeline;
    this.#areApart = areApart;
    this.#areNamed = areNamed;
    this.#epochs = epochs.length;
    this.#areOneGroup = areNamed || this.#epochs > 1;
    this.cluster = new SimCluster({ seed, faults, readable });
    const luck = this.cluster.random.fork("consumers");
    const count = 1 + luck.int(CONSUMERS_MAX);
    this.#timings = drawStreamTimings(this.cluster, luck);
    const { dispatcher, worker } = this.#timings;
    const windows = { windowSplits: WINDOW_SPLITS, journalRecordsMax: JOURNAL_RECORDS_MAX };
    const patience = this.#areOneGroup ? CLIENT_PATIENCE : {};
    const config = { ...dispatcher, ...windows, ...patience };
    const wrapJournal = watchedJournal((record) => this.#runs.journaled(record));
    this.cluster.addNode(DISPATCHER_NODE, bootDispatcher({ ...config, wrapJournal }));
    const workers = 1 + luck.int(3);
    this.#fleet = new SimFleet(this.cluster, workers, bootWorker(worker));
    this.#consumers = Array.from({ length: count }, (_, index) => {
      const nodes = [`trainer-${index}a`, `trainer-${index}b`];
      const own = epochs.flatMap((all) => all.filter((_, place) => place % count === index));
      const stream = new StreamChecker(own, this.violations.by("stream"));
      return { index, nodes, active: nodes[0]!, stream, saved: new Map(), hasEnded: false };
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
      onCrash: (node) => this.#crashed(node, luck),
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
    await runThroughTrouble(this.cluster, this.#crashes, () => this.#isDone);
    for (const iterator of this.#lingering) iterator.return()?.catch(() => {});
  }

  [Symbol.dispose](): void {
    this.#readings[Symbol.dispose]();
  }

  /** The others wait, for one that has ended, perhaps: of a stream begun anew it has to read its end. */
  get #isStuck(): boolean {
    return !this.#isDone && this.cluster.scheduler.nowUs - this.#progressUs > 1_000 * STUCK_MS;
  }

  get #isDone(): boolean {
    return this.#consumers.every(({ hasEnded }) => hasEnded);
  }

  /** Another node goes on in the stead of one that has crashed, or it does itself when it is back. */
  #crashed(node: SimNode, luck: SimRandom): void {
    this.#trainings.crashed(node);
    const consumer = this.#consumers.find(({ active }) => active === node.name);
    if (consumer === undefined) return;
    consumer.hasEnded = false;
    if (this.#areOneGroup) this.#restartAll();
    if (luck.chance(0.5)) this.#move(consumer);
  }

  /** From the last step that all have saved, or the first; what they have saved beyond it is forgotten. */
  #restartAll(): void {
    const all = this.#consumers.map(({ saved }) => new Set(saved.keys()));
    const step = Math.max(0, ...all.reduce((common, other) => common.intersection(other)));
    for (const { saved } of this.#consumers) {
      for (const position of saved.keys()) if (position > step) saved.delete(position);
    }
    this.cluster.counters.tally("consumers_restarted");
    this.#restart.resolve("restarted");
    this.#restart = Promise.withResolvers();
    this.#launch = this.#launch.then(() => this.#start());
  }

  /** All are started anew; in some runs one of them alone before, in vain. */
  async #start(): Promise<void> {
    const luck = this.cluster.random.fork(`start ${++this.#starts}`);
    if (!this.#areNamed || !luck.chance(STRAY_PROBABILITY)) return;
    await this.#startInVain(luck);
    this.#starts++;
  }

  /** The launcher starts one consumer alone, whose reader may live on. */
  async #startInVain(luck: SimRandom): Promise<void> {
    const consumer = luck.pick(this.#consumers as [Consumer, ...Consumer[]]);
    const node = this.cluster.node(consumer.active);
    if (!node.isUp) return;
    const next = this.#dataset(consumer, node);
    const iterator = next();
    const [, place] = [...consumer.saved].at(-1) ?? [0];
    if (place !== undefined) await iterator.restore(place.token);
    const given = await Promise.race([take(iterator).catch(() => undefined), this.#wait()]);
    this.cluster.counters.tally("started_in_vain");
    // One that has not come by then does not come any more: its process was ended.
    const lingers = given !== undefined && luck.chance(LINGER_PROBABILITY);
    if (lingers) this.#linger(iterator, next).catch(() => {});
    else await Promise.race([iterator.return(), this.#wait()]);
  }

  /** Its process reads on for a while, whatever it is told, and goes on to other epochs. */
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

  /** Whatever becomes of the nodes. */
  #wait(): Promise<undefined> {
    return new Promise((resolve) =>
      this.cluster.after(STRAY_MS, "started in vain", () => resolve(undefined))
    );
  }

  /** Who is started while the launcher starts all begins with them. */
  async #launched(): Promise<void> {
    for (let launch; launch !== this.#launch;) await (launch = this.#launch);
  }

  #move(consumer: Consumer): void {
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
      (who, luck) => this.#train(consumer, { node, who, luck, isActive }),
    );
  }

  /** Reads to the end, from wherever it has to go on; then it stays, for the others may begin anew. */
  async #train(consumer: Consumer, process: Process): Promise<void> {
    const { node, luck } = process;
    let next: NextIterator<unknown> | undefined;
    while (process.isActive()) {
      await this.#launched();
      if (!process.isActive()) return;
      const restart = this.#restart;
      // A program may go on with the dataset that it has; not where each start of it has a name.
      const isSame = this.#areApart && !this.#areNamed && consumer.saved.size > 0 &&
        luck.chance(0.5);
      if (next === undefined || !isSame) next = this.#dataset(consumer, node);
      const outcome = await this.#readOn(consumer, process, next);
      if (outcome === "restarted") continue;
      if (outcome === "moves") return this.#move(consumer);
      if (outcome === "lost") {
        if (this.#areNamed && this.#restart === restart) {
          this.violations.by("runs").add(
            `${process.who} was put out, and no run has followed its own`,
          );
        }
        this.cluster.counters.tally("consumer_lost");
        await node.host.sleep(PAUSE_MS);
        continue;
      }
      consumer.hasEnded = true;
      // Also when all have ended: one that crashes then may need the others again.
      while ((this.#areNamed || !this.#isStuck) && this.#restart === restart) {
        await node.host.sleep(PAUSE_MS);
      }
      this.#progressUs = this.cluster.scheduler.nowUs;
      consumer.hasEnded = false;
    }
  }

  async #readOn(
    consumer: Consumer,
    { node, who, luck, isActive }: Process,
    next: NextIterator<unknown>,
  ): Promise<"end" | "lost" | "moves" | "restarted"> {
    const { saved, stream } = consumer;
    const restart = this.#restart.promise;
    const [begin, place] = [...saved].at(-1) ?? [0];
    let position = begin;
    let iterator = next();
    let epoch = place?.epoch ?? 0;
    if (place !== undefined) await iterator.restore(place.token);
    else saved.set(0, { token: await iterator.save(), epoch });
    for (;;) {
      const taken = take(iterator, place !== undefined).catch((error) => {
        // Who is of a run that was followed is refused.
        if (!this.#areNamed || this.#restart.promise === restart) throw error;
        return "restarted" as const;
      });
      const given = await Promise.race([taken, restart]);
      if (given === "restarted" && !isActive()) return given;
      if (given === "lost" || given === undefined || given === "restarted") {
        // Of those that have not come yet the launcher has seen to it that they do not come any more.
        const hasCome = this.#areNamed && position > begin;
        const lingers = hasCome && given === "restarted" && luck.chance(LINGER_PROBABILITY);
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
      this.#crashes.delivered(this.delivered);
      if (this.#isSaving(position, luck)) {
        const token = await iterator.save();
        // Whoever is to begin again has no step after that.
        if (this.#restart.promise === restart) saved.set(position, { token, epoch });
        if (!this.#areOneGroup && luck.chance(MOVE_PROBABILITY)) {
          await iterator.return();
          return "moves";
        }
      }
      await node.host.sleep(luck.between(0, STEP_MAX_MS));
    }
  }

  #isSaving(position: number, luck: SimRandom): boolean {
    return this.#areOneGroup ? position % SAVE_EVERY_STEPS === 0 : luck.chance(SAVE_PROBABILITY);
  }

  #dataset({ index }: Consumer, node: SimNode): NextIterator<unknown> {
    const distributed = (service: string): Dataset<unknown> => {
      const once = pipelineOf(this.#pipeline).distribute({
        service,
        processingMode: "DETERMINISTIC",
        jobName: "job",
        numConsumers: this.#consumers.length,
        consumerIndex: index,
        ...(this.#areNamed ? { runId: `start ${this.#starts}` } : {}),
      });
      return this.#areApart ? once : once.repeat(this.#epochs);
    };
    return this.#readings.dataset(node, distributed, this.#timings.client);
  }
}
