/** The base of the iterators of file sources. Opens files or parts, at the start or a saved position. */
import { LeatError } from "../../../core/error.ts";
import { shownPath } from "../../../core/shown_text.ts";
import type { IteratorContext } from "../../context.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../../formats/format_reader.ts";
import { UnaryIterator } from "../../operators/unary.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";
import { checkPart, type FilePart, FileParts } from "./file_parts.ts";
import type { FileSourceNode } from "../file_source.ts";
import { isFileListing } from "../files.ts";
import { meteredFile, type MeterReader, readerMeter } from "./metered_reading.ts";

/** A file that is being read. */
export interface OpenReading {
  readonly path: string;
  readonly sizeBytes: number;
  readonly reader: FormatReader;
}

/** The saved state of a file that is being read. */
export interface SavedReading {
  readonly path: string;
  readonly sizeBytes: number;
  readonly position: unknown;
}

/** Opens the files of one source, and closes the open ones when it is disposed. */
export abstract class FileSourceIterator extends UnaryIterator {
  readonly #node: FileSourceNode;
  readonly #metered: MeterReader;
  readonly #open = new Set<OpenReading>();
  readonly #closing = new AbortController();

  constructor(context: IteratorContext, node: FileSourceNode) {
    super(context, inputOf(context, node));
    this.#node = node;
    this.#metered = readerMeter(context);
  }

  /**
   * Opens a path or a `FilePart` that came from the input. Returns `undefined` if this iterator was
   * disposed meanwhile. Rejects if the file or its part cannot be opened, with a `ReadingFailure` if
   * the storage cannot answer now.
   */
  protected openReading(item: unknown): Promise<OpenReading | undefined> {
    if (!isFilePart(item)) return this.#openFile(item, () => Promise.resolve({}));
    const { path, part } = item;
    // Of the file's beginning a later part needs no more than what tells the parts.
    const firstBytes = part ? this.#node.firstBytesToCount : undefined;
    return this.#openFile(path, async (source) => {
      if (part === undefined) return {};
      checkPart(item, await this.#node.partsOf(source));
      return { part };
    }, firstBytes);
  }

  /** Reopens a file from a checkpoint. Rejects if the file has changed since. */
  protected reopen(saved: SavedReading): Promise<OpenReading | undefined> {
    const { path, sizeBytes, position } = wholeState(saved);
    return this.#openFile(path, ({ file }) => {
      if (file.sizeBytes === sizeBytes) return Promise.resolve({ position: wholeState(position) });
      throw new LeatError(
        "failed_precondition",
        `${shownPath(path)} has changed since the iterator was saved: ` +
          `it had ${sizeBytes} bytes then, and has ${file.sizeBytes} now.`,
      );
    });
  }

  /** The fields keep their order, because existing checkpoints have it. */
  protected override async saveState(): Promise<unknown> {
    return { input: await this.input.save(), ...await this.ownState() };
  }

  /** Returns an element of a file. Throws if the element does not fit the user's spec. */
  protected give(element: unknown, { path }: OpenReading): unknown {
    const { check } = this.#node;
    if (check === undefined || check.fits(element)) return this.stats.gave(element);
    throw this.stats.failed(
      check.failure(element, `${this.stats.operator}: a row of ${shownPath(path)}`),
    );
  }

  protected closeReading(reading: OpenReading): void {
    this.#open.delete(reading);
    reading.reader.close();
  }

  protected override release(): void {
    this.#closing.abort();
    for (const { reader } of this.#open) reader.close();
    this.#open.clear();
    super.release();
  }

  async #openFile(
    path: unknown,
    fromOf: (source: SourceFile) => Promise<ReadFrom>,
    firstBytes?: number,
  ): Promise<OpenReading | undefined> {
    try {
      return await this.context.waitFor(this.#openReading(path, fromOf, firstBytes));
    } catch (error) {
      if (this.disposed) return undefined;
      throw this.stats.failed(error);
    }
  }

  async #openReading(
    path: unknown,
    fromOf: (source: SourceFile) => Promise<ReadFrom>,
    firstBytes: number | undefined,
  ): Promise<OpenReading | undefined> {
    const { signal } = this.#closing;
    const opened = await this.#node.openFile(this.context.host, path, signal, firstBytes);
    const file = meteredFile(opened.file, this.context);
    const wantedFields = this.#node.readsFields ? this.context.wantedFields : undefined;
    const source = { ...opened, file, wantedFields };
    // The first reads of the format may take long, too. Closing the file cancels them.
    const closeFile = () => file.close();
    signal.addEventListener("abort", closeFile, { once: true });
    let opening: { close(): void } = file;
    try {
      if (!this.disposed) {
        const { host } = this.context;
        const unmetered = await this.#node.openReader(source, await fromOf(source), host);
        const reader = this.#metered(unmetered, file);
        opening = reader;
        if (!this.disposed) {
          const reading = { path: source.path, sizeBytes: file.sizeBytes, reader };
          this.#open.add(reading);
          return reading;
        }
      }
      opening.close();
      return undefined;
    } catch (error) {
      opening.close();
      throw error;
    } finally {
      signal.removeEventListener("abort", closeFile);
    }
  }
}

export function saveReading({ path, sizeBytes, reader }: OpenReading): SavedReading {
  return { path, sizeBytes, position: reader.save() };
}

/** Returns the parts of files that a service assigns; `undefined` if the input gives file names. */
function inputOf(context: IteratorContext, node: FileSourceNode): FileParts | undefined {
  const listing = node.inputs[0]!;
  if (!node.isDivided || !isFileListing(listing)) return undefined;
  const splits = context.openSplits();
  return splits === undefined ? undefined : new FileParts(context, listing, splits);
}

function isFilePart(item: unknown): item is FilePart {
  return typeof item === "object" && item !== null && "isLast" in item;
}
