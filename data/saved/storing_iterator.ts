/**
 * The iterator of `cache(path)` and `snapshot`: it reads the stored dataset if there is one. Otherwise
 * it gives the elements of its input, and stores them.
 */
import { LeatError } from "../../core/error.ts";
import type { Call } from "../udf/call.ts";
import type { IteratorContext } from "../context.ts";
import { ElementIterator, END, type Pulled } from "../iterator.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import type { Nested } from "../operators/combining/opened.ts";
import {
  ElementsWriter,
  wholeWriting,
  type WritingOptions,
  type WritingState,
} from "./elements_writer.ts";
import { type Manifest, readManifest } from "./manifest.ts";

export interface Storing {
  readonly operator: string;
  /** Where the dataset is stored. */
  readonly folder: string;
  /** Stored elements of another `pipeline` than this one are refused. */
  readonly options: WritingOptions & { readonly pipeline: string };
  /** While another writer is active: true gives the elements unstored, false is an error. */
  readonly passesWhileLocked: boolean;
  /** The operator's functions, whose numbers of calls are saved. */
  readonly calls: readonly Call[];
  shardOf(element: unknown): number | Promise<number>;
  /** Opens the stored dataset. */
  open(manifest: Manifest): Nested | Promise<Nested>;
  /** Opens the stored dataset, in order to restore the iterator's state. */
  openAgain(manifest: Manifest): Nested | Promise<Nested>;
}

type StoringState =
  | { readonly phase: "unopened" | "ended" }
  | { readonly phase: "reading"; readonly id: string; readonly nested: unknown }
  | {
    readonly phase: "passing";
    readonly input: unknown;
    /** Number of calls begun, for each of `Storing.calls`. */
    readonly calls: readonly number[];
    /** The writer's state; `null` if this pass is not stored. */
    readonly writing: WritingState | null;
  };

/**
 * Decides at the first `next()` whether it reads or writes. If an element fails, or the iterator is
 * disposed before the end, the files written since the last checkpoint are removed.
 */
export class StoringIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #storing: Storing;
  #ended = false;
  #reading: { readonly id: string; readonly nested: Nested } | undefined;
  #input: ElementIterator | undefined;
  #writer: ElementsWriter | undefined;
  /**
   * The state of the writer to resume at the first `next()`. Not earlier, because the iterator that
   * is restored in place holds the writer's lock until the restored one has replaced it.
   */
  #unresumed: WritingState | undefined;
  /** Why the dataset cannot be opened. Later calls fail with it, and the state stays that before. */
  #failure: ReadingFailure | undefined;

  constructor(context: IteratorContext, storing: Storing) {
    super();
    this.#context = context;
    this.#storing = storing;
  }

  override next(): Pulled<unknown> {
    if (this.#ended || this.disposed) return END;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#reading !== undefined) {
      return this.#then(this.#reading.nested.iterator.next(), (element) => this.#give(element));
    }
    if (this.#input === undefined) return this.#pullAfter(this.#open());
    if (this.#unresumed !== undefined) return this.#pullAfter(this.#resume(this.#unresumed));
    return this.#pass(this.#input);
  }

  #then(pulled: Pulled<unknown>, accept: (element: unknown) => unknown): Pulled<unknown> {
    return pulled instanceof Promise ? this.#context.waitFor(pulled).then(accept) : accept(pulled);
  }

  #give(element: unknown): unknown {
    if (element === END || this.disposed) return END;
    return this.#context.stats.gave(element);
  }

  async #pullAfter(opening: Promise<void>): Promise<unknown> {
    try {
      await opening;
    } catch (error) {
      throw this.#failure = ReadingFailure.of(error);
    }
    return await this.next();
  }

  async #open(): Promise<void> {
    const { operator, folder, passesWhileLocked } = this.#storing;
    const { host } = this.#context;
    if (this.#context.readsSplits) {
      throw new LeatError(
        "failed_precondition",
        `${operator} stores all elements of its input in ${folder}, but a task that gets splits ` +
          `sees only some of them. Store the dataset before it is distributed, or use cache().`,
      );
    }
    const mayWrite = this.#claim() || !passesWhileLocked;
    try {
      const manifest = await readManifest(host, folder) ??
        (mayWrite ? await this.#begin() : undefined);
      if (this.disposed) return this.#abandon();
      if (manifest !== undefined) return await this.#read(manifest);
      this.#input = this.#context.makeInput();
    } catch (error) {
      this.#abandon();
      throw error;
    } finally {
      if (this.#writer === undefined) this.#unclaim();
    }
  }

  /** The iterators of this iteration that write, or are about to, by folder. */
  get #writers(): Map<string, StoringIterator> {
    return this.#context.sharedFor(StoringIterator, () => new Map<string, StoringIterator>());
  }

  /**
   * Whether this iterator is the one that may write. Of those that the iteration opens at a time, it
   * is the first: who gets the folder's lock first depends on speed, and their elements may differ.
   */
  #claim(): boolean {
    return this.#writers.getOrInsert(this.#storing.folder, this) === this;
  }

  #unclaim(): void {
    const { folder } = this.#storing;
    if (this.#writers.get(folder) === this) this.#writers.delete(folder);
  }

  /** Begins to write, or returns the manifest that another writer has committed meanwhile. */
  async #begin(): Promise<Manifest | undefined> {
    const { operator, folder, options, passesWhileLocked } = this.#storing;
    try {
      const writer = await ElementsWriter.begin(this.#context.host, folder, options);
      this.#writer = writer;
      // If the iterator was disposed meanwhile, `dispose()` found no writer to abandon.
      if (this.disposed) this.#abandon();
      else if (writer.replaces === undefined) {
        await writer.clear((unfinished) => {
          if (unfinished?.joint !== undefined) throw savedByOthers(operator, folder);
        });
      } else this.#abandon();
      return writer.replaces;
    } catch (error) {
      this.#abandon();
      if (this.disposed) return undefined;
      if (LeatError.from(error).code !== "already_exists") throw error;
      if (passesWhileLocked) return undefined;
      throw this.#context.host.forTask === undefined
        ? error
        : filledByWorkers(operator, folder, error);
    }
  }

  async #read(manifest: Manifest): Promise<void> {
    const { operator, folder, options } = this.#storing;
    if (manifest.pipeline !== options.pipeline) throw madeByAnother(operator, folder);
    const nested = await this.#storing.open(manifest);
    this.#reading = { id: manifest.id, nested };
    if (this.disposed) nested.iterator.dispose();
  }

  #pass(input: ElementIterator): Pulled<unknown> {
    try {
      const pulled = input.next();
      return pulled instanceof Promise ? this.#passLater(pulled) : this.#write(pulled);
    } catch (error) {
      this.#abandon();
      throw error;
    }
  }

  async #passLater(pending: Promise<unknown>): Promise<unknown> {
    try {
      return await this.#write(await this.#context.waitFor(pending, 0));
    } catch (error) {
      this.#abandon();
      throw error;
    }
  }

  /** Writes an element and gives it. If writing fails, the element is lost and nothing is stored. */
  #write(element: unknown): unknown {
    const writer = this.#writer;
    if (element === END) {
      this.#ended = true;
      return writer === undefined || this.disposed ? END : this.#finish(writer);
    }
    if (writer === undefined) return this.#give(element);
    const shard = this.#storing.shardOf(element);
    const written = typeof shard === "number"
      ? writer.write(element, shard)
      : shard.then((shard) => writer.write(element, shard));
    return written === undefined ? this.#give(element) : this.#giveAfter(written, element);
  }

  async #giveAfter(written: Promise<void>, element: unknown): Promise<unknown> {
    try {
      await written;
    } catch (error) {
      if (this.disposed) return END;
      this.#abandon();
      throw error;
    }
    return this.#give(element);
  }

  async #finish(writer: ElementsWriter): Promise<typeof END> {
    try {
      await writer.finish();
      this.#writer = undefined;
      this.#unclaim();
    } catch (error) {
      this.#abandon();
      if (!this.disposed) throw error;
    }
    return END;
  }

  #abandon(): void {
    this.#writer?.abandon();
    this.#writer = undefined;
    this.#unclaim();
  }

  protected override async saveState(): Promise<StoringState> {
    if (this.#reading !== undefined) {
      const { id, nested } = this.#reading;
      return { phase: "reading", id, nested: await nested.save() };
    }
    if (this.#ended) return { phase: "ended" };
    if (this.#input === undefined) return { phase: "unopened" };
    return {
      phase: "passing",
      calls: this.#storing.calls.map((call) => call.index),
      writing: await this.#writer?.save() ?? this.#unresumed ?? null,
      input: await this.#input.save(),
    };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const saved = state as StoringState;
    if (saved.phase === "ended") this.#ended = true;
    if (saved.phase === "reading") await this.#restoreReading(saved.id, saved.nested);
    if (saved.phase !== "passing") return;
    this.#storing.calls.forEach((call, i) => call.resume(saved.calls[i]!));
    this.#input = this.#context.makeInput();
    await this.#input.restore(saved.input);
    if (saved.writing !== null) this.#unresumed = wholeWriting(saved.writing);
  }

  async #restoreReading(id: string, state: unknown): Promise<void> {
    const { operator, folder } = this.#storing;
    const manifest = await readManifest(this.#context.host, folder);
    if (manifest?.id !== id) {
      throw new LeatError(
        "failed_precondition",
        `${operator}: ${folder} no longer holds the dataset that the saved iterator was reading: it was ` +
          `${manifest === undefined ? "removed" : "overwritten"}.`,
      );
    }
    const nested = await this.#storing.openAgain(manifest);
    this.#reading = { id, nested };
    await nested.restore(state);
  }

  /** Resumes writing. If the chunks are gone, or another writer is active, nothing is stored. */
  async #resume(writing: WritingState): Promise<void> {
    const { operator, folder, options } = this.#storing;
    const { host } = this.#context;
    const isStored = async () => await readManifest(host, folder) !== undefined;
    this.#claim();
    try {
      if (!await isStored()) {
        this.#writer = await ElementsWriter.resume(host, folder, options, writing);
        if (this.#writer === undefined && !await isStored()) host.warn(isLost(operator, folder));
      }
    } catch (error) {
      if (LeatError.from(error).code !== "already_exists") throw error;
    }
    this.#unresumed = undefined;
    if (this.disposed || this.#writer === undefined) this.#abandon();
  }

  protected override release(): void {
    this.#ended = true;
    this.#reading?.nested.iterator.dispose();
    this.#input?.dispose();
    this.#abandon();
  }
}

function madeByAnother(operator: string, folder: string): LeatError {
  return new LeatError(
    "failed_precondition",
    `${operator}: ${folder} holds elements that another pipeline made, or this one with another seed. ` +
      `Remove the folder to have it written again, give this ${operator} another path, or read what ` +
      "is there with Dataset.load().",
  );
}

function isLost(operator: string, folder: string): string {
  return `${operator}: ${folder} no longer holds the elements that the saved iterator had stored there, ` +
    "so this pass is not stored. The next pass makes all elements again; they differ if operators " +
    `before ${operator} draw random numbers`;
}

function filledByWorkers(operator: string, folder: string, cause: unknown): LeatError {
  return new LeatError(
    "already_exists",
    `${operator}: another writer fills ${folder} now. Under OFF every worker fills it, so workers that ` +
      `share a host or a storage cannot. Fill it before distribute(): read the dataset up to ` +
      `${operator}(path) once in this program, or save() it and distribute Dataset.load(). Or use ` +
      "cache() without a path, which is each worker's own.",
    { cause },
  );
}

function savedByOthers(operator: string, folder: string): LeatError {
  return new LeatError(
    "already_exists",
    `${operator}: distributedSave() writes to ${folder}, or has not finished its save: call it again to continue, remove ` +
      "the folder, or store to another one.",
  );
}
