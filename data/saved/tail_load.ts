/**
 * Reads a dataset while it is being saved: chunk after chunk, as they become final.
 *
 * The reader polls for new chunks. New or growing files show that the writer is alive.
 */
import { LeatError, type WireError } from "../../core/error.ts";
import {
  checkBoolean,
  checkInteger,
  checkPath,
  invalidArgument,
  optionsOf,
  TIMER_MS_MAX,
} from "../check.ts";
import type { IteratorContext } from "../context.ts";
import type { Dataset } from "../dataset.ts";
import type { Compression } from "../formats/compression/compression.ts";
import type { Host } from "../host.ts";
import { ElementIterator, END, type Pulled } from "../iterator.ts";
import { type Attributes, DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { Nested } from "../operators/combining/opened.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { Ledger, type LedgerHead } from "./ledger.ts";
import { type Chunk, type Manifest, readManifest, storedPaths } from "./manifest.ts";
import { storedNode } from "./stored_node.ts";

/** How a reader waits for a dataset that is still being written. */
export interface LoadWait {
  /** Polling interval in ms, at most 2,147,483,647. Default 250. */
  readonly pollMs?: number;
  /**
   * If nothing is written for this time, in ms, the writer counts as dead, and reading fails with
   * `deadline_exceeded`. A writer writes about once a second, but only when it gets an element: allow
   * more time than an element takes. Default 600,000. If an operator reads ahead, `save()` of the
   * iterator may wait as long.
   */
  readonly timeoutMs?: number;
}

/** Options of `load`. */
export interface LoadOptions<T, R> {
  /** Combines the datasets of the shards. Default: one shard after the other. */
  readonly readerFunc?: (shards: Dataset<Dataset<T>>) => Dataset<R>;
  /**
   * Whether to wait for elements that are not written yet, or for a save to begin. Default false.
   */
  readonly wait?: boolean | LoadWait;
}

export const loadOptions = optionsOf<LoadOptions<unknown, unknown>>("load", {
  readerFunc: true,
  wait: true,
});

const POLL_MS = 250;
const TIMEOUT_MS = 600_000;

/** Checks the option `wait` of `load`; returns `undefined` if the reader does not wait. */
export function checkWait(wait: unknown): Required<LoadWait> | undefined {
  if (typeof wait !== "object" || wait === null) {
    const isOn = checkBoolean("load", "wait", wait, false);
    return isOn ? { pollMs: POLL_MS, timeoutMs: TIMEOUT_MS } : undefined;
  }
  const { pollMs = POLL_MS, timeoutMs = TIMEOUT_MS, ...others } = wait as LoadWait;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw invalidArgument("load", "wait", "true, or { pollMs, timeoutMs }", `{ ${unknown} }`);
  }
  return {
    pollMs: checkInteger("load", "wait.pollMs", pollMs, 1, TIMER_MS_MAX),
    timeoutMs: checkInteger("load", "wait.timeoutMs", timeoutMs, 1),
  };
}

/** The elements of a folder that may still be written, or whose save may not have begun. */
export class TailLoadNode extends DatasetNode {
  override readonly division = "whole";
  override readonly elementSpec: undefined = undefined;
  override readonly cardinality = UNKNOWN_CARDINALITY;
  readonly path: string;
  readonly wait: Required<LoadWait>;

  constructor(path: unknown, wait: Required<LoadWait>) {
    super("growing", []);
    this.path = checkPath("load", path);
    this.wait = wait;
  }

  override get attributes(): Attributes {
    return { path: this.path, wait: this.wait };
  }

  override get checkpointAttributes(): Attributes {
    return { path: this.path };
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return new TailLoadIterator(context, this);
  }
}

registerNode("growing", { fromWire: (a) => new TailLoadNode(a.path, checkWait(a.wait)!) });

interface TailLoadState {
  /** The id of the save that is read; `null` before one was found. */
  readonly id: string | null;
  /** Number of chunks read to their end. */
  readonly read: number;
  /** The position in the next chunk; `null` if it is not open. */
  readonly nested: unknown;
  readonly ended: boolean;
}

class TailLoadIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #chunks: TailChunks;
  #read = 0;
  #nested: Nested | undefined;
  #ended = false;
  /** Why reading cannot continue. */
  #failure: ReadingFailure | undefined;

  constructor(context: IteratorContext, { path, wait }: TailLoadNode) {
    super();
    this.#context = context;
    this.#chunks = new TailChunks(context.host, path, wait);
  }

  override next(): Pulled<unknown> {
    if (this.#ended || this.disposed) return END;
    if (this.#failure !== undefined) throw this.#failure;
    const pulled = this.#nested === undefined ? END : this.#nested.iterator.next();
    if (pulled !== END && !(pulled instanceof Promise)) return this.#context.stats.gave(pulled);
    return this.#pull(pulled);
  }

  async #pull(first: Pulled<unknown>): Promise<unknown> {
    let element = await this.#context.waitFor(Promise.resolve(first));
    while (element === END && !this.disposed) {
      if (this.#nested !== undefined) this.#read++;
      this.#nested = undefined;
      const opened = await this.#open();
      if (opened === undefined) return END;
      element = await this.#context.waitFor(Promise.resolve(opened.iterator.next()));
    }
    return this.disposed ? END : this.#context.stats.gave(element);
  }

  /** Waits for the next chunk and opens it; `undefined` at the end. */
  async #open(): Promise<Nested | undefined> {
    const found = await this.#context.waitFor(this.#chunks.chunk(this.#read)).catch((error) => {
      if (this.disposed) return undefined;
      throw this.#context.stats.failed(this.#failure = ReadingFailure.of(error));
    });
    this.#ended = found === undefined;
    if (found === undefined || this.disposed) return undefined;
    return this.#nested = this.#nestedOf(found);
  }

  #nestedOf(chunk: FoundChunk): Nested {
    const node = storedNode(this.#chunks.path, { ...chunk, chunks: [chunk.chunk] });
    return new Nested(node, () => this.#context.randomStream(), this.#context);
  }

  protected override async saveState(): Promise<TailLoadState> {
    return {
      id: this.#chunks.id ?? null,
      read: this.#read,
      nested: await this.#nested?.save() ?? null,
      ended: this.#ended,
    };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { id, read, nested, ended } = state as TailLoadState;
    this.#read = read;
    this.#ended = ended;
    this.#chunks.id = id ?? undefined;
    if (nested === null) return;
    const opened = await this.#open();
    await opened?.restore(nested);
  }

  protected override release(): void {
    this.#ended = true;
    this.#chunks.close();
    this.#nested?.iterator.dispose();
  }
}

interface FoundChunk extends Pick<Manifest, "id" | "spec" | "compression"> {
  readonly chunk: Chunk;
}

/** Finds the chunks of a folder in order, and waits for those that are not written yet. */
class TailChunks {
  readonly path: string;
  /** The id of the save that is read. Files of another save are refused. */
  id: string | undefined;
  readonly #host: Host;
  readonly #ledger: Ledger;
  readonly #wait: Required<LoadWait>;
  readonly #closing = new AbortController();
  readonly #known: FoundChunk[] = [];
  #entries = 0;
  /** The folder's head at the first look, as text. */
  #firstHead: string | undefined;
  /** The head at the latest look. */
  #head: LedgerHead | undefined;
  /** Whether all chunks are known, because the manifest was found. */
  #isWhole = false;

  constructor(host: Host, path: string, wait: Required<LoadWait>) {
    this.#host = host;
    this.path = path;
    this.#ledger = new Ledger(host, path);
    this.#wait = wait;
  }

  /** Makes a pending `chunk()` reject. */
  close(): void {
    this.#closing.abort();
  }

  /** The chunk with this number; `undefined` if there are fewer. */
  async chunk(number: number): Promise<FoundChunk | undefined> {
    const { pollMs, timeoutMs } = this.#wait;
    let seen = "";
    let seenAtMs = this.#host.nowMs();
    while (number >= this.#known.length && !this.#isWhole) {
      if (await this.#poll()) continue;
      this.#closing.signal.throwIfAborted();
      const signs = await this.#signsOfLife();
      if (signs !== seen) seenAtMs = this.#host.nowMs();
      else if (this.#host.nowMs() - seenAtMs >= timeoutMs) throw this.#timedOut(timeoutMs);
      seen = signs;
      await this.#host.sleep(pollMs, this.#closing.signal);
    }
    return this.#known[number];
  }

  /**
   * Polls once. Returns whether there is something new. A failure that was there at the first look
   * does not end the reading, because somebody may just be continuing the save.
   */
  async #poll(): Promise<boolean> {
    const head = this.#head = await this.#ledger.head();
    const headText = JSON.stringify(head ?? null);
    this.#firstHead ??= headText;
    // Read after the head: a writer that finishes commits the manifest, then removes the head.
    const manifest = await readManifest(this.#host, this.path);
    if (manifest !== undefined) return this.#finish(manifest);
    if (head === undefined && this.id !== undefined) throw this.#abandoned();
    if (head === undefined) return false;
    if (head.failure !== undefined) {
      if (headText !== this.#firstHead) throw this.#failed(head.failure);
      // Who continues the save may overwrite it. A restored position belongs to one save.
      if (this.id === undefined) return false;
    }
    this.#follow(head.id);
    return await this.#readEntry(head);
  }

  #finish(manifest: Manifest): true {
    this.#follow(manifest.id);
    for (const chunk of manifest.chunks.slice(this.#known.length)) {
      this.#known.push({ ...manifest, chunk });
    }
    this.#isWhole = true;
    return true;
  }

  async #readEntry({ id, compression }: { id: string; compression: Compression | undefined }) {
    const entry = await this.#ledger.entry(id, this.#entries);
    if (entry === undefined) return false;
    this.#entries++;
    for (const chunk of entry.chunks) {
      this.#known.push({ id, compression, spec: entry.spec, chunk });
    }
    return true;
  }

  #follow(id: string): void {
    this.id ??= id;
    if (this.id === id) return;
    throw new LeatError(
      "failed_precondition",
      `load: ${this.path} is being overwritten: the dataset that was being read is gone. Load it again.`,
    );
  }

  /** A string that changes whenever a writer makes progress. */
  async #signsOfLife(): Promise<string> {
    const signs: string[] = [JSON.stringify(this.#head ?? null), String(this.#entries)];
    for (const path of await storedPaths(this.#host, this.path)) {
      signs.push(path);
      // Only these files grow, and each size costs a request.
      if (/\.(partial|ledger)$/.test(path)) signs.push(String(await this.#sizeOf(path)));
    }
    return signs.join("\n");
  }

  async #sizeOf(path: string): Promise<number> {
    try {
      const file = await this.#host.files.open(path);
      file.close();
      return file.sizeBytes;
    } catch {
      return -1; // The file was committed under its final name meanwhile.
    }
  }

  #timedOut(timeoutMs: number): LeatError {
    const failure = this.#head?.failure;
    const [what, why] = failure !== undefined
      ? ["nobody continued the failed save", ` It failed: ${LeatError.fromWire(failure).message}`]
      : [this.id === undefined ? "no save began" : "nothing was written", ""];
    return new LeatError(
      "deadline_exceeded",
      `load: waited for ${this.path}, but ${what} there for ${timeoutMs} ms. If its writer has died, ` +
        `save it again; if it is slow, wait longer: { wait: { timeoutMs } }.${why}`,
    );
  }

  #abandoned(): LeatError {
    return new LeatError(
      "aborted",
      `load: ${this.path} was not written to its end: its writer abandoned it. Save it again.`,
    );
  }

  #failed(failure: WireError): LeatError {
    const { code, message } = LeatError.fromWire(failure);
    return new LeatError(
      code,
      `load: ${this.path} was not written to its end, because saving it has failed: ${message}`,
    );
  }
}
