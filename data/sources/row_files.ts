/** The base of sources of rows: files of columns or arrays, which are read in blocks of rows. */
import { checkArray, invalidArgument, optionsOf } from "../check.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { blockReader, type RowBlocks } from "../formats/row_blocks.ts";
import type { Attributes } from "../node.ts";
import { checkSpec, type ElementSpec } from "../elements/spec.ts";
import { SpecCheck } from "../elements/spec_check.ts";
import { FileSourceNode, type FileSourceOptions } from "./file_source.ts";

/** How files of rows are read. */
export interface RowFileOptions extends Pick<FileSourceOptions, "numParallelReads"> {
  /**
   * The spec of a row, for `elementSpec` and for the dtypes of batches. Default: unknown. A row that
   * does not fit is an error. A null in place of a value is allowed.
   */
  readonly spec?: ElementSpec | undefined;
}

/** How files of columns are read. */
export interface ColumnFileOptions extends RowFileOptions {
  /** The columns of rows, in this order; default: all. */
  readonly columns?: readonly string[] | undefined;
}

/** Makes `compression` a known option, so that the constructor can refuse it with an explanation. */
export type AndCompression<O> = O & Pick<FileSourceOptions, "compression">;

/** Returns the check of options for formats with columns. */
export function columnFileOptions(kind: string): ReturnType<typeof optionsOf> {
  return optionsOf<AndCompression<ColumnFileOptions>>(kind, {
    columns: true,
    spec: true,
    numParallelReads: true,
    compression: true,
  });
}

/** Enough for a header. What is read first is often the end of the file, and then a part in its middle. */
const FIRST_BYTES = 64 * 1024;

export abstract class RowFileNode extends FileSourceNode {
  readonly columns: readonly string[] | undefined;
  override readonly elementSpec: ElementSpec;
  readonly #check: SpecCheck | undefined;
  /** Blocks by file. They are needed first to count the parts of a file, and then to read a part. */
  readonly #opened = new WeakMap<SourceFile, Promise<RowBlocks>>();

  constructor(
    kind: string,
    files: unknown,
    options: { [name in "columns" | "compression" | "numParallelReads" | "spec"]?: unknown } = {},
  ) {
    const { columns, compression, numParallelReads, spec } = options;
    super(kind, files, { numParallelReads });
    if (compression !== undefined) {
      throw invalidArgument(
        kind,
        "compression",
        "left out, because these formats compress their own contents",
        compression,
      );
    }
    this.columns = columns === undefined ? undefined : checkColumnNames(kind, columns);
    this.elementSpec = checkSpec(kind, spec);
    this.#check = SpecCheck.of(this.elementSpec, { nullable: true });
  }

  /** Reads what is needed before the blocks of a file can be read, such as its footer. */
  protected abstract openBlocks(source: SourceFile): Promise<RowBlocks>;

  override async openReader(source: SourceFile, from: ReadFrom): Promise<FormatReader> {
    return blockReader(source.file, await this.#blocksOf(source), from);
  }

  override get firstBytesToCount(): number {
    return FIRST_BYTES;
  }

  override async countParts(source: SourceFile): Promise<number> {
    return (await this.#blocksOf(source)).partCount;
  }

  override get attributes(): Attributes {
    const { columns } = this;
    return {
      ...super.attributes,
      ...(columns === undefined ? {} : { columns }),
      ...(this.elementSpec === undefined ? {} : { spec: this.elementSpec }),
    };
  }

  /** False with a spec. A spec describes all columns, so all are read and checked. */
  override get readsFields(): boolean {
    return this.elementSpec === undefined && this.canLeaveOutColumns;
  }

  /** Whether the format can leave out columns that are not wanted. */
  protected readonly canLeaveOutColumns: boolean = false;

  override get check(): SpecCheck | undefined {
    return this.#check;
  }

  #blocksOf(source: SourceFile): Promise<RowBlocks> {
    return this.#opened.getOrInsertComputed(source, () => this.openBlocks(source));
  }
}

function checkColumnNames(operator: string, value: unknown): readonly string[] {
  const columns = checkArray(operator, "columns", value);
  const isName = (name: unknown) => typeof name === "string" && name !== "";
  if (columns.length === 0 || !columns.every(isName) || new Set(columns).size < columns.length) {
    throw invalidArgument(operator, "columns", "different names, at least one", value);
  }
  return [...columns] as string[];
}
