/** `listFiles`: the names of the files that match a pattern. */
import { ListedHost } from "../deterministic/listed_host.ts";
import { mapConcurrent } from "../../core/map_concurrent.ts";
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import type { RandomStream } from "../../core/philox.ts";
import { checkBoolean, checkSeed, optionsOf } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import type { Host } from "../host.ts";
import { hashJson } from "../../core/hash.ts";
import { ElementIterator, END, type Pulled, type Token } from "../iterator.ts";
import {
  type Attributes,
  DatasetNode,
  type Division,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../node.ts";
import { TensorSpec } from "../elements/spec.ts";
import {
  readsSplitsError,
  type Split,
  type SplitReader,
  type Splittable,
} from "../sharding/splits.ts";
import { wholeState } from "../checkpoint/whole_state.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { checkPaths, type FileListing, fileNumber, fileOfNumber } from "./files.ts";
import { listingError } from "./reading/storage_errors.ts";

/** Number of patterns listed concurrently, because remote storage is slow. */
const CONCURRENT_LISTINGS = 16;

/** How files are listed. */
export interface ListFilesOptions {
  /**
   * Whether the names are in random order, which differs in every iteration; default true. If not, they
   * are sorted.
   */
  readonly shuffle?: boolean | undefined;
  /** With a seed, every run has the same orders. */
  readonly seed?: number | bigint | undefined;
}

/**
 * Lists every file that matches one of the patterns, once. In an iteration that reads splits, a split
 * is one file of the sorted listing, and the `SplitSource` decides the order.
 */
export class ListFilesNode extends DatasetNode implements FileListing, Splittable {
  static readonly options = optionsOf<ListFilesOptions>("listFiles", { shuffle: true, seed: true });
  override readonly elementSpec = new TensorSpec("string", []);
  override readonly cardinality = UNKNOWN_CARDINALITY;
  readonly patterns: readonly string[];
  readonly shuffle: boolean;
  readonly seed: bigint | undefined;
  /** Whether listing fails if one of the patterns matches nothing, not only if all do. */
  readonly needsEach: boolean;

  constructor(
    patterns: unknown,
    options: { shuffle?: unknown; seed?: unknown; needsEach?: unknown } = {},
  ) {
    super("listFiles", []);
    this.patterns = checkPaths("listFiles", "pattern", patterns);
    this.shuffle = checkBoolean("listFiles", "shuffle", options.shuffle, true);
    this.seed = checkSeed("listFiles", options.seed);
    this.needsEach = checkBoolean("listFiles", "needsEach", options.needsEach, false);
  }

  override get drawsNumbers(): boolean {
    return this.shuffle && this.seed === undefined;
  }

  override get attributes(): Attributes {
    const { patterns, shuffle, seed, needsEach } = this;
    return {
      patterns,
      shuffle,
      ...(seed === undefined ? {} : { seed }),
      ...(needsEach ? { needsEach } : {}),
    };
  }

  override get division(): Division {
    return this.shuffle ? "shuffle" : "split";
  }

  get description(): string {
    const shown = this.patterns.map((pattern) => JSON.stringify(shownPath(pattern)));
    return shown.length === 1 ? shown[0]! : `[${shown.join(", ")}]`;
  }

  async listSplits(host: Host, _multiple: number): Promise<Split[]> {
    const paths = await this.list(host);
    return paths.map((_, i) => {
      const start = fileNumber(paths, i);
      return { start, stop: start + 1 };
    });
  }

  override makeIterator(context: IteratorContext): ListFilesIterator {
    return new ListFilesIterator(context, this);
  }

  /**
   * Returns the sorted listing. `signal` cancels it.
   *
   * @throws {LeatError} `not_found` naming the patterns if nothing matches, or the first pattern that
   * matches nothing if each has to match.
   */
  async list(host: Host, signal?: AbortSignal): Promise<string[]> {
    // Other splits wait for the same listing, so `signal` must not cancel it.
    if (host instanceof ListedHost) return await host.listing(this, () => this.#list(host));
    return await this.#list(host, signal);
  }

  async #list({ files }: Host, signal?: AbortSignal): Promise<string[]> {
    const lists = await mapConcurrent(
      this.patterns,
      CONCURRENT_LISTINGS,
      (pattern) => files.list(pattern, signal),
    );
    const missing = lists.findIndex((list) => list.length === 0);
    if (this.needsEach && missing >= 0) {
      const pattern = JSON.stringify(shownPath(this.patterns[missing]!));
      throw new LeatError(
        "not_found",
        `listFiles: no file matches ${pattern}, one of ${this.patterns.length} patterns that each ` +
          "must match a file",
      );
    }
    const paths = [...new Set(lists.flat())].sort();
    if (paths.length > 0) return paths;
    throw new LeatError("not_found", `listFiles: no file matches ${this.description}`);
  }
}

registerNode("listFiles", { fromWire: (a) => new ListFilesNode(a.patterns, a) });

interface ListFilesState {
  readonly position: number;
  /** `undefined` before the first `next()`. */
  readonly listing: ListingFingerprint | undefined;
}

/** Identifies a listing. It is equal for listings of the same files in any order. */
interface ListingFingerprint {
  readonly count: number;
  readonly digest: string;
}

class ListFilesIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #node: ListFilesNode;
  readonly #splits: SplitReader | undefined;
  readonly #closing = new AbortController();
  /** `undefined` before the first `next()`. */
  #paths: readonly string[] | undefined;
  /** Fingerprint of `#paths`, computed on demand: there may be a million names. */
  #computedFingerprint: ListingFingerprint | undefined;
  #position = 0;
  #stop = 0;
  /** The last name returned. A name is its own token, which stays valid if the listing changes. */
  #last: string | undefined;
  /** Why the files cannot be listed. Later calls fail with it, and the state stays the beginning. */
  #failure: ReadingFailure | undefined;

  constructor(context: IteratorContext, node: ListFilesNode) {
    super();
    this.#context = context;
    this.#node = node;
    this.#splits = context.openSplits();
  }

  override next(): Pulled<unknown> {
    if (this.disposed) return END;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#paths === undefined) return this.#start();
    if (this.#position < this.#stop) return this.#give(this.#paths[this.#position++]!);
    return this.#splits === undefined ? END : this.#nextSplit(this.#splits, this.#paths);
  }

  override token(): Token | undefined {
    return this.#last;
  }

  override again(token: Token): unknown {
    return token;
  }

  protected override saveState(): Promise<ListFilesState> {
    if (this.#splits !== undefined) throw readsSplitsError();
    return Promise.resolve({ position: this.#position, listing: this.#fingerprint() });
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { position, listing } = state as ListFilesState;
    if (listing === undefined) return;
    await this.#list();
    const found = this.#fingerprint()!;
    const { digest, count } = wholeState(listing);
    if (found.digest !== digest) {
      throw new LeatError(
        "failed_precondition",
        `listFiles: the listing has changed since the iterator was saved: ` +
          `${this.#node.description} matched ${count} files then, and matches ` +
          `${found.count} now, not all of them the same`,
      );
    }
    this.#position = position;
  }

  async #start(): Promise<unknown> {
    try {
      await this.#list();
    } catch (error) {
      if (this.disposed) return END;
      return this.#fail(this.#context.stats.failed(listingError(error)));
    }
    return this.next();
  }

  /** Without a listing this iterator can read no split, so it must take no split from other tasks. */
  #fail(error: unknown): never {
    if (error instanceof ReadingFailure) this.#failure = error;
    else this.dispose();
    throw error;
  }

  #fingerprint(): ListingFingerprint | undefined {
    const paths = this.#paths;
    if (paths === undefined) return undefined;
    return this.#computedFingerprint ??= {
      count: paths.length,
      digest: hashJson(paths.toSorted()),
    };
  }

  /** Lists the files, and puts them in the order of this iteration. */
  async #list(): Promise<void> {
    const { host } = this.#context;
    this.#paths = await this.#context.waitFor(this.#node.list(host, this.#closing.signal));
    if (this.disposed || this.#splits !== undefined) return;
    if (this.#node.shuffle) this.#paths = shuffled(this.#paths, this.#randomState());
    this.#stop = this.#paths.length;
  }

  #randomState(): RandomStream {
    const { seed } = this.#node;
    const { randomState } = this.#context;
    return seed === undefined
      ? this.#context.randomStream()
      : this.#context.seededStream(seed, randomState.epoch);
  }

  async #nextSplit(splits: SplitReader, paths: readonly string[]): Promise<unknown> {
    const split = await this.#context.waitFor(splits.next());
    if (split === END || this.disposed) return END;
    const { description } = this.#node;
    return this.#give(fileOfNumber(paths, split.start, { operator: "listFiles", description }));
  }

  #give(path: string): unknown {
    this.#last = path;
    return this.#context.stats.gave(path);
  }

  protected override release(): void {
    this.#closing.abort();
    this.#paths = [];
    this.#position = this.#stop = 0;
  }
}

/** Returns a copy in random order (Fisher and Yates). */
export function shuffled(paths: readonly string[], randomState: RandomStream): string[] {
  const copy = [...paths];
  for (let last = copy.length - 1; last > 0; last--) {
    const other = randomState.int(last + 1);
    [copy[last], copy[other]] = [copy[other]!, copy[last]!];
  }
  return copy;
}
