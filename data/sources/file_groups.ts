/**
 * Groups of files as splits. Each group has enough files for whole batches. Used for sources that make
 * one element of each file, because a split costs more than reading such a file.
 */
import { LeatError } from "../../core/error.ts";
import { hashJson } from "../../core/hash.ts";
import { RandomStream } from "../../core/philox.ts";
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { ListedHost } from "../deterministic/listed_host.ts";
import { withInputs } from "../deterministic/chain.ts";
import type { Host } from "../host.ts";
import { ElementIterator, END, type Pulled } from "../iterator.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { type Attributes, type DatasetNode, type Division, registerNode } from "../node.ts";
import { SameElementsNode } from "../operators/unary.ts";
import {
  cutEvery,
  readsSplitsError,
  type Split,
  type SplitReader,
  type Splittable,
} from "../sharding/splits.ts";
import { FileSourceNode } from "./file_source.ts";
import { type FileListing, fileNumber, isFileListing } from "./files.ts";
import { ListFilesNode, shuffled } from "./list_files.ts";

/** A group has at least this many files, unless there would be fewer groups than `GROUPS_MIN`. */
const FILES_MIN = 16;
/** A listing has this many groups or more, if it has as many files, so that all workers get some. */
const GROUPS_MIN = 16;

/**
 * A listing whose splits are groups of files. If the listing is shuffled, each epoch assigns the files
 * to groups anew.
 */
export class FileGroupsNode extends SameElementsNode implements Splittable {
  /** The user did not add this operator, so the random numbers of others must not depend on it. */
  override readonly isSetting = true;
  readonly listing: DatasetNode & FileListing;
  /** The size of a group is a multiple of this, so that its files make whole batches. */
  readonly multiple: number;

  constructor(listing: DatasetNode, multiple: unknown) {
    super("fileGroups", listing);
    this.multiple = checkInteger("fileGroups", "multiple", multiple, 1);
    if (!isFileListing(listing)) {
      throw new LeatError("invalid_argument", `fileGroups: ${listing.kind} lists no files`);
    }
    this.listing = listing;
  }

  override get attributes(): Attributes {
    return { multiple: this.multiple };
  }

  override get division(): Division {
    return this.isShuffled ? "shuffle" : "split";
  }

  get isShuffled(): boolean {
    return this.listing instanceof ListFilesNode && this.listing.shuffle;
  }

  async listSplits(host: Host): Promise<Split[]> {
    const paths = await this.listing.list(host);
    const { multiple } = this;
    const sizeMax = Math.floor(paths.length / GROUPS_MIN);
    const wanted = Math.min(sizeMax, multiple * Math.ceil(FILES_MIN / multiple));
    const size = wanted < multiple ? wanted : wanted - wanted % multiple;
    const first = firstNumber(paths);
    return cutEvery(paths.length, Math.max(1, size))
      .map(({ start, stop }) => ({ start: first + start, stop: first + stop }));
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    const splits = context.openSplits();
    return splits === undefined
      ? context.passInput()
      : new FileGroupsIterator(context, this, splits);
  }
}

registerNode("fileGroups", {
  fromWire: (a, [listing]) => new FileGroupsNode(listing!, a.multiple),
});

/**
 * Returns the number of a listing's first file. It identifies the listing, because only one in 8,192
 * other listings has the same number.
 *
 * @param paths The paths of the listing, in its order.
 */
function firstNumber(paths: readonly string[]): number {
  return fileNumber([hashJson(paths)], 0);
}

/** The `firstNumber` of each listing, by its array of names in the order of an epoch. */
const firstNumbers = new WeakMap<readonly string[], number>();

/**
 * Returns the pipeline with groups of files as splits of sources that make one element of each file.
 * Sources that read several elements from a file keep their splits.
 */
export function withFileGroups(node: DatasetNode, multiple = 1): DatasetNode {
  if (isFileListing(node)) return new FileGroupsNode(node, multiple);
  if (node instanceof FileSourceNode && !node.isOnePerFile) return node;
  const inputs = node.inputs.map((input) => withFileGroups(input, node.splitMultiple(multiple)));
  return inputs.every((input, i) => input === node.inputs[i]) ? node : withInputs(node, inputs);
}

/** Returns the names of the files in the groups that it is assigned. */
class FileGroupsIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #node: FileGroupsNode;
  readonly #splits: SplitReader;
  /** `undefined` before the first `next()`. */
  #paths: readonly string[] | undefined;
  #position = 0;
  #stop = 0;

  constructor(context: IteratorContext, node: FileGroupsNode, splits: SplitReader) {
    super();
    this.#context = context;
    this.#node = node;
    this.#splits = splits;
  }

  override next(): Pulled<unknown> {
    if (this.disposed) return END;
    if (this.#position >= this.#stop) return this.#nextSplit();
    return this.#context.stats.gave(this.#paths![this.#position++]!);
  }

  protected override saveState(): Promise<unknown> {
    throw readsSplitsError();
  }

  protected override restoreState(): Promise<void> {
    throw readsSplitsError();
  }

  protected override release(): void {
    this.#paths = [];
    this.#position = this.#stop = 0;
  }

  async #nextSplit(): Promise<unknown> {
    let paths: readonly string[];
    try {
      paths = this.#paths ??= await this.#context.waitFor(this.#list());
    } catch (error) {
      throw ReadingFailure.of(this.#context.stats.failed(error));
    }
    const split = await this.#context.waitFor(this.#splits.next());
    if (split === END || this.disposed) return END;
    const first = firstNumbers.get(paths)!;
    [this.#position, this.#stop] = [split.start - first, split.stop - first];
    const { stats } = this.#context;
    if (this.#position < 0 || this.#stop > paths.length) {
      throw ReadingFailure.of(stats.failed(changed(this.#node.listing)));
    }
    return this.next();
  }

  /** Lists the names, in the order of the epoch. With a `ListedHost`, all splits share one listing. */
  async #list(): Promise<readonly string[]> {
    const { host } = this.#context;
    const list = async () => {
      const listed = await this.#node.listing.list(host);
      const paths = this.#inOrder(listed);
      firstNumbers.set(paths, firstNumber(listed));
      return paths;
    };
    return host instanceof ListedHost ? await host.listing(this.#node, list) : await list();
  }

  #inOrder(paths: readonly string[]): string[] {
    const { listing, isShuffled } = this.#node;
    if (!isShuffled) return [...paths];
    const { seed } = listing as ListFilesNode;
    // Uses no random stream of an operator, because an iteration of its own may read the source.
    const { root, epoch } = this.#context.randomState;
    return shuffled(paths, new RandomStream(seed ?? root(), ["order of files", epoch]));
  }
}

function changed({ description }: FileListing): LeatError {
  return new LeatError(
    "data_loss",
    `listFiles: a split names files that ${description} does not have here; the listing has ` +
      "changed, or differs between hosts",
  );
}
