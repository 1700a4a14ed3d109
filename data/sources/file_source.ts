/**
 * What sources that read files have in common: they take names from the dataset below, open one file after the other, or several in turn,
 * and go on with the next where one cannot be read.
 */

import { LeatError } from "../../core/error.ts";
import { checkInteger, invalidArgument, show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { ByteReader, type Compression, COMPRESSIONS } from "../formats/byte_reader.ts";
import type { FormatReader } from "../formats/format_reader.ts";
import { type ElementIterator, END, type Pulled } from "../iterator.ts";
import { type Attributes, UNKNOWN_CARDINALITY } from "../node.ts";
import { UnaryIterator, UnaryNode } from "../operators/unary.ts";
import { AUTOTUNE } from "../parallelism.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";
import { filesNode } from "./files.ts";

/** Most files that one source reads at once; each holds a descriptor and a buffer. */
export const PARALLEL_READS_MAX = 256;

/** What `AUTOTUNE` stands for; recorded with the pipeline, because it decides on the order of elements. */
const AUTOTUNE_PARALLEL_READS = 4;

/** How files are read. */
export interface FileSourceOptions {
  /** How every file is compressed; not at all by default. */
  readonly compression?: Compression | undefined;
  /**
   * How many files are read at once, their elements taken in turn, one of each; 1 by default, which reads them one after the other.
   * `AUTOTUNE` is 4.
   */
  readonly numParallelReads?: number | undefined;
}

/** A dataset of what is in files. */
export abstract class FileSourceNode extends UnaryNode {
  readonly compression: Compression | undefined;
  readonly numParallelReads: number;

  /** @param files a path, paths, or a dataset of paths; or the node of one. */
  constructor(
    kind: string,
    files: unknown,
    options: { compression?: unknown; numParallelReads?: unknown } = {},
  ) {
    super(kind, filesNode(kind, files));
    this.compression = checkCompression(kind, options.compression);
    this.numParallelReads = checkParallelReads(kind, options.numParallelReads);
  }

  /** Reads one file. */
  abstract openReader(bytes: ByteReader): FormatReader;

  override get attributes(): Attributes {
    const { compression, numParallelReads } = this;
    return { ...(compression === undefined ? {} : { compression }), numParallelReads };
  }

  override get cardinality(): number {
    return this.input.cardinality === 0 ? 0 : UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return this.numParallelReads === 1
      ? new SequentialFiles(context, this)
      : new ParallelFiles(context, this);
  }
}

function checkCompression(operator: string, value: unknown): Compression | undefined {
  if (value === undefined || COMPRESSIONS.includes(value as Compression)) {
    return value as Compression | undefined;
  }
  throw invalidArgument(operator, "compression", COMPRESSIONS.map(show).join(" or "), value);
}

function checkParallelReads(operator: string, value: unknown): number {
  if (value === undefined) return 1;
  if (value === AUTOTUNE) return AUTOTUNE_PARALLEL_READS;
  return checkInteger(operator, "numParallelReads", value, 1, PARALLEL_READS_MAX);
}

/** Opens the files of one source, and knows which are open. */
abstract class FileSourceIterator extends UnaryIterator {
  readonly #node: FileSourceNode;
  readonly #open = new Set<FormatReader>();

  constructor(context: IteratorContext, node: FileSourceNode) {
    super(context);
    this.#node = node;
  }

  /** `undefined` where this iterator was disposed meanwhile. Rejects where the file cannot be opened. */
  protected async openFile(path: unknown): Promise<FormatReader | undefined> {
    if (typeof path !== "string") {
      throw new LeatError(
        "invalid_argument",
        `${this.#node.kind}: the dataset of files must give paths, got ${show(path)}`,
      );
    }
    const file = await this.context.host.files.open(path);
    if (this.disposed) {
      file.close();
      return undefined;
    }
    const reader = this.#node.openReader(new ByteReader(path, file, this.#node.compression));
    this.#open.add(reader);
    return reader;
  }

  protected closeFile(reader: FormatReader): void {
    this.#open.delete(reader);
    reader.close();
  }

  protected override release(): void {
    for (const reader of this.#open) reader.close();
    this.#open.clear();
    super.release();
  }
}

/** One file after the other. */
class SequentialFiles extends FileSourceIterator implements Stepping {
  #reader: FormatReader | undefined;

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    if (this.disposed) return END;
    const reader = this.#reader;
    if (reader !== undefined) {
      const element = reader.step();
      return element instanceof Promise ? this.#elementLater(element) : this.#element(element);
    }
    const path = this.input.next();
    return path === END ? END : this.#openLater(path);
  }

  #element(element: unknown): unknown {
    if (element === AGAIN) return AGAIN;
    if (element !== END) {
      this.stats.elements++;
      return element;
    }
    if (this.#reader !== undefined) this.closeFile(this.#reader);
    this.#reader = undefined;
    return AGAIN;
  }

  async #elementLater(pending: Promise<unknown>): Promise<unknown> {
    return this.#element(await this.arrival(pending));
  }

  async #openLater(pulled: Pulled<unknown>): Promise<unknown> {
    const path = pulled instanceof Promise ? await this.arrival(pulled) : pulled;
    if (path === END || this.disposed) return END;
    this.#reader = await this.arrival(this.openFile(path)) as FormatReader | undefined;
    return AGAIN;
  }
}

/** One of the files that are read at once, and its next element, which is fetched before it is asked for. */
interface Lane {
  reader: FormatReader | undefined;
  /** `undefined` where the lane has no file yet. */
  pulled: Pulled<unknown> | undefined;
}

/**
 * Several files in turn. Which file stands in which lane is decided in the order of turns, so the order of elements does not depend on
 * which file answered first.
 */
class ParallelFiles extends FileSourceIterator {
  readonly #lanes: Lane[];
  #turn = 0;
  #started = false;
  #inputEnded = false;

  constructor(context: IteratorContext, node: FileSourceNode) {
    super(context, node);
    this.#lanes = Array.from(
      { length: node.numParallelReads },
      () => ({ reader: undefined, pulled: undefined }),
    );
  }

  override next(): Pulled<unknown> {
    if (this.disposed) return END;
    const lane = this.#lanes[this.#turn];
    const pulled = lane?.pulled;
    if (lane === undefined || pulled === undefined || pulled === END || pulled instanceof Promise) {
      return this.#nextLater();
    }
    return this.#give(lane, pulled);
  }

  async #nextLater(): Promise<unknown> {
    if (!this.#started) await this.#start();
    for (let idle = 0; idle < this.#lanes.length && !this.disposed;) {
      const lane = this.#lanes[this.#turn]!;
      if (lane.pulled === undefined && !await this.#enter(lane)) {
        this.#advance();
        idle++;
        continue;
      }
      idle = 0;
      const element = await this.#arrived(lane);
      if (element !== END) return this.disposed ? END : this.#give(lane, element);
      // The end of a file takes its turn, as in `interleave`; the next file is opened meanwhile.
      this.#leave(lane);
      await this.#enter(lane);
      this.#advance();
    }
    return END;
  }

  /** Opens the first file of every lane at once. */
  async #start(): Promise<void> {
    this.#started = true;
    for (const lane of this.#lanes) {
      if (!await this.#enter(lane)) return;
    }
  }

  /** Gives a lane its next file; false where there are no more. */
  async #enter(lane: Lane): Promise<boolean> {
    if (this.#inputEnded) return false;
    const pulled = this.input.next();
    const path = pulled instanceof Promise ? await this.arrival(pulled) : pulled;
    if (path === END || this.disposed) {
      this.#inputEnded = true;
      return false;
    }
    lane.pulled = observed(this.#openAndPull(lane, path));
    return true;
  }

  async #openAndPull(lane: Lane, path: unknown): Promise<unknown> {
    lane.reader = await this.openFile(path);
    return lane.reader === undefined ? END : await this.#pull(lane.reader);
  }

  /** A lane's element; its error costs the element, and takes the lane's turn. */
  async #arrived(lane: Lane): Promise<unknown> {
    try {
      return lane.pulled instanceof Promise ? await this.arrival(lane.pulled) : lane.pulled;
    } catch (error) {
      this.#fetch(lane);
      this.#advance();
      throw error;
    }
  }

  #give(lane: Lane, element: unknown): unknown {
    this.#fetch(lane);
    this.#advance();
    this.stats.elements++;
    return element;
  }

  /** Starts on a lane's next element; a file that could not be opened leaves its lane. */
  #fetch(lane: Lane): void {
    lane.pulled = lane.reader === undefined ? undefined : this.#pull(lane.reader);
  }

  #pull(reader: FormatReader): Pulled<unknown> {
    try {
      const pulled = stepOn(reader, this.context.pacer);
      return pulled instanceof Promise ? observed(pulled) : pulled;
    } catch (error) {
      return observed(Promise.reject(error));
    }
  }

  #leave(lane: Lane): void {
    if (lane.reader !== undefined) this.closeFile(lane.reader);
    lane.reader = undefined;
    lane.pulled = undefined;
  }

  #advance(): void {
    this.#turn = (this.#turn + 1) % this.#lanes.length;
  }

  protected override release(): void {
    for (const lane of this.#lanes) lane.pulled = lane.reader = undefined;
    super.release();
  }
}

/** A promise whose rejection may be looked at later, or never. */
function observed<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
