/**
 * Parts of files as splits. Every file of a listing has a range of `PARTS_PER_FILE_MAX` numbers, which
 * begins at `fileNumber * PARTS_PER_FILE_MAX`. The file's parts have the first numbers of the range, so
 * a number identifies a file and a part. The split of a file's last part ends where the range ends.
 */
import { mapConcurrent } from "../../../core/map_concurrent.ts";
import { LeatError } from "../../../core/error.ts";
import { shownPath } from "../../../core/shown_text.ts";
import type { IteratorContext } from "../../context.ts";
import type { SourceFile } from "../../formats/format_reader.ts";
import type { Host } from "../../host.ts";
import { ElementIterator, END, type Pulled } from "../../iterator.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";
import { readsSplitsError, type Split, type SplitReader } from "../../sharding/splits.ts";
import type { FileSourceNode } from "../file_source.ts";
import { type FileListing, fileNumber, fileOfNumber, PARTS_PER_FILE_MAX } from "../files.ts";
import { listingError } from "./storage_errors.ts";

/** Number of files opened concurrently to count their parts, because remote storage is slow. */
const CONCURRENT_COUNTS = 16;

/** A part of a file, or a whole file. */
export interface FilePart {
  readonly path: string;
  /** The number of the part to read; `undefined` for the whole file. */
  readonly part: number | undefined;
  /** Whether it was the file's last part when the splits were listed. */
  readonly isLast: boolean;
}

/**
 * Lists one split per part of each file, in the order of `paths`.
 *
 * @throws {ReadingFailure} if the storage cannot answer now.
 */
export async function listFileParts(
  node: FileSourceNode,
  paths: readonly string[],
  host: Host,
): Promise<Split[]> {
  const counts = await mapConcurrent(
    paths,
    CONCURRENT_COUNTS,
    (path) => countParts(node, path, host),
  );
  return counts.flatMap((count, index) => {
    const first = fileNumber(paths, index) * PARTS_PER_FILE_MAX;
    return Array.from({ length: count }, (_, part) => ({
      start: first + part,
      stop: first + (part < count - 1 ? part + 1 : PARTS_PER_FILE_MAX),
    }));
  });
}

/**
 * Counts the parts of a file. A file that cannot be opened or counted is one part, because its reader
 * reports the error. Storage that cannot answer now says nothing about the file: the next listing would
 * have other splits.
 */
async function countParts(node: FileSourceNode, path: string, host: Host): Promise<number> {
  let source: SourceFile | undefined;
  let count: number;
  try {
    source = await node.openFile(host, path, undefined, node.firstBytesToCount);
    count = await node.partsOf(source);
  } catch (error) {
    if (error instanceof ReadingFailure) throw error;
    return 1;
  } finally {
    source?.file.close();
  }
  if (count <= PARTS_PER_FILE_MAX) return count;
  throw new LeatError(
    "resource_exhausted",
    `${node.kind}: ${shownPath(path)} divides into ${count} parts; the maximum is ` +
      `${PARTS_PER_FILE_MAX}. Write it as several files.`,
  );
}

/** Returns the parts that a task is assigned, in place of file names. */
export class FileParts extends ElementIterator<FilePart> {
  readonly #context: IteratorContext;
  readonly #listing: FileListing;
  readonly #splits: SplitReader;
  readonly #closing = new AbortController();
  /** `undefined` before the first `next()`. */
  #paths: readonly string[] | undefined;
  #position = 0;
  #stop = 0;
  /** Why the files cannot be listed. Later calls fail with it. */
  #failure: ReadingFailure | undefined;

  constructor(context: IteratorContext, listing: FileListing, splits: SplitReader) {
    super();
    this.#context = context;
    this.#listing = listing;
    this.#splits = splits;
  }

  override next(): Pulled<FilePart> {
    if (this.disposed) return END;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#paths === undefined) return this.#start();
    return this.#position < this.#stop ? this.#give(this.#paths) : this.#nextSplit();
  }

  protected override saveState(): Promise<unknown> {
    throw readsSplitsError();
  }

  protected override restoreState(): Promise<void> {
    throw readsSplitsError();
  }

  protected override release(): void {
    this.#closing.abort();
    this.#paths = undefined;
  }

  async #start(): Promise<FilePart | typeof END> {
    try {
      this.#paths = await this.#listing.list(this.#context.host, this.#closing.signal);
    } catch (error) {
      if (this.disposed) return END;
      return this.#fail(listingError(error));
    }
    return this.next();
  }

  /** Without a listing this iterator can read no split, so it must take no split from other tasks. */
  #fail(error: unknown): never {
    if (error instanceof ReadingFailure) this.#failure = error;
    else this.dispose();
    throw error;
  }

  async #nextSplit(): Promise<FilePart | typeof END> {
    const split = await this.#context.waitFor(this.#splits.next());
    if (split === END || this.disposed) return END;
    this.#position = split.start;
    this.#stop = split.stop;
    return this.next();
  }

  #give(paths: readonly string[]): FilePart {
    const file = Math.floor(this.#position / PARTS_PER_FILE_MAX);
    const part = this.#position % PARTS_PER_FILE_MAX;
    const fileStop = (file + 1) * PARTS_PER_FILE_MAX;
    const isLast = this.#stop >= fileStop;
    this.#position = isLast ? fileStop : this.#position + 1;
    const { operator } = this.#context.stats;
    const { description } = this.#listing;
    const path = fileOfNumber(paths, file, { operator, description });
    return { path, part: part === 0 && isLast ? undefined : part, isLast };
  }
}

/**
 * Checks that a file still has the parts that it had when they were listed.
 *
 * @throws {LeatError} `data_loss` naming the file.
 */
export function checkPart({ path, part, isLast }: FilePart, count: number): void {
  if (part === undefined || (isLast ? part === count - 1 : part < count)) return;
  throw new LeatError(
    "data_loss",
    `A split names part ${part}${isLast ? " (the last)" : ""} of ${
      shownPath(path)
    }, but the file ` +
      `divides into ${count} parts here; it has changed since its parts were listed, or differs ` +
      "between hosts.",
  );
}
