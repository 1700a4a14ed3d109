/**
 * `listFiles`: the names of the files that match a pattern.
 */

import { LeatError } from "../../core/error.ts";
import type { RandomStream } from "../../core/philox.ts";
import { checkBoolean, checkSeed, show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import type { Host } from "../host.ts";
import { ElementIterator, END, type Pulled } from "../iterator.ts";
import { type Attributes, DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { TensorSpec } from "../spec.ts";
import { cutFiles, type Split, type SplitReader, type Splittable } from "../splits.ts";
import { checkPaths } from "./files.ts";

/** How files are listed. */
export interface ListFilesOptions {
  /** Whether the names come in random order, another one in every iteration; default true. */
  readonly shuffle?: boolean | undefined;
  /** Makes the orders repeat from run to run. */
  readonly seed?: number | bigint | undefined;
}

/**
 * Every file that matches one of the patterns, once. In an iteration that reads splits, a split is one file of the sorted listing, and
 * whoever hands them out decides on their order.
 */
export class ListFilesNode extends DatasetNode implements Splittable {
  readonly patterns: readonly string[];
  readonly shuffle: boolean;
  readonly seed: bigint | undefined;

  constructor(patterns: unknown, options: { shuffle?: unknown; seed?: unknown } = {}) {
    super("listFiles", []);
    this.patterns = checkPaths("listFiles", "pattern", patterns);
    this.shuffle = checkBoolean("listFiles", "shuffle", options.shuffle, true);
    this.seed = checkSeed("listFiles", options.seed);
  }

  override get attributes(): Attributes {
    const { patterns, shuffle, seed } = this;
    return { patterns, shuffle, ...(seed === undefined ? {} : { seed }) };
  }

  override get elementSpec(): TensorSpec {
    return new TensorSpec("string", []);
  }

  override get cardinality(): number {
    return UNKNOWN_CARDINALITY;
  }

  async listSplits(host: Host, _multiple: number): Promise<Split[]> {
    return cutFiles((await this.list(host)).length);
  }

  override makeIterator(context: IteratorContext): ListFilesIterator {
    return new ListFilesIterator(context, this);
  }

  /**
   * The listing, sorted.
   *
   * @throws {LeatError} `not_found` naming the patterns where nothing matches.
   */
  async list(host: Host): Promise<string[]> {
    const lists = await Promise.all(this.patterns.map((pattern) => host.files.list(pattern)));
    const paths = [...new Set(lists.flat())].sort();
    if (paths.length > 0) return paths;
    const patterns = this.patterns.length === 1 ? show(this.patterns[0]) : show(this.patterns);
    throw new LeatError("not_found", `listFiles: no file matches ${patterns}`);
  }
}

registerNode("listFiles", { fromWire: (a) => new ListFilesNode(a.patterns, a) });

class ListFilesIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #node: ListFilesNode;
  readonly #splits: SplitReader | undefined;
  /** `undefined` before the first `next()`. */
  #paths: readonly string[] | undefined;
  #position = 0;
  #stop = 0;

  constructor(context: IteratorContext, node: ListFilesNode) {
    super();
    this.#context = context;
    this.#node = node;
    this.#splits = context.openSplits();
  }

  override next(): Pulled<unknown> {
    if (this.disposed) return END;
    if (this.#paths === undefined) return this.#start();
    if (this.#position < this.#stop) return this.#give(this.#paths);
    return this.#splits === undefined ? END : this.#nextSplit(this.#splits, this.#paths);
  }

  async #start(): Promise<unknown> {
    this.#paths = []; // a listing that fails has failed once
    const { host, stats } = this.#context;
    const startedAtMs = host.nowMs();
    try {
      this.#paths = await this.#node.list(host);
    } catch (error) {
      // Without a listing no split can be read, and taking them would keep them from other tasks.
      this.dispose();
      throw error;
    } finally {
      stats.waitMs += host.nowMs() - startedAtMs;
    }
    if (this.#splits === undefined) {
      if (this.#node.shuffle) this.#paths = shuffled(this.#paths, this.#luck());
      this.#stop = this.#paths.length;
    }
    return this.next();
  }

  #luck(): RandomStream {
    const { seed } = this.#node;
    const { luck } = this.#context;
    return seed === undefined
      ? this.#context.randomStream()
      : this.#context.seededStream(seed, luck.epoch);
  }

  async #nextSplit(splits: SplitReader, paths: readonly string[]): Promise<unknown> {
    const split = await splits.next();
    if (split === END || this.disposed) return END;
    if (split.stop > paths.length) {
      throw new LeatError(
        "data_loss",
        `listFiles: file ${split.stop - 1} of the listing was to be read, but ${
          show(this.#node.patterns)
        } matches ` +
          `${paths.length} files here; the listing has changed, or differs between hosts`,
      );
    }
    this.#position = split.start;
    this.#stop = split.stop;
    return this.next();
  }

  #give(paths: readonly string[]): unknown {
    this.#context.stats.elements++;
    return paths[this.#position++];
  }

  protected override release(): void {
    this.#paths = [];
    this.#position = this.#stop = 0;
  }
}

/** A copy in random order (Fisher and Yates). */
function shuffled(paths: readonly string[], luck: RandomStream): string[] {
  const order = [...paths];
  for (let last = order.length - 1; last > 0; last--) {
    const other = luck.int(last + 1);
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
  return order;
}
