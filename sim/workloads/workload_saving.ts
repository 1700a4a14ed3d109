/**
 * A small cluster that saves a dataset (`distributedSave`): a dispatcher, three workers, and a program
 * that requests the save, and requests it again after a crash. Another program saves the same dataset or
 * another dataset there, by the service or by itself. A third program reads the folder while it is
 * written (`Dataset.load({ wait })`). In some runs the save is cancelled, once or repeatedly, or one of
 * its elements fails. In the workload "storage", operations of the disk fail, and programs whose save
 * failed request it again. In some runs the disk is slow, so that much happens while a file is
 * committed, and saves are cancelled just then.
 *
 * Promises: once the cluster has healed, the folder holds the canonical stream of the dataset, each
 * element once and in order. If two datasets were saved, it holds one of them, complete, and the program
 * that saved the other gets an error. The reader receives the stream in order, its end only when the save
 * is complete, and an error if the save is cancelled or fails.
 */
import { saveByService } from "../../actors/client/save_client.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { Dataset } from "../../data/dataset.ts";
import { type DatasetIterator, openIterator } from "../../data/dataset_iterator.ts";
import { MANIFEST_NAME, readManifest, within } from "../../data/saved/manifest.ts";
import { saveGraph } from "../../data/saved/save.ts";
import { Violations } from "../checkers/checker.ts";
import { LoadingChecker, type LoadingPosition } from "../checkers/loading.ts";
import { SimCluster } from "../engine/cluster.ts";
import type { SimNode } from "../engine/node.ts";
import type { SimRandom } from "../engine/random.ts";
import { type FileOperation, STORAGE_FAILED } from "../engine/shared_files.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "../engine/service.ts";
import { drawTimings, type ServiceTimings } from "../engine/timings.ts";
import { Crashes } from "../faults/crashes.ts";
import { pipelineOf, streamOf } from "../reference/ordered_pipelines.ts";
import { textOf } from "../reference/reference_stream.ts";
import { Trainings } from "./lib/reading.ts";
import { drawPlot, type Plot, READING_MAY_FAIL, SAVER, type Saver } from "./lib/saving_plot.ts";
import {
  outcomeOf,
  type RunOptions,
  type RunOutcome,
  runThroughTrouble,
  runUntil,
} from "./workload.ts";

const WORKERS = ["worker-1", "worker-2", "worker-3"] as const;

/** The node that reads the folder once all crashes are over. */
const LASTING_NODE = WORKERS[2];

const READER = "reader";

const FOLDER = "/saved";

/** Maximum delay before programs begin, in ms. */
const LATE_MAX_MS: [number, ...number[]] = [0, 300, 3_000];

/** Maximum time before a save is cancelled, in ms. */
const GIVE_UP_MAX_MS = 1_500;
/** Maximum time before each of several cancellations, in ms. */
const GIVE_UP_IN_TURN_MAX_MS = 6_000;

/** Maximum number of cancellations. */
const TURNS_MAX = 6;

/** Probability that a save to be cancelled is cancelled while a file is committed. */
const GIVE_UP_PROBABILITY = 0.7;

/** Longest additional time of a disk operation, in ms. */
const DISK_DELAY_MAX_MS: [number, ...number[]] = [0, 0, 20, 100];

/** The same for repeated cancellations, which test little on a quick disk. */
const SLOW_DISK_DELAY_MAX_MS: [number, ...number[]] = [20, 100];

/**
 * Probability that committing an entry or the manifest takes much longer, and the longest such
 * time, in ms.
 */
const STALL_PROBABILITY = 0.3;

const STALL_MAX_MS = 2_000;

/** What may fail in the storage: one of the first, and in half of the runs one of the others. */
const FAILING_OPERATIONS: [FileOperation, ...FileOperation[]] = [
  "create",
  "commit",
  "committed",
  "open",
  "list",
];
const OTHERS_FAILING: [FileOperation, ...FileOperation[]] = ["append", "read", "remove"];
const OTHERS_PROBABILITY = 0.5;
/** The probability of a failure, and how often an operation fails at most. */
const FAILURE_PROBABILITY: [number, ...number[]] = [0.02, 0.2];
const FAILURES_MAX = 3;

/** How often a dataset that may be replaced is read. */
const READINGS = 3;

/** Delay before a refused program requests the save again, in ms. */
const AGAIN_MS = 300;

/** Probability that a reader saves its position. */
const SAVE_PROBABILITY = 0.2;

/** Polling interval of the reader, in ms. */
const POLL_MS: [number, ...number[]] = [100, 500];

/**
 * Timeout of the reader, longer than any fault, and longer than the dispatcher waits for a worker that
 * writes. With timings of production, the dispatcher waits a minute.
 */
const SILENCE_MAX_MS = 40_000;

const SILENCE_IN_PRODUCTION_MAX_MS = 100_000;

/** Error codes of a refused save. */
const REFUSALS: readonly LeatErrorCode[] = ["already_exists", "failed_precondition"];

/** Error codes of a program whose files another program removed to save by itself. */
const TAKEN: readonly LeatErrorCode[] = ["already_exists", "aborted", "not_found", "data_loss"];

/** Quick timings of the actors. */
const WORKER_HEARTBEAT_MS = 500;

const WORKER_TIMEOUT_MS: [number, ...number[]] = [3_000, 20_000];

const CLIENT_TIMINGS = { refreshMs: 200 };

/** Draws which operation fails, how probably and how often. */
function drawFailing(rng: SimRandom, operations: [FileOperation, ...FileOperation[]]) {
  const failing = rng.pick(operations);
  const probability = rng.pick(FAILURE_PROBABILITY);
  let left = 1 + rng.int(FAILURES_MAX);
  return {
    happens(operation: FileOperation): boolean {
      const isNow = operation === failing && left > 0 && rng.chance(probability);
      if (isNow) left--;
      return isNow;
    },
  };
}

export interface SavingOptions extends RunOptions {
  /** Whether some operations of the shared storage fail. Default false. */
  readonly storageFails?: boolean;
}

/** A save to a storage that fails a few times. */
export async function runStorage(options: RunOptions): Promise<RunOutcome> {
  return await runSaving({ ...options, storageFails: true });
}

export async function runSaving(options: SavingOptions): Promise<RunOutcome> {
  const rng = new SimCluster({ seed: options.seed }).random;
  const { plot, savers } = drawPlot(rng);
  const streams = await Promise.all(savers.map(({ pipeline }) => streamOf(pipeline, 1)));
  const run = new SavingRun(options, plot, savers, streams);
  return await outcomeOf(run, ({ loading }) => loading.delivered);
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
  /** Programs whose save succeeded. */
  readonly #saved = new Set<string>();
  /** Whether an operation of the shared storage has failed. */
  #storageHasFailed = false;
  readonly #lateMaxMs: number;
  readonly #timings: ServiceTimings;
  readonly #wait: { readonly pollMs: number; readonly timeoutMs: number };
  /** Called when committing an entry or the manifest takes long. */
  #onStall: () => void = () => {};
  /** The reader's checkpoint on its disk. */
  #checkpoint: { readonly token: Uint8Array; readonly position: LoadingPosition } | undefined;

  constructor(
    options: SavingOptions,
    plot: Plot,
    savers: readonly Saver[],
    streams: readonly (readonly string[])[],
  ) {
    const { seed, faults, readable = false, crashes = [], crashPoint, storageFails = false } =
      options;
    this.#plot = plot;
    this.#savers = savers;
    this.#streams = streams;
    this.cluster = new SimCluster({ seed, faults, readable });
    this.cluster.counters.tally(`save_${plot}`);
    const findings = this.violations.by("loading");
    this.loading = new LoadingChecker(streams, () => this.#isWhole, findings);
    this.#drawDisk();
    if (storageFails) this.#drawStorageFailures();
    const rng = this.cluster.random.fork("saving");
    this.#lateMaxMs = rng.pick(LATE_MAX_MS);
    const pollMs = rng.pick(POLL_MS);
    this.#timings = drawTimings(this.cluster, {
      dispatcher: { workerTimeoutMs: rng.pick(WORKER_TIMEOUT_MS) },
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
        this.#trainings.begin(node, (_, rng) => this.#save(node, saver, rng));
      });
    }
    this.cluster.addNode(READER, (node) => {
      this.#trainings.begin(node, (who, rng) => this.#read(node, who, rng));
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
    this.cluster.files.fails = () => false;
    if (this.#plot === "failing") return this.#expectNothingSaved();
    if (this.#plot.endsWith("given_up")) await this.#saveAgain();
    await this.#expectStream();
    // A storage that failed may not have removed a file.
    if (!this.#storageHasFailed) await this.#expectNoOtherFiles();
  }

  get #programs(): readonly string[] {
    return [...this.#savers.map(({ name }) => name), READER];
  }

  /** Whether the folder holds a complete dataset. */
  get #isWhole(): boolean {
    return this.cluster.files.names.includes(within(FOLDER, MANIFEST_NAME));
  }

  /** Draws how slow the shared disk is in this run. */
  #drawDisk(): void {
    const { files, random, counters } = this.cluster;
    const rng = random.fork("disk of the folder");
    const isInTurn = this.#plot === "in_turn";
    const delayMaxMs = rng.pick(isInTurn ? SLOW_DISK_DELAY_MAX_MS : DISK_DELAY_MAX_MS);
    const isEntering = (path: string) =>
      path.endsWith(".ledger") || path === within(FOLDER, MANIFEST_NAME);
    if (delayMaxMs > 0) {
      counters.tally("slow_shared_disk");
      files.delayMs = (path) => {
        if (!isEntering(path) || !rng.chance(STALL_PROBABILITY)) {
          return rng.between(0, delayMaxMs);
        }
        this.#onStall();
        return rng.between(0, STALL_MAX_MS);
      };
    }
  }

  /** Draws which operations of the shared disk fail, a few times. */
  #drawStorageFailures(): void {
    const { files, random, counters } = this.cluster;
    const rng = random.fork("failing storage");
    const failing = [drawFailing(rng, FAILING_OPERATIONS)];
    const others = random.fork("failing storage: others");
    if (others.chance(OTHERS_PROBABILITY)) failing.push(drawFailing(others, OTHERS_FAILING));
    files.fails = (operation) => {
      if (!failing.some((failure) => failure.happens(operation))) return false;
      this.#storageHasFailed = true;
      counters.tally(`storage_failed_to_${operation}`);
      return true;
    };
  }

  /** A program that saves a dataset, and in some plots cancels the save. */
  async #save(node: SimNode, saver: Saver, rng: SimRandom): Promise<void> {
    const isGivenUp = this.#plot.endsWith("given_up") && saver.name === SAVER;
    if (isGivenUp && node.lives > 1) return;
    await node.host.sleep(rng.between(0, this.#lateMaxMs));
    const isInTurn = this.#plot === "in_turn" && node.lives === 1;
    for (let turns = isInTurn ? 1 + rng.int(TURNS_MAX) : 0; turns > 0; turns--) {
      const outcome = await this.#saveFor(node, saver, this.#givingUp(node, rng));
      if (outcome === "saved" || outcome === "refused") return;
    }
    const signal = isGivenUp ? this.#givingUp(node, rng) : undefined;
    for (;;) {
      const outcome = await this.#saveFor(node, saver, signal);
      const isAgain = outcome === "failed" || outcome === "refused" && this.#insists(saver);
      if (!isAgain) return;
      await node.host.sleep(AGAIN_MS);
    }
  }

  /**
   * Whether a program that was refused requests its save again: it replaces another dataset, or the
   * storage has ended a save, which only the program that began it can finish. Two programs may have
   * been refused because of each other.
   */
  #insists({ overwrite }: Saver): boolean {
    const isUnfinished = this.#storageHasFailed && this.#plot !== "failing" && !this.#isWhole;
    return overwrite || isUnfinished;
  }

  /** Saves a dataset, unless the save is cancelled or refused, or the storage fails. */
  async #saveFor(
    node: SimNode,
    saver: Saver,
    signal?: AbortSignal,
  ): Promise<"saved" | "given up" | "refused" | "failed"> {
    try {
      await this.#request(node, saver, signal);
      this.#saved.add(saver.name);
      return "saved";
    } catch (error) {
      if (signal?.aborted) return "given up";
      if (isStorageFailure(error)) return "failed";
      const { code } = LeatError.from(error);
      const mayFail = this.#plot === "failing" && !REFUSALS.includes(code);
      if (!mayFail && !this.#mayRefuse(code)) throw error;
      return "refused";
    }
  }

  /** Returns a signal that aborts after a while, or while a file is committed. */
  #givingUp({ world }: SimNode, rng: SimRandom): AbortSignal {
    const giveUp = new AbortController();
    const end = () => giveUp.abort(new Error("given up"));
    const maxMs = this.#plot === "in_turn" ? GIVE_UP_IN_TURN_MAX_MS : GIVE_UP_MAX_MS;
    world.timer(rng.between(0, maxMs), end);
    this.#onStall = () => {
      if (giveUp.signal.aborted || !rng.chance(GIVE_UP_PROBABILITY)) return;
      this.cluster.counters.tally("given_up_while_stalled");
      world.timer(0, end);
    };
    return giveUp.signal;
  }

  /**
   * Whether a saver may get this error, because the dataset exists, the save was cancelled, or another
   * save is active.
   */
  #mayRefuse(code: LeatErrorCode): boolean {
    if (this.#plot === "replaced_by_one" && TAKEN.includes(code)) return true;
    if (code === "already_exists") return this.#isWhole;
    if (code === "aborted") return this.#plot === "same_given_up";
    return code === "failed_precondition" &&
      (this.#plot === "other" || this.#plot === "replaced");
  }

  async #request(
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

  /** A program that reads the dataset while it is saved, and again when it is replaced. */
  async #read(node: SimNode, who: string, rng: SimRandom): Promise<void> {
    await node.host.sleep(rng.between(0, this.#lateMaxMs));
    const isReplaced = this.#plot.startsWith("replaced");
    for (let readings = isReplaced ? READINGS : 1; readings > 0; readings--) {
      while (await this.#readOnce(node, who, rng) === "cancelled") await node.host.sleep(AGAIN_MS);
      this.#checkpoint = undefined;
    }
  }

  /** Reads once, unless a save is cancelled that its program requests again. */
  async #readOnce(
    node: SimNode,
    who: string,
    rng: SimRandom,
  ): Promise<"cancelled" | undefined> {
    const iterator = await this.#load(node);
    let position = this.loading.start;
    try {
      if (this.#checkpoint !== undefined) {
        ({ position } = this.#checkpoint);
        await iterator.restore(this.#checkpoint.token);
      }
      for (;;) {
        const { done, value } = await iterator.next();
        if (done) {
          this.loading.ended(position, who);
          return undefined;
        }
        position = this.loading.took(position, textOf({ element: value }), who);
        this.#crashes.delivered(this.loading.delivered);
        if (rng.chance(SAVE_PROBABILITY)) {
          this.#checkpoint = { token: await iterator.save(), position };
        }
      }
    } catch (error) {
      const { code } = LeatError.from(error);
      const isCancelled = this.#plot === "in_turn" && code === "aborted";
      const mayFail = isCancelled || READING_MAY_FAIL.includes(this.#plot) ||
        isStorageFailure(error);
      if (!mayFail) throw error;
      this.cluster.counters.tally(`reader_${code}`);
      return isCancelled ? "cancelled" : undefined;
    } finally {
      await iterator.return();
    }
  }

  async #load({ host }: SimNode): Promise<DatasetIterator<unknown>> {
    const saved = await Dataset.load(FOLDER, { wait: this.#wait });
    return openIterator(saved.node, { host });
  }

  /** Continues a cancelled save. */
  async #saveAgain(): Promise<void> {
    let isOver = false;
    this.#saveToItsEnd(this.cluster.node(SAVER), this.#savers[0]!).catch((error) => {
      const { code, message } = LeatError.from(error);
      if (code === "already_exists" && this.#isWhole) return;
      this.violations.by("training").add(`Saving again failed: ${message}`);
    }).finally(() => isOver = true);
    await runUntil(this.cluster, () => isOver, "the cancelled save is finished");
  }

  /** Saves a dataset, though a worker may still report an earlier failure of the storage. */
  async #saveToItsEnd(node: SimNode, saver: Saver): Promise<void> {
    for (;;) {
      try {
        return await this.#request(node, saver);
      } catch (error) {
        if (!isStorageFailure(error)) throw error;
        await node.host.sleep(AGAIN_MS);
      }
    }
  }

  #expectNothingSaved(): void {
    if (!this.#isWhole) return;
    this.violations.by("folder").add("there is a saved dataset, though an element of it failed");
  }

  /** Checks the folder's content, which is read on a node that does not crash any more. */
  async #expectStream(): Promise<void> {
    const findings = this.violations.by("folder");
    const found: string[] = [];
    let isRead = false;
    const node = this.cluster.node(LASTING_NODE);
    const read = async () => {
      const iterator = await this.#load(node);
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
      findings.add(`${name} got no error for its save, but the folder holds another dataset`);
    }
  }

  /**
   * Waits until the folder holds no file but the dataset's, so none of a dead or replaced writer.
   * What a process began after the dataset was complete stays if it then dies: nobody is left to
   * remove it.
   */
  async #expectNoOtherFiles(): Promise<void> {
    const { files } = this.cluster;
    const isLost = (name: string) => files.isLost(name, within(FOLDER, MANIFEST_NAME));
    let wanted: readonly string[] | undefined;
    filesOf(this.cluster.node(LASTING_NODE)).then((files) => wanted = files);
    const others = () =>
      files.names.filter((name) => wanted?.includes(name) !== true && !isLost(name));
    try {
      await runUntil(this.cluster, () => others().length === 0, "other files are gone");
    } catch (error) {
      const { message } = LeatError.from(error);
      const [first] = others();
      this.violations.by("folder").add(
        `it holds ${others().length} others, as ${first}: ${message}`,
      );
    }
  }
}

/** The files of a complete dataset. */
async function filesOf({ host }: SimNode): Promise<readonly string[]> {
  const { chunks } = (await readManifest(host, FOLDER))!;
  return [MANIFEST_NAME, ...chunks.map(({ name }) => name)].map((name) => within(FOLDER, name));
}

function isStorageFailure(error: unknown): boolean {
  return LeatError.from(error).message.includes(STORAGE_FAILED);
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
