/** Writes the files of one run of splits: chunks, left-over rows, and last a note that lists both. */
import { hex64 } from "../../host.ts";
import { isCount } from "../../../core/count.ts";
import { LeatError } from "../../../core/error.ts";
import { isPlainObject } from "../../../core/tree.ts";
import { specOf } from "../../elements/components.ts";
import { type ElementSpec, mergeSpecs } from "../../elements/spec.ts";
import { ChunkWriter } from "../chunk_writer.ts";
import { readDocument, writeDocument } from "../document.ts";
import { isRest, type Rest } from "../ledger.ts";
import { checkChunks, type Chunk, readManifest, removeLeftover, within } from "../manifest.ts";
import type { DistributedFolder } from "./folder.ts";
import type { RunReport, Written, WrittenRun } from "./work.ts";

const NOTE_FORMAT = "leat-run-1";

/** The contents of a run, in order. */
export interface RunNote extends WrittenRun {
  readonly items: readonly ({ readonly chunk: Chunk } | { readonly rest: Rest })[];
  readonly spec: ElementSpec;
}

/** Writes a run. Its files do not count before its note exists. */
export class RunWriter {
  readonly #folder: DistributedFolder;
  readonly #id: string;
  readonly #name: string;
  readonly #run: WrittenRun;
  readonly #items: RunNote["items"][number][] = [];
  #open: ChunkWriter | undefined;
  #rests: ChunkWriter | undefined;
  #restCount = 0;
  #chunkCount = 0;
  #spec: ElementSpec;
  #isSpecKnown = false;
  #isFinished = false;

  /** @param first The position of its first split in the order of splits. */
  constructor(folder: DistributedFolder, id: string, first: number, count: number) {
    this.#folder = folder;
    this.#run = { first, count, attempt: hex64(folder.host) };
    this.#id = id;
    this.#name = nameOfRun(id, this.#run);
  }

  async write(element: unknown): Promise<void> {
    this.#mergeSpec(element);
    const chunk = this.#open ??= await this.#beginChunk();
    await chunk.write(element);
    if (chunk.isFull) await this.#closeChunk();
  }

  /** Writes the rows that a split leaves over. Rows of later splits will fill their batch. */
  async writeRest(sequence: number, index: number, rows: unknown): Promise<void> {
    await this.#closeChunk();
    const file = `${this.#name}.rest`;
    const { host, settings } = this.#folder;
    this.#rests ??= await ChunkWriter.begin(host, settings.folder, file, {
      compress: false,
      bytesMax: Infinity,
    });
    await this.#rests.write(rows);
    this.#items.push({ rest: { sequence, index, file, record: this.#restCount++ } });
  }

  async finish(): Promise<RunReport> {
    await this.#closeChunk();
    const rests = await this.#rests?.finish();
    this.#rests = undefined;
    const note: RunNote = { ...this.#run, items: this.#items, spec: this.#spec };
    const { host, settings } = this.#folder;
    const path = within(settings.folder, `${this.#name}.run`);
    // A commit that fails may have made the note all the same. Then a resumed save counts the run.
    await writeDocument(host, path, NOTE_FORMAT, note, () => this.#isFinished = true);
    const { attempt } = this.#run;
    return { attempt, ...writtenIn(note), ...(rests && { restBytes: rests.sizeBytes }) };
  }

  /** Removes its files if the save ended before they were committed. */
  async removeIfLate(): Promise<void> {
    const { host, settings, ledger } = this.#folder;
    const head = await ledger.head();
    // Read after the head: the writer that finishes a save commits the manifest, then removes the head.
    const manifest = await readManifest(host, settings.folder);
    if (head?.id === this.#id && manifest?.id !== this.#id) return;
    const kept = manifest?.chunks.map(({ name }) => name);
    for (const name of [`${this.#name}.run`, ...this.#files]) {
      if (!kept?.includes(name)) removeLeftover(host, within(settings.folder, name));
    }
  }

  /** Abandons the run and removes its files, unless a note may list them. */
  abandon(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#open?.abandon();
    this.#rests?.abandon();
    const { host, settings: { folder } } = this.#folder;
    for (const name of this.#files) removeLeftover(host, within(folder, name));
  }

  get #files(): ReadonlySet<string> {
    return new Set(
      this.#items.map((item) => "chunk" in item ? item.chunk.name : item.rest.file),
    );
  }

  #mergeSpec(element: unknown): void {
    const spec = specOf(element);
    this.#spec = this.#isSpecKnown ? mergeSpecs(this.#spec, spec, () => undefined) : spec;
    this.#isSpecKnown = true;
  }

  async #beginChunk(): Promise<ChunkWriter> {
    const { host, settings: { folder, compression, chunkBytesMax: bytesMax } } = this.#folder;
    const number = String(this.#chunkCount++).padStart(4, "0");
    const compress = compression === "gzip";
    const name = `${this.#name}-${number}.tfrecord${compress ? ".gz" : ""}`;
    return await ChunkWriter.begin(host, folder, name, { compress, bytesMax });
  }

  async #closeChunk(): Promise<void> {
    const chunk = this.#open;
    if (chunk === undefined) return;
    const finished = await chunk.finish();
    this.#open = undefined;
    this.#items.push({ chunk: finished });
  }
}

export function writtenIn({ items }: RunNote): Written {
  let [elements, sizeBytes] = [0, 0];
  for (const item of items) {
    if (!("chunk" in item)) continue;
    elements += item.chunk.count;
    sizeBytes += item.chunk.sizeBytes;
  }
  return { elements, sizeBytes };
}

/** The note of a finished run. Errors: `data_loss` if it is missing or damaged. */
export async function readNote(
  { host, settings }: DistributedFolder,
  id: string,
  run: WrittenRun,
): Promise<RunNote> {
  const path = within(settings.folder, `${nameOfRun(id, run)}.run`);
  const remedy = "Save it again, with { overwrite: true }.";
  const note = await readDocument<RunNote>(host, path, NOTE_FORMAT, remedy, checkNote);
  if (note !== undefined) return note;
  throw new LeatError("data_loss", `${path} is missing: it was removed. ${remedy}`);
}

function checkNote({ items, spec, first, count, attempt }: Record<string, unknown>): void {
  const isRun = isCount(first) && isCount(count) && typeof attempt === "string";
  if (!isRun || !Array.isArray(items) || !items.every(isPlainObject)) {
    throw new Error("unknown run");
  }
  const chunks = items.flatMap((item) => "chunk" in item ? [item.chunk] : []);
  checkChunks({ chunks, spec });
  const rests = items.filter((item) => !("chunk" in item));
  if (!rests.every(({ rest }) => isRest(rest))) throw new Error("unknown rows");
}

/** The run whose note has this file name; `undefined` for other names. */
export function runOfName(id: string, name: string): WrittenRun | undefined {
  const [, first, count, attempt] = /^-(\d+)-(\d+)-([0-9a-f]{16})\.run$/
    .exec(name.slice(id.length)) ?? [];
  if (!name.startsWith(id) || attempt === undefined) return undefined;
  return { first: Number(first), count: Number(count), attempt };
}

function nameOfRun(id: string, { first, count, attempt }: WrittenRun): string {
  return `${id}-${String(first).padStart(7, "0")}-${count}-${attempt}`;
}
