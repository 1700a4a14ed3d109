/** Reads stored datasets. */
import { LeatError } from "../../core/error.ts";
import { ByteReader } from "../formats/byte_reader.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { type RecordPosition, RecordReader } from "../formats/tfrecord/tfrecord.ts";
import type { Host } from "../host.ts";
import { END } from "../iterator.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import { FileSourceNode, type FileSourceOptions } from "../sources/file_source.ts";
import { FilesNode } from "../sources/files.ts";
import { checkSpec, type ElementSpec } from "../elements/spec.ts";
import { type Chunk, type Manifest, readManifest, within } from "./manifest.ts";
import { decodeElement } from "./stored_element.ts";

interface StoredOptions extends FileSourceOptions {
  readonly spec?: unknown;
  /** Number of elements of each file, by path. */
  readonly counts?: unknown;
}

/** The elements of chunk files, one file after the other. A split is a whole file. */
class StoredNode extends FileSourceNode {
  override readonly elementSpec: ElementSpec;
  readonly #counts: Readonly<Record<string, number>>;

  constructor(files: DatasetNode, { spec, counts = {}, ...options }: StoredOptions) {
    super("stored", files, options);
    this.elementSpec = checkSpec("stored", spec);
    this.#counts = counts as Record<string, number>;
  }

  override get attributes(): Attributes {
    return { ...super.attributes, spec: this.elementSpec, counts: this.#counts };
  }

  override get cardinality(): number {
    return Object.values(this.#counts).reduce((sum, count) => sum + count, 0);
  }

  /** Without the files of a dataset that was overwritten, what remains of it is not the dataset. */
  override async openFile(
    host: Host,
    path: string,
    signal?: AbortSignal,
    firstBytes?: number,
  ): Promise<SourceFile> {
    try {
      return await super.openFile(host, path, signal, firstBytes);
    } catch (error) {
      const isMissing = LeatError.from(error).code === "not_found";
      if (isMissing && await isOverwritten(host, path)) throw ReadingFailure.of(overwritten(path));
      throw error;
    }
  }

  override openReader(source: SourceFile, { position }: ReadFrom): FormatReader {
    const from = position as ElementPosition | undefined;
    const records = new RecordReader(ByteReader.of(source, from?.offset), from?.ended);
    return elementReader(source.path, records, this.#counts[source.path] ?? 0, from);
  }

  protected override hintIfMissing(): string {
    return "It belongs to a saved dataset, cache or snapshot: put it back, or remove the folder and have it " +
      "written again.";
  }
}

/** Whether another dataset was saved in the folder of a chunk. */
async function isOverwritten(host: Host, path: string): Promise<boolean> {
  const { folder, name } = splitPath(path);
  const manifest = await readManifest(host, folder).catch(() => undefined);
  return manifest !== undefined && !manifest.chunks.some((chunk) => chunk.name === name);
}

function overwritten(path: string): LeatError {
  const { folder } = splitPath(path);
  return new LeatError(
    "failed_precondition",
    `load: ${folder} was overwritten: the dataset that was being read is gone. Load it again; a cache ` +
      "or snapshot reads the new one in its next epoch.",
  );
}

function splitPath(path: string): { folder: string; name: string } {
  const slash = path.lastIndexOf("/");
  return { folder: path.slice(0, slash), name: path.slice(slash + 1) };
}

registerNode("stored", { fromWire: (a, [files]) => new StoredNode(files!, a) });

/** The node that reads a stored dataset, or only some of its chunks. */
export function storedNode(
  folder: string,
  { spec, compression, chunks: all }: Manifest,
  chunks: readonly Chunk[] = all,
): StoredNode {
  const paths = chunks.map(({ name }) => within(folder, name));
  const counts = Object.fromEntries(chunks.map(({ count }, i) => [paths[i], count]));
  return new StoredNode(new FilesNode(paths), { spec, counts, compression });
}

interface ElementPosition extends RecordPosition {
  /** Number of elements that are still expected. */
  readonly left: number;
  /** Whether damage was reported. Then missing elements are not reported as well. */
  readonly isDamaged: boolean;
}

/** The elements of one chunk file. Damage, missing and surplus elements are `data_loss`. */
function elementReader(
  path: string,
  records: RecordReader,
  count: number,
  from: ElementPosition | undefined,
): FormatReader {
  let { left, isDamaged } = from ?? { left: count, isDamaged: false };
  let hasSurplus = false;
  const fail = (error: unknown) => {
    if (error instanceof ReadingFailure) return error;
    isDamaged = true;
    if (left > 0) left--; // the damaged one
    return error;
  };
  const decode = (record: unknown) => {
    if (record === END) {
      if (left === 0 || isDamaged || records.disposed) return END;
      const missing = `${path} is cut short: it lacks ${left} of ${count} elements.`;
      throw fail(new LeatError("data_loss", missing));
    }
    if (left === 0) {
      hasSurplus = true;
      throw surplus(path, count);
    }
    left--;
    return decodeElement(record as Uint8Array, path);
  };
  return {
    get disposed() {
      return records.disposed;
    },
    step: () => {
      if (hasSurplus) return END;
      let record: unknown;
      try {
        record = records.step();
      } catch (error) {
        throw fail(error);
      }
      if (!(record instanceof Promise)) return decode(record);
      return record.then(decode, (error) => {
        throw fail(error);
      });
    },
    save: () => {
      const { offset, ended } = records.save();
      return { offset, ended: ended || hasSurplus, left, isDamaged } satisfies ElementPosition;
    },
    close: () => records.close(),
  };
}

function surplus(path: string, count: number): LeatError {
  return new LeatError(
    "data_loss",
    `${path} is too long: it holds more than the ${count} elements that were saved in it. Put the right file ` +
      "there, or save the dataset again.",
  );
}
