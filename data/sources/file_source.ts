/**
 * The base of sources that read files. They pull names from their input, and read one file after the
 * other, or several in round-robin order. If a file cannot be read, they continue with the next.
 */
import { LeatError } from "../../core/error.ts";
import { checkInteger, invalidArgument, optionsOf, show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import {
  compressionOf,
  COMPRESSIONS,
  type FileCompression,
} from "../formats/compression/compression.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../formats/format_reader.ts";
import type { Host } from "../host.ts";
import type { ElementIterator } from "../iterator.ts";
import type { Attributes } from "../node.ts";
import { UnaryNode } from "../operators/unary.ts";
import { AUTOTUNE } from "../parallelism.ts";
import type { SpecCheck } from "../elements/spec_check.ts";
import type { Split, Splittable } from "../sharding/splits.ts";
import { listFileParts } from "./reading/file_parts.ts";
import { filesNode, isFileListing } from "./files.ts";
import { ParallelFiles } from "./reading/parallel_files.ts";
import { SequentialFiles } from "./reading/sequential_files.ts";
import { fileOfStorage, storageError } from "./reading/storage_errors.ts";

/** Maximum number of files that one source reads concurrently. Each has a descriptor and a buffer. */
export const PARALLEL_READS_MAX = 256;

/** The value of `AUTOTUNE`. It is fixed, because it determines the order of elements. */
const AUTOTUNE_PARALLEL_READS = 4;

/** How files are read. */
export interface FileSourceOptions {
  /**
   * How all files are compressed. With `"auto"`, the name of each file decides (`.gz`, `.tgz`, `.zst`,
   * `.zz` and similar ones): of a URL the end of its path, or of its query if the last part of the path
   * has no ".". Default: no compression.
   */
  readonly compression?: FileCompression | undefined;
  /**
   * Number of files read concurrently, up to 256, one element of each in turn. Default 1: one file
   * after the other. `AUTOTUNE` is 4.
   */
  readonly numParallelReads?: number | undefined;
}

/** Returns the check of options for formats that have only `FileSourceOptions`. */
export function fileOptions(kind: string): ReturnType<typeof optionsOf> {
  return optionsOf<FileSourceOptions>(kind, { compression: true, numParallelReads: true });
}

/**
 * A dataset over files.
 *
 * In an iteration that reads splits, a split is a part of a file if the format can divide files and the
 * input is a file listing. Otherwise the dataset of names is divided, and files are read whole.
 */
export abstract class FileSourceNode extends UnaryNode implements Splittable {
  override readonly division = "split";
  readonly compression: FileCompression | undefined;
  readonly numParallelReads: number;

  /** @param files A path, paths, or a dataset of paths or its node. */
  constructor(
    kind: string,
    files: unknown,
    options: { compression?: unknown; numParallelReads?: unknown } = {},
  ) {
    super(kind, filesNode(kind, files));
    this.compression = checkCompression(kind, options.compression);
    this.numParallelReads = checkParallelReads(kind, options.numParallelReads);
  }

  /**
   * Makes the reader of a file, or of a part of it. If it throws, the file is lost, and the caller
   * closes it.
   *
   * @param host The host that opened the file, for formats that need more of it.
   */
  abstract openReader(
    source: SourceFile,
    from: ReadFrom,
    host: Host,
  ): FormatReader | Promise<FormatReader>;

  /**
   * Returns the number of parts that can be read independently. Formats that cannot divide files leave
   * this method out. It is not called for compressed files.
   */
  countParts?(source: SourceFile): number | Promise<number>;

  /**
   * How many bytes of a far file are requested when it is opened to count its parts, or to read one of
   * them; default: the storage's choice. @see {@linkcode Files.open}
   */
  get firstBytesToCount(): number | undefined {
    return undefined;
  }

  /** The check of elements against the user's spec, if there is one. */
  get check(): SpecCheck | undefined {
    return undefined;
  }

  /** Whether each file becomes one element. */
  get isOnePerFile(): boolean {
    return false;
  }

  override splitMultiple(multiple: number): number {
    return this.isOnePerFile ? multiple : super.splitMultiple(multiple);
  }

  /** Whether some files can be divided. */
  protected get dividesFiles(): boolean {
    return this.countParts !== undefined &&
      (this.compression === undefined || this.compression === "auto");
  }

  get isDivided(): boolean {
    return this.dividesFiles && isFileListing(this.input);
  }

  async listSplits(host: Host, _multiple: number): Promise<Split[]> {
    const { input } = this;
    if (isFileListing(input)) return await listFileParts(this, await input.list(host), host);
    throw new LeatError("internal", `${this.kind} over ${input.kind} is not divided itself`);
  }

  /**
   * Opens one file, which the caller closes. `signal` cancels opening. Opening and reading it fail with
   * a `ReadingFailure` if the storage cannot answer now. For `firstBytes` see `Files.open`.
   *
   * @throws {LeatError} `invalid_argument` for a value that is no path, and the host's errors.
   */
  async openFile(
    host: Host,
    path: unknown,
    signal?: AbortSignal,
    firstBytes?: number,
  ): Promise<SourceFile> {
    if (typeof path !== "string") {
      throw new LeatError(
        "invalid_argument",
        `${this.kind}: the dataset of files must give paths, got ${show(path)}`,
      );
    }
    try {
      const file = fileOfStorage(await host.files.open(path, signal, firstBytes));
      return { path, file, compression: compressionOf(path, this.compression) };
    } catch (error) {
      throw storageError(hinted(error, this.hintIfMissing(path)));
    }
  }

  /** Returns the number of parts of any file; 1 if it cannot be divided. */
  async partsOf(source: SourceFile): Promise<number> {
    if (this.countParts === undefined || source.compression !== undefined) return 1;
    return await this.countParts(source);
  }

  override get attributes(): Attributes {
    const { compression, numParallelReads } = this;
    return { ...(compression === undefined ? {} : { compression }), numParallelReads };
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return this.numParallelReads === 1
      ? new SequentialFiles(context, this)
      : new ParallelFiles(context, this);
  }

  /** The remedy for a missing file, if there is a better one than to look for it. */
  protected hintIfMissing(path: string): string | undefined {
    // HTTP has no listing, and the query of a URL, which follows a "?", may be a secret.
    if (/^https?:/i.test(path) || !/[*?]/.test(path)) return undefined;
    const call = `Dataset.${this.kind}(Dataset.listFiles(${JSON.stringify(path)}))`;
    return `${this.kind} takes paths; read the files that match a pattern with ${call}.`;
  }
}

function hinted(error: unknown, hint: string | undefined): unknown {
  const isMissing = error instanceof LeatError && error.code === "not_found";
  if (!isMissing || hint === undefined) return error;
  return new LeatError(error.code, `${error.message} ${hint}`, { cause: error });
}

function checkCompression(operator: string, value: unknown): FileCompression | undefined {
  const allowed: readonly unknown[] = [undefined, ...COMPRESSIONS, "auto"];
  if (allowed.includes(value)) return value as FileCompression | undefined;
  const wanted = `one of ${[...COMPRESSIONS, "auto"].map(show).join(", ")}`;
  throw invalidArgument(operator, "compression", wanted, value);
}

function checkParallelReads(operator: string, value: unknown): number {
  if (value === undefined) return 1;
  if (value === AUTOTUNE) return AUTOTUNE_PARALLEL_READS;
  return checkInteger(operator, "numParallelReads", value, 1, PARALLEL_READS_MAX);
}
