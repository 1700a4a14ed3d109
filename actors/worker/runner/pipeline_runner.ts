/** The runner that runs a pipeline in the current thread: a runner thread, or the caller's own. */
import { LeatError } from "../../../core/error.ts";
import { Dataset } from "../../../data/dataset.ts";
import { type DatasetIterator, openIterator } from "../../../data/dataset_iterator.ts";
import { DelegatingHost } from "../../../data/foreign/delegating_host.ts";
import type { Files, Host, OpenFile, PythonRunner } from "../../../data/host.ts";
import { BatchMemory } from "../../../data/elements/batch_rows.ts";
import { reuseElement } from "../../../data/elements/released.ts";
import { areElementsSeen } from "../../../data/udf/seen_elements.ts";
import { END } from "../../../data/iterator.ts";
import type { DatasetNode } from "../../../data/node.ts";
import { type FirstNumbers, numbersKeeping } from "../../../data/operator_instances.ts";
import type { GivenElements } from "../../../data/operators/sources/given.ts";
import { seedOf } from "../../../data/operators/options.ts";
import { chainOf, type OrderedChain } from "../../../data/deterministic/chain.ts";
import { ListedHost } from "../../../data/deterministic/listed_host.ts";
import { openSplit } from "../../../data/deterministic/split_run.ts";
import { ReadingFailure, userErrorOf } from "../../../data/iterators/reading_failure.ts";
import { CustomShardingPolicy } from "../../../data/sharding/custom_policy.ts";
import { sameOnAll, shardGraph } from "../../../data/sharding/shard_graph.ts";
import {
  checkSplittable,
  listSplitTable,
  type SplitSource,
} from "../../../data/sharding/splits.ts";
import type { DistributedSaver } from "../../../data/saved/distributed/distributed_saver.ts";
import type { ReadingTask } from "../../../data/service/reading_task.ts";
import type { Begun, SaveWork } from "../../../data/saved/distributed/work.ts";
import { packSplits, type SplitBounds } from "../../../data/sharding/split_table.ts";
import { decodeMessage, encodeMessage, type FramePool } from "../../../transport/codec.ts";
import { compressFrame, sampleCompression } from "../../../transport/compression.ts";
import type { SaveStart } from "../protocol.ts";
import {
  type CompressionWish,
  givenBy,
  type OnlySplit,
  type OwnStep,
  type Runner,
  type RunnerFactory,
  type RunnerOutcome,
  type RunnerSettings,
  type RunnerSplits,
  TASK_FENCED,
} from "./runner.ts";

/** Limit of remembered ended splits. A task may already have requested steps beyond the end. */
const ENDED_SPLITS_KEPT = 16;

type Encoded = Pick<Extract<RunnerOutcome, { readonly kind: "element" }>, "frame" | "trial">;

interface OpenSplit {
  readonly iterator: DatasetIterator<unknown>;
  remainder: unknown;
}

let saving: typeof import("../../../data/saved/distributed/distributed_saver.ts") | undefined;

/** Loads what runners of saves need. Simulations call it first: they cannot wait for modules. */
export async function loadSaving(): Promise<NonNullable<typeof saving>> {
  return saving ??= await import("../../../data/saved/distributed/distributed_saver.ts");
}

interface PipelineRunnerOptions {
  readonly onDisposed?: () => void;
  /** Provides memory for elements, and gets it back once they are sent. */
  readonly pool?: FramePool;
  /** Yields to the event loop, so that the next step does not delay the answer to this one. */
  readonly betweenSteps?: () => Promise<void>;
}

export class PipelineRunner implements Runner {
  readonly #settings: RunnerSettings;
  readonly #splits: RunnerSplits;
  readonly #host: MeteredHost;
  /** The host of the splits that run as datasets of their own. */
  readonly #listed: ListedHost;
  readonly #options: PipelineRunnerOptions;
  #graph: DatasetNode | undefined;
  #chain: OrderedChain | undefined;
  #iterator: DatasetIterator<unknown> | undefined;
  #saving: DistributedSaver | undefined;
  /** The memory of batches of splits that run as datasets of their own. */
  readonly #batchMemory: BatchMemory;
  /** Whether an element's memory is free once it is encoded: no user function can have kept it. */
  #reuses = false;
  /** Splits that run as datasets of their own, by `grant` (see {@linkcode OnlySplit}). */
  readonly #openSplits = new Map<number, OpenSplit>();
  /** The final outcome of ended splits, by grant, oldest first: it answers further steps. */
  readonly #endedSplits = new Map<number, RunnerOutcome>();
  /** The answer to all later steps, once the pipeline cannot continue. */
  #failure: RunnerOutcome | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #disposed = false;

  constructor(
    settings: RunnerSettings,
    splits: RunnerSplits,
    host: Host,
    options: PipelineRunnerOptions = {},
  ) {
    this.#options = options;
    this.#settings = settings;
    this.#splits = splits;
    this.#host = new MeteredHost(host, settings.forTask);
    this.#listed = new ListedHost(this.#host);
    this.#batchMemory = new BatchMemory(host.sharesBatches);
  }

  get bytesRead(): number {
    return this.#host.bytesRead;
  }

  next(ownStep?: OwnStep, wish?: CompressionWish): Promise<RunnerOutcome> {
    const outcome = this.#last.then(() => this.#step(ownStep, wish));
    const { betweenSteps = () => {} } = this.#options;
    this.#last = outcome.then(betweenSteps, betweenSteps);
    return outcome;
  }

  /** After `dispose`: settles, soon, when no step accesses files any more. */
  get ended(): Promise<unknown> {
    return this.#last;
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#iterator?.return();
    this.#saving?.dispose();
    for (const { iterator } of this.#openSplits.values()) iterator.return();
    this.#openSplits.clear();
    this.#options.onDisposed?.();
  }

  async #step(
    ownStep: OwnStep | undefined,
    wish: CompressionWish | undefined,
  ): Promise<RunnerOutcome> {
    if (this.#disposed) return { kind: "end" };
    try {
      if (ownStep === undefined) return this.#failure ?? await this.#nextElement(wish);
      if ("work" in ownStep) return await this.#save(ownStep);
      return this.#endedSplits.get(ownStep.grant) ?? await this.#splitStep(ownStep, wish);
    } catch (error) {
      const failure = failureOf(error);
      if (!failure.isFinal) return failure;
      if (ownStep === undefined) this.#failure = failure;
      else if (!("work" in ownStep)) this.#end(ownStep.grant, failure);
      return failure;
    }
  }

  async #nextElement(wish: CompressionWish | undefined): Promise<RunnerOutcome> {
    this.#iterator ??= await this.#open().catch(throwReadingFailure);
    // The runner may have been disposed while the pipeline was being opened.
    if (this.#disposed) this.#iterator.return();
    const { done, value } = await this.#iterator.next();
    return done ? { kind: "end" } : { kind: "element", ...this.#encode(value, wish) };
  }

  async #save(work: SaveWork): Promise<RunnerOutcome> {
    const { save, seed } = this.#settings;
    const { DistributedSaver } = saving ?? await loadSaving();
    // The runner may have been disposed while the module was being loaded.
    if (this.#disposed) return { kind: "end" };
    this.#saving ??= new DistributedSaver(this.#node, save!, BigInt(`0x${seed}`), this.#host);
    const done = await this.#saving.do(work);
    return { kind: "element", frame: encodeMessage("table" in done ? startOf(done) : done) };
  }

  /** The next step of one split: an element, then the rows left over, then the end. */
  async #splitStep(
    only: OnlySplit,
    wish: CompressionWish | undefined,
  ): Promise<RunnerOutcome> {
    const open = this.#openSplits.get(only.grant) ?? this.#openSplit(only);
    const { done, value } = await open.iterator.next();
    if (!done) return { kind: "element", ...this.#encode(value, wish) };
    const { remainder } = open;
    open.remainder = undefined;
    if (remainder !== undefined) return { kind: "remainder", ...this.#encode(remainder, wish) };
    return this.#end(only.grant, { kind: "end" });
  }

  /** Ends a split: no step of it runs any more. */
  #end(grant: number, outcome: RunnerOutcome): RunnerOutcome {
    this.#openSplits.get(grant)?.iterator.return();
    this.#openSplits.delete(grant);
    this.#endedSplits.set(grant, outcome);
    if (this.#endedSplits.size > ENDED_SPLITS_KEPT) {
      this.#endedSplits.delete(this.#endedSplits.keys().next().value!);
    }
    return outcome;
  }

  async #open(): Promise<DatasetIterator<unknown>> {
    const { seed, task = 0, epoch, splits, shard } = this.#settings;
    const { node, first } = await this.#share();
    this.#reuses = !areElementsSeen(node);
    // The dispatcher checks this as well, but the pipeline might have begun by then.
    if (splits) checkSplittable(node);
    return openIterator(node, {
      host: this.#host,
      seed: seedOf(node) ?? BigInt(`0x${seed}`),
      task,
      epoch,
      isReadOnly: true,
      keepsReadingFailures: true,
      // All workers must number the elements that they divide alike. FILE divides only names.
      needsOrder: shard !== undefined && shard.mode !== "FILE",
      ...(first && { first }),
      ...(splits ? { splits: sourceOf(this.#splits) } : {}),
    });
  }

  /** The part of the pipeline that this task runs. */
  async #share(): Promise<{ readonly node: DatasetNode; readonly first?: FirstNumbers }> {
    const { shard } = this.#settings;
    if (shard === undefined) return { node: this.#node };
    const { index, count, mode, policy } = shard;
    if (policy === undefined) return { node: shardGraph(this.#node, mode, { index, count }) };
    const whole = sameOnAll(this.#node);
    const node = await CustomShardingPolicy.fromWire(policy)
      .shardOf(whole, { index, count }, this.#host);
    // The policy may add other operators on each worker, but must divide the same elements.
    return { node, first: numbersKeeping(whole, node) };
  }

  #openSplit(only: OnlySplit): OpenSplit {
    try {
      const open: OpenSplit = {
        iterator: this.#iteratorOf(only, (remainder) => open.remainder = remainder),
        remainder: undefined,
      };
      this.#openSplits.set(only.grant, open);
      return open;
    } catch (error) {
      return throwReadingFailure(error);
    }
  }

  #iteratorOf(
    { index, start, stop }: OnlySplit,
    onRemainder: (remainder: unknown) => void,
  ): DatasetIterator<unknown> {
    if (this.#chain === undefined) this.#reuses = !areElementsSeen(this.#node);
    const chain = this.#chain ??= chainOf(this.#node);
    if (chain === undefined) {
      throw new LeatError(
        "invalid_argument",
        "This pipeline is not a chain over one source's splits",
      );
    }
    const { seed, epoch } = this.#settings;
    return openSplit(chain, {
      host: this.#listed,
      seed: BigInt(`0x${seed}`),
      epoch,
      index,
      split: { start, stop },
      batchMemory: this.#batchMemory,
      isReadOnly: true,
      keepsReadingFailures: true,
      onRemainder,
      read: async (split, from) =>
        decodeMessage(await givenBy(this.#splits, split, from)) as GivenElements,
    });
  }

  get #node(): DatasetNode {
    return this.#graph ??= Dataset.deserialize(this.#settings.graph).node;
  }

  /** Encodes an element. If it is too large, the error names the operator that made it. */
  #encodeElement(element: unknown, into: "shared" | "arraybuffer"): Uint8Array {
    try {
      const { pool } = this.#options;
      const memory = pool === undefined ? {} : { pool };
      return encodeMessage(element, { into, roomForEnvelope: true, ...memory });
    } catch (cause) {
      const { code, details } = LeatError.from(cause);
      const { byteLength, bytesMax } = details ?? {};
      if (code !== "resource_exhausted" || typeof byteLength !== "number") throw cause;
      throw new LeatError(
        code,
        `An element of ${this.#node.kind}, the last operator of this pipeline, takes ${byteLength} ` +
          `bytes as a message. A worker sends at most ${bytesMax}. Make smaller elements, for ` +
          `example with a smaller batch()`,
        { cause },
      );
    }
  }

  #encode(element: unknown, wish: CompressionWish | undefined): Encoded {
    const into = this.#settings.shared ? "shared" : "arraybuffer";
    const frame = this.#encodeElement(element, into);
    if (this.#reuses) reuseElement(element);
    if (wish === undefined) return { frame };
    const { codec, isTrial } = wish;
    const startMs = this.#host.nowMs();
    if (isTrial) {
      const sampled = sampleCompression(frame, codec);
      return { frame, trial: { ...sampled, ms: this.#host.nowMs() - startMs } };
    }
    const compressed = compressFrame(frame, codec, into);
    const ms = this.#host.nowMs() - startMs;
    const { length: bytes, buffer } = frame;
    if (compressed === undefined) return { frame, trial: { bytes, compressedBytes: bytes, ms } };
    // The next element usually has the same size.
    if (buffer instanceof ArrayBuffer) this.#options.pool?.give(buffer);
    return { frame: compressed, trial: { bytes, compressedBytes: compressed.length, ms } };
  }
}

/** The report of a save's beginning. The splits become arrays: there may be millions. */
function startOf({ table, ...begun }: Begun): SaveStart {
  return { ...begun, bounds: packSplits(table) };
}

/** Makes runners that run in the caller's thread. */
export class PipelineRunners implements RunnerFactory {
  readonly #host: Host;
  readonly #running = new Set<Runner>();
  /** Runners of saves that were disposed in the middle of a step. */
  readonly #ending = new Set<Promise<unknown>>();

  constructor(host: Host) {
    this.#host = host;
  }

  start(settings: RunnerSettings, splits: RunnerSplits): Runner {
    const onDisposed = () => {
      this.#running.delete(runner);
      if (settings.save === undefined) return;
      const ended = runner.ended.finally(() => this.#ending.delete(ended));
      this.#ending.add(ended);
    };
    const runner = new PipelineRunner(settings, splits, this.#host, { onDisposed });
    this.#running.add(runner);
    return runner;
  }

  async listSplits(graph: Uint8Array): Promise<SplitBounds> {
    return packSplits(
      await listSplitTable(Dataset.deserialize(graph).node, new MeteredHost(this.#host)),
    );
  }

  /** Resolves when no save writes any more. */
  async close(): Promise<void> {
    for (const runner of this.#running) runner.dispose();
    await Promise.all(this.#ending);
  }
}

/** The error of a pipeline that cannot be run, so that it does not look like the end of its data. */
function throwReadingFailure(error: unknown): never {
  throw ReadingFailure.of(error);
}

function failureOf(error: unknown): Extract<RunnerOutcome, { readonly kind: "error" }> {
  const wire = LeatError.from(userErrorOf(error)).toWire();
  const isFinal = error instanceof ReadingFailure;
  return { kind: "error", error: wire, ...(isFinal ? { isFinal } : {}) };
}

function sourceOf(splits: RunnerSplits): SplitSource {
  return {
    next: (source, repetition) =>
      splits.next(source, repetition).then((split) => split ?? END, throwFenced),
    total: (source) => splits.total(source),
  };
}

/** A task that gets no splits any more ends reading: `ignoreErrors` would ask again and again. */
function throwFenced(error: unknown): never {
  const isFenced = LeatError.from(error).details?.["reason"] === TASK_FENCED;
  throw isFenced ? ReadingFailure.of(error) : error;
}

/** Delegates to another host, and counts the bytes read from files. */
class MeteredHost extends DelegatingHost {
  readonly files: Files;
  /** Runners run pipelines that other programs built. */
  readonly runsForeign = true;
  readonly python: PythonRunner | undefined;
  readonly sharesBatches: boolean | undefined;
  bytesRead = 0;
  readonly #forTask: ReadingTask | undefined;

  constructor(host: Host, forTask?: ReadingTask) {
    super(host);
    this.#forTask = forTask;
    this.python = host.python;
    this.sharesBatches = host.sharesBatches;
    this.files = {
      open: async (path, signal, firstBytes) =>
        this.#metered(await host.files.open(path, signal, firstBytes)),
      list: (pattern, signal) => host.files.list(pattern, signal),
    };
  }

  override get forTask(): ReadingTask | undefined {
    return this.#forTask;
  }

  #metered(file: OpenFile): OpenFile {
    const count = (bytes: number) => {
      this.bytesRead += bytes;
      return bytes;
    };
    return {
      sizeBytes: file.sizeBytes,
      read(into, offset) {
        const read = file.read(into, offset);
        return typeof read === "number" ? count(read) : read.then(count);
      },
      expect: (start, stop) => file.expect?.(start, stop),
      close: () => file.close(),
    };
  }
}
