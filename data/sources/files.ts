/**
 * The source of the file names that every file source gets as its argument `files`. Because it is a
 * source of its own, every format can be divided file by file.
 */
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import { hashBytes } from "../../core/hash.ts";
import { invalidArgument } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import type { Host } from "../host.ts";
import { type Attributes, DatasetNode, nodeOf, registerNode } from "../node.ts";
import { IndexedIterator, IndexedNode } from "../operators/sources/indexed.ts";
import { TensorSpec } from "../elements/spec.ts";
import { cutFiles, type Split } from "../sharding/splits.ts";

/** A dataset of file names that can be listed without running it. */
export interface FileListing {
  /**
   * Lists all names, in an order that depends only on the names. Rejects if there are none, or if
   * `signal` is aborted.
   */
  list(host: Host, signal?: AbortSignal): Promise<readonly string[]>;
  /** What is listed, in messages. */
  readonly description: string;
}

/** A file's index in a listing is below this. */
const FILES_MAX = 2 ** 22;

/** Maximum number of parts of a file that is divided. */
export const PARTS_PER_FILE_MAX = 2 ** 18;

/** Number of checksums. A safe integer holds a checksum, the index of a file and the index of a part. */
const CHECKS = (Number.MAX_SAFE_INTEGER + 1) / (FILES_MAX * PARTS_PER_FILE_MAX);

/**
 * Returns the number of a file in splits, made of its index in the listing and a checksum of its name.
 * If a host's listing has another file at this index, the checksum differs in 8,191 of 8,192 cases.
 */
export function fileNumber(paths: readonly string[], index: number): number {
  // The last index is not used, because the range of its parts would not end at a safe integer.
  if (index >= FILES_MAX - 1) {
    throw new LeatError(
      "resource_exhausted",
      `A listing of ${paths.length} files cannot be divided; the maximum is ${
        FILES_MAX - 1
      }. Write ` +
        `fewer and larger files.`,
    );
  }
  return nameCheck(paths[index]!) * FILES_MAX + index;
}

/**
 * Returns the file with this number.
 *
 * @throws {LeatError} `data_loss` if the listing here is not the one that was divided.
 */
export function fileOfNumber(
  paths: readonly string[],
  number: number,
  { operator, description }: { readonly operator: string; readonly description: string },
): string {
  const index = number % FILES_MAX;
  const path = paths[index];
  if (path !== undefined && nameCheck(path) === Math.floor(number / FILES_MAX)) return path;
  const found = path === undefined ? `${paths.length} files` : `${shownPath(path)} at this index`;
  throw new LeatError(
    "data_loss",
    `${operator}: a split names file ${index} of the listing, but ${description} has ${found} here; ` +
      `the listing has changed, or differs between hosts`,
  );
}

function nameCheck(path: string): number {
  return Number.parseInt(hashBytes(path).slice(0, 8), 16) % CHECKS;
}

export function isFileListing(node: DatasetNode): node is DatasetNode & FileListing {
  return "list" in node && typeof node.list === "function";
}

/** A source of the given file names, in this order. */
export class FilesNode extends IndexedNode implements FileListing {
  override readonly elementSpec = new TensorSpec("string", []);
  readonly paths: readonly string[];

  constructor(paths: readonly string[]) {
    super("files");
    this.paths = [...paths];
  }

  override get attributes(): Attributes {
    return { paths: this.paths };
  }

  override get cardinality(): number {
    return this.paths.length;
  }

  get description(): string {
    return `the list of ${this.paths.length} files`;
  }

  list(_host: Host): Promise<readonly string[]> {
    return Promise.resolve(this.paths);
  }

  override listSplits(_host: Host, _multiple: number): Promise<Split[]> {
    return Promise.resolve(cutFiles(this.paths.length));
  }

  override makeIterator(context: IteratorContext): FilesIterator {
    return new FilesIterator(context, this.paths);
  }
}

registerNode("files", { fromWire: (a) => new FilesNode(checkPaths("files", "paths", a.paths)) });

class FilesIterator extends IndexedIterator {
  readonly #paths: readonly string[];

  constructor(context: IteratorContext, paths: readonly string[]) {
    super(context, paths.length);
    this.#paths = paths;
  }

  protected override at(index: number): unknown {
    return this.#paths[index];
  }
}

/**
 * Makes the dataset of file names from a name, an array of names, or a dataset of names or its node.
 *
 * @throws {LeatError} `invalid_argument` for anything else, naming `operator`.
 */
export function filesNode(operator: string, files: unknown): DatasetNode {
  if (files instanceof DatasetNode) return files;
  return nodeOf(files) ?? new FilesNode(checkPaths(operator, "files", files));
}

/** Checks a path, or an array of paths, and returns an array. */
export function checkPaths(operator: string, argument: string, value: unknown): string[] {
  const paths: unknown[] = Array.isArray(value) ? value : [value];
  const wanted = "a path, an array of paths or a dataset of paths";
  for (const path of paths) {
    if (typeof path !== "string" || path === "") {
      throw invalidArgument(operator, argument, wanted, path);
    }
  }
  return paths as string[];
}
