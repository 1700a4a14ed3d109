/**
 * A runner that runs its pipeline in the thread it is made in. Runner threads hold one each; the
 * simulator, and programs that start no threads, use it as it is.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { Dataset } from "../../data/dataset.ts";
import { type DatasetIterator, openIterator } from "../../data/dataset_iterator.ts";
import type { Host } from "../../data/host.ts";
import { END } from "../../data/iterator.ts";
import { seedOf } from "../../data/operators/options.ts";
import { listSplitTable, type SplitSource, type SplitTable } from "../../data/splits.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { MeteredHost } from "./metered_host.ts";
import type {
  Runner,
  RunnerFactory,
  RunnerOutcome,
  RunnerSettings,
  RunnerSplits,
} from "./runner.ts";

/** Runs one pipeline. */
export class PipelineRunner implements Runner {
  readonly #settings: RunnerSettings;
  readonly #splits: RunnerSplits;
  readonly #host: MeteredHost;
  readonly #onDisposed: () => void;
  #iterator: DatasetIterator<unknown> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #disposed = false;

  /** @param onDisposed Called once, when it is disposed. */
  constructor(
    settings: RunnerSettings,
    splits: RunnerSplits,
    host: Host,
    onDisposed: () => void = () => {},
  ) {
    this.#settings = settings;
    this.#splits = splits;
    this.#host = new MeteredHost(host);
    this.#onDisposed = onDisposed;
  }

  get bytesRead(): number {
    return this.#host.bytesRead;
  }

  next(): Promise<RunnerOutcome> {
    const outcome = this.#last.then(() => this.#step());
    this.#last = outcome.catch(() => {});
    return outcome;
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#iterator?.return();
    this.#onDisposed();
  }

  async #step(): Promise<RunnerOutcome> {
    if (this.#disposed) return { kind: "end" };
    try {
      this.#iterator ??= this.#open();
      const { done, value } = await this.#iterator.next();
      return done ? { kind: "end" } : { kind: "element", frame: this.#encode(value) };
    } catch (error) {
      return { kind: "error", error: LeatError.from(error).toWire() };
    }
  }

  #open(): DatasetIterator<unknown> {
    const { graph, seed, salt, epoch, splits } = this.#settings;
    const { node } = Dataset.deserialize(graph);
    return openIterator(node, {
      host: this.#host,
      seed: seedOf(node) ?? BigInt(`0x${seed}`),
      salt: BigInt(`0x${salt}`),
      epoch,
      ...(splits ? { splits: sourceOf(this.#splits) } : {}),
    });
  }

  #encode(element: unknown): Uint8Array {
    return this.#settings.shared
      ? encodeMessage(element, { into: "shared" })
      : encodeMessage(element);
  }
}

/** Makes runners that run in the thread they are made in. */
export class PipelineRunners implements RunnerFactory {
  readonly #host: Host;
  readonly #running = new Set<Runner>();

  constructor(host: Host) {
    this.#host = host;
  }

  start(settings: RunnerSettings, splits: RunnerSplits): Runner {
    const runner: Runner = new PipelineRunner(settings, splits, this.#host, () => {
      this.#running.delete(runner);
    });
    this.#running.add(runner);
    return runner;
  }

  listSplits(graph: Uint8Array): Promise<SplitTable> {
    return listSplitTable(Dataset.deserialize(graph).node, this.#host);
  }

  close(): Promise<void> {
    for (const runner of this.#running) runner.dispose();
    return Promise.resolve();
  }
}

function sourceOf(splits: RunnerSplits): SplitSource {
  return {
    next: async (source, repetition) => (await splits.next(source, repetition)) ?? END,
    total: (source) => splits.total(source),
  };
}
