/**
 * A small cluster that saves a dataset together (`distributedSave`): a dispatcher, three workers, and a
 * program that asks for it, and asks again when it has crashed; another that wants the same saved there,
 * or another dataset, or saves one there by itself; and one that reads the folder while it is written
 * (`Dataset.load({ wait })`). In some runs the save is given up, once or again and again, or an element
 * of it fails. In some the disk is slow, so that much happens while a file is put in its place; saves are
 * given up just then.
 *
 * What must hold: whatever happens, once the cluster has healed the folder holds the canonical stream of
 * the dataset, each element once and in its place. Of two datasets it holds one, whole, and whoever
 * wanted the other is told so. Whoever reads meanwhile is given the stream in order, its end only when
 * all of it is there, and an error where the save is given up or fails.
 *
 * @module
 */
import { saveByService } from "../actors/client/saving.ts";
import { dispatcherAt } from "../actors/dispatcher/protocol.ts";
import { LeatError, type LeatErrorCode } from "../core/error.ts";
import { Dataset } from "../data/dataset.ts";
import { type DatasetIterator, openIterator } from "../data/dataset_iterator.ts";
import { MANIFEST_NAME, within } from "../data/stored/manifest.ts";
import { saveGraph } from "../data/stored/save.ts";
import { Violations } from "./checkers/checker.ts";
import { LoadingChecker, type LoadingPlace } from "./checkers/loading.ts";
import { SimCluster } from "./cluster.ts";
import { Crashes } from "./crashes.ts";
import type { SimNode } from "./node.ts";
import { type PipelineName, pipelineOf, streamOf } from "./ordered_pipelines.ts";
import type { SimRandom } from "./random.ts";
import { Trainings } from "./reading.ts";
import { textOf } from "./reference_stream.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "./service.ts";
import { drawTimings, type ServiceTimings } from "./timings.ts";
import {
  outcomeOf,
  type RunOptions,
  type RunOutcome,
  runThroughTrouble,
  runUntil,
} from "./workload.ts";

const WORKERS = ["worker-1", "worker-2", "worker-3"] as const;
const SAVER = "client";
const RIVAL = "rival";
const READER = "reader";
const FOLDER = "/saved";

/** A function that fails would end the save. */
const PIPELINES: [PipelineName, ...PipelineName[]] = [
  "luck, a filter and remainders",
  "whole batches",
  "mostly empty splits",
  "no elements",
];
const FAILING: PipelineName = "functions that fail";

/** Luck is not the service's where somebody saves by himself: these have none. */
const LUCKLESS: PipelineName = "mostly empty splits";

/**
 * Who saves: one alone, one that gives up, one that gives up and asks again, a few times, one with a
 * function that fails; or a second one, too, the same dataset, with the first giving up or not, another
 * one, or another one in place of what is there, by the service or by itself.
 */
const PLOTS = [
  "alone",
  "given_up",
  "in_turn",
  "failing",
  "same",
  "same_given_up",
  "other",
  "replaced",
  "replaced_by_one",
] as const;
type Plot = typeof PLOTS[number];

/** Reading may end with an error in these: nobody goes on with a save, or what was there is replaced. */
const READING_MAY_FAIL: readonly Plot[] = [
  "given_up",
  "same_given_up",
  "failing",
  "replaced",
  "replaced_by_one",
];

/** How long programs wait at most before they begin, and before the save is given up, in ms. */
const LATE_MAX_MS: [number, ...number[]] = [0, 300, 3_000];
const GIVE_UP_MAX_MS = 1_500;
const GIVE_UP_IN_TURN_MAX_MS = 6_000;
/** How often it is given up in turn at most. */
const TURNS_MAX = 6;
/** How often one that is to be given up is just then. */
const GIVE_UP_PROBABILITY = 0.7;
/** How much longer a step of the disk takes at most, in ms. */
const DISK_DELAY_MAX_MS: [number, ...number[]] = [0, 0, 20, 100];
/** The same where a save is given up in turn, which is of little interest on a quick disk. */
const SLOW_DISK_DELAY_MAX_MS: [number, ...number[]] = [20, 100];
/** How often it takes much longer where an entry or the manifest is put in its place, and how long at most, in ms. */
const STALL_PROBABILITY = 0.3;
const STALL_MAX_MS = 2_000;
/** How often what may be replaced is read. */
const READINGS = 3;
/** How soon somebody asks again who was refused, in ms. */
const AGAIN_MS = 300;
/** How often a reader puts down its place. */
const SAVE_PROBABILITY = 0.2;
/** How often it looks, in ms. */
const POLL_MS: [number, ...number[]] = [100, 500];
/**
 * How long it waits for a writer: longer than any trouble lasts, and than a worker is waited for that
 * had something to write. In production that is a minute.
 */
const SILENCE_MAX_MS = 40_000;
const SILENCE_IN_PRODUCTION_MAX_MS = 100_000;

/** What tells somebody that he may not save there. */
const REFUSALS: readonly LeatErrorCode[] = ["already_exists", "failed_precondition"];
/** What somebody is told whose files another one has removed to save by itself. */
const TAKEN: readonly LeatErrorCode[] = ["already_exists", "aborted", "not_found", "data_loss"];

/** Timings that the actors offer to be set. */
const WORKER_HEARTBEAT_MS = 500;
const WORKER_TIMEOUT_MS: [number, ...number[]] = [3_000, 20_000];
const CLIENT_TIMINGS = { refreshMs: 200 };

/** Runs one seed. */
export async function runSaving(options: RunOptions): Promise<RunOutcome> {
  const luck = new SimCluster({ seed: options.seed }).random;
  const plot = luck.fork("plot").pick(PLOTS as unknown as [Plot, ...Plot[]]);
  const first = plot === "failing" ? FAILING : luck.fork("pipeline").pick(PIPELINES);
  const others = PIPELINES.filter((name) => name !== first) as [PipelineName, ...PipelineName[]];
  const isByOne = plot === "replaced_by_one";
  const second = isByOne ? LUCKLESS : luck.fork("second").pick(others);
  const savers = [
    { name: SAVER, pipeline: first, overwrite: false },
    ...(plot.startsWith("same") ? [{ name: RIVAL, pipeline: first, overwrite: false }] : []),
    ...(plot === "other" ? [{ name: RIVAL, pipeline: second, overwrite: false }] : []),
    ...(plot.startsWith("replaced")
      ? [{ name: RIVAL, pipeline: second, overwrite: true, isByItself: isByOne }]
      : []),
  ];
  const streams = await Promise.all(savers.map(({ pipeline }) => streamOf(pipeline, 1)));
  const run = new SavingRun(options, plot, savers, streams);
  return await outcomeOf(run, ({ loading }) => loading.delivered);
}

/** A program that wants something saved. */
interface Saver {
  readonly name: string;
  readonly pipeline: PipelineName;
  readonly overwrite: boolean;
  /** It writes the files itself. Default: the service's workers do. */
  readonly isByItself?: boolean;
}

class SavingRun {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly loading: LoadingChecker;
  readonly #plot: Plot;
  readonly #savers: readonly Saver[];
  readonly #streams: readonly (readonly string[])[];
  readonly #crashes: Crashes;
  readonly #trainings = new Trainings(this.violations.by("training"));
  /** Programs whose data was saved as they wanted it, as they were told. */
  readonly #saved = new Set<string>();
  readonly #lateMaxMs: number;
  readonly #timings: ServiceTimings;
  readonly #wait: { readonly pollMs: number; readonly timeoutMs: number };
  /** Called when it takes long to put an entry or the manifest in its place. */
  #onStall: () => void = () => {};
  /** What the reader has on its disk. */
  #placed: { readonly token: Uint8Array; readonly place: LoadingPlace } | undefined;

  constructor(
    { seed, faults, readable = false, crashes = [], crashPoint }: RunOptions,
    plot: Plot,
    savers: readonly Saver[],
    streams: readonly (readonly string[])[],
  ) {
    this.#plot = plot;
    this.#savers = savers;
    this.#streams = streams;
    this.cluster = new SimCluster({ seed, faults, readable });
    this.cluster.counters.tally(`save_${plot}`);
    const findings = this.violations.by("loading");
    this.loading = new LoadingChecker(streams, () => this.#isWhole, findings);
    this.#drawDisk();
    const luck = this.cluster.random.fork("saving");
    this.#lateMaxMs = luck.pick(LATE_MAX_MS);
    const pollMs = luck.pick(POLL_MS);
    this.#timings = drawTimings(this.cluster, {
      dispatcher: { workerTimeoutMs: luck.pick(WORKER_TIMEOUT_MS) },
      worker: { heartbeatMs: WORKER_HEARTBEAT_MS },
      client: CLIENT_TIMINGS,
    });
    const { dispatcher, worker } = this.#timings;
    const isQuick = dispatcher.workerTimeoutMs !== undefined;
    this.#wait = { pollMs, timeoutMs: isQuick ? SILENCE_MAX_MS : SILENCE_IN_PRODUCTION_MAX_MS };
    this.cluster.addNode(DISPATCHER_NODE, bootDispatcher(dispatcher));
    for (const name of WORKERS) this.cluster.addNode(name, bootWorker(worker));
    for (const saver of savers) {
      this.cluster.addNode(saver.name, (node) => {
        this.#trainings.begin(node, (_, luck) => this.#save(node, saver, luck));
      });
    }
    this.cluster.addNode(READER, (node) => {
      this.#trainings.begin(node, (who, luck) => this.#read(node, who, luck));
    });
    this.#crashes = new Crashes(this.cluster, {
      nodes: { dispatcher: [DISPATCHER_NODE], worker: WORKERS, client: this.#programs },
      roles: crashes,
      point: crashPoint,
      onCrash: (node) => this.#trainings.crashed(node),
    });
  }

  async toTheEnd(): Promise<void> {
    const haveEnded = () => this.#trainings.haveEnded(this.#programs);
    await runThroughTrouble(this.cluster, this.#crashes, haveEnded);
    if (this.#plot === "failing") return this.#expectNothingSaved();
    if (this.#plot.endsWith("given_up")) await this.#saveAgain();
    await this.#expectStream();
  }

  get #programs(): readonly string[] {
    return [...this.#savers.map(({ name }) => name), READER];
  }

  /** Whether there is a saved dataset. */
  get #isWhole(): boolean {
    return this.cluster.files.names.includes(within(FOLDER, MANIFEST_NAME));
  }

  /** How slow it is in this run. */
  #drawDisk(): void {
    const { files, random, counters } = this.cluster;
    const luck = random.fork("disk of the folder");
    const isInTurn = this.#plot === "in_turn";
    const delayMaxMs = luck.pick(isInTurn ? SLOW_DISK_DELAY_MAX_MS : DISK_DELAY_MAX_MS);
    const isEntering = (path: string) =>
      path.endsWith(".ledger") || path === within(FOLDER, MANIFEST_NAME);
    if (delayMaxMs > 0) {
      counters.tally("slow_shared_disk");
      files.delayMs = (path) => {
        if (!isEntering(path) || !luck.chance(STALL_PROBABILITY)) {
          return luck.between(0, delayMaxMs);
        }
        this.#onStall();
        return luck.between(0, STALL_MAX_MS);
      };
    }
  }

  /** A program that wants a dataset saved, or, where that is the plot, does not want it any more. */
  async #save(node: SimNode, saver: Saver, luck: SimRandom): Promise<void> {
    const isGivenUp = this.#plot.endsWith("given_up") && saver.name === SAVER;
    if (isGivenUp && node.lives > 1) return;
    await node.host.sleep(luck.between(0, this.#lateMaxMs));
    const isInTurn = this.#plot === "in_turn" && node.lives === 1;
    for (let left = isInTurn ? 1 + luck.int(TURNS_MAX) : 0; left > 0; left--) {
      if (await this.#saveFor(node, saver, this.#givingUp(node, luck)) !== "given up") return;
    }
    const signal = isGivenUp ? this.#givingUp(node, luck) : undefined;
    while (await this.#saveFor(node, saver, signal) === "refused" && saver.overwrite) {
      await node.host.sleep(AGAIN_MS);
    }
  }

  /** Wants a dataset saved, for as long as it is not given up. */
  async #saveFor(
    node: SimNode,
    saver: Saver,
    signal?: AbortSignal,
  ): Promise<"saved" | "given up" | "refused"> {
    try {
      await this.#ask(node, saver, signal);
      this.#saved.add(saver.name);
      return "saved";
    } catch (error) {
      if (signal?.aborted) return "given up";
      const { code } = LeatError.from(error);
      const mayFail = this.#plot === "failing" && !REFUSALS.includes(code);
      if (!mayFail && !this.#mayRefuse(code)) throw error;
      return "refused";
    }
  }

  /** After a while a save is given up, or when something is being put in its place. */
  #givingUp({ world }: SimNode, luck: SimRandom): AbortSignal {
    const giveUp = new AbortController();
    const end = () => giveUp.abort(new Error("given up"));
    const maxMs = this.#plot === "in_turn" ? GIVE_UP_IN_TURN_MAX_MS : GIVE_UP_MAX_MS;
    world.timer(luck.between(0, maxMs), end);
    this.#onStall = () => {
      if (giveUp.signal.aborted || !luck.chance(GIVE_UP_PROBABILITY)) return;
      this.cluster.counters.tally("given_up_while_stalled");
      world.timer(0, end);
    };
    return giveUp.signal;
  }

  /** Whether somebody who saves may be told so: it is there, or was ended, or another one is being saved. */
  #mayRefuse(code: LeatErrorCode): boolean {
    if (this.#plot === "replaced_by_one" && TAKEN.includes(code)) return true;
    if (code === "already_exists") return this.#isWhole;
    if (code === "aborted") return this.#plot === "same_given_up";
    return code === "failed_precondition" &&
      (this.#plot === "other" || this.#plot === "replaced");
  }

  async #ask(
    node: SimNode,
    { pipeline, overwrite, isByItself = false }: Saver,
    signal?: AbortSignal,
  ): Promise<void> {
    const { node: graph } = pipelineOf(pipeline);
    if (isByItself) {
      await saveGraph(graph, FOLDER, { overwrite }, undefined, { host: node.host });
      return;
    }
    const home = {
      system: node.system,
      dispatcher: dispatcherAt(DISPATCHER_NODE),
      timings: this.#timings.client,
      release: () => {},
    };
    const save = { folder: FOLDER, overwrite };
    await saveByService(graph, "simulated", { save, signal }, () => home);
  }

  /** A program that reads what is saved while it is, and once more what is put in its place. */
  async #read(node: SimNode, who: string, luck: SimRandom): Promise<void> {
    await node.host.sleep(luck.between(0, this.#lateMaxMs));
    const isReplaced = this.#plot.startsWith("replaced");
    for (let left = isReplaced ? READINGS : 1; left > 0; left--) {
      await this.#readOnce(node, who, luck);
      this.#placed = undefined;
    }
  }

  async #readOnce(node: SimNode, who: string, luck: SimRandom): Promise<void> {
    const iterator = await this.#load(node);
    let place = this.loading.start;
    try {
      if (this.#placed !== undefined) {
        ({ place } = this.#placed);
        await iterator.restore(this.#placed.token);
      }
      for (;;) {
        const { done, value } = await iterator.next();
        if (done) return this.loading.ended(place, who);
        place = this.loading.took(place, textOf({ element: value }), who);
        this.#crashes.delivered(this.loading.delivered);
        if (luck.chance(SAVE_PROBABILITY)) this.#placed = { token: await iterator.save(), place };
      }
    } catch (error) {
      if (!READING_MAY_FAIL.includes(this.#plot)) throw error;
      this.cluster.counters.tally(`reader_${LeatError.from(error).code}`);
    } finally {
      await iterator.return();
    }
  }

  async #load({ host }: SimNode): Promise<DatasetIterator<unknown>> {
    const saved = await Dataset.load(FOLDER, { wait: this.#wait });
    return openIterator(saved.node, { host });
  }

  /** What was given up is gone on with by whoever wants it. */
  async #saveAgain(): Promise<void> {
    let isOver = false;
    this.#ask(this.cluster.node(SAVER), this.#savers[0]!).catch((error) => {
      const { code, message } = LeatError.from(error);
      if (code === "already_exists" && this.#isWhole) return;
      this.violations.by("training").add(`Saving again failed: ${message}`);
    }).finally(() => isOver = true);
    await runUntil(this.cluster, () => isOver, "the save that was given up is finished");
  }

  #expectNothingSaved(): void {
    if (!this.#isWhole) return;
    this.violations.by("folder").add("there is a saved dataset, though an element of it failed");
  }

  /** Reads the folder on a node that does not crash any more. */
  async #expectStream(): Promise<void> {
    const findings = this.violations.by("folder");
    const found: string[] = [];
    let isRead = false;
    const read = async () => {
      const iterator = await this.#load(this.cluster.node(WORKERS.at(-1)!));
      for (;;) {
        const { done, value } = await iterator.next();
        if (done) return;
        found.push(textOf({ element: value }));
      }
    };
    read().catch((error) => {
      findings.add(`The folder cannot be read: ${LeatError.from(error).message}`);
    }).finally(() => isRead = true);
    await runUntil(this.cluster, () => isRead && this.#crashes.over, "the folder was read");
    const held = this.#savers.filter((_, i) => isSame(found, this.#streams[i]!));
    if (held.length === 0) return findings.add(differs(found, this.#streams));
    for (const name of this.#saved) {
      if (held.some((saver) => saver.name === name || saver.overwrite)) continue;
      findings.add(`${name} was told that its dataset is saved, but another one is there`);
    }
  }
}

function isSame(found: readonly string[], wanted: readonly string[]): boolean {
  return found.length === wanted.length && found.every((text, i) => text === wanted[i]);
}

function differs(found: readonly string[], streams: readonly (readonly string[])[]): string {
  const nearest = streams.map((wanted) => {
    const at = wanted.findIndex((text, i) => text !== found[i]);
    return { at: at < 0 ? wanted.length : at, length: wanted.length };
  }).sort((a, b) => b.at - a.at)[0]!;
  return `the folder holds ${found.length} elements of ${nearest.length}; first that differs: ` +
    `${nearest.at}`;
}
