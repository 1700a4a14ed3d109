/**
 * Adds runs of splits to the ledger, as one entry, which lists all chunks in order. Rows that splits
 * left over become batches. After the last entry, the saved dataset is committed.
 */
import { LeatError } from "../../../core/error.ts";
import { specOf } from "../../elements/components.ts";
import type { DatasetNode } from "../../node.ts";
import type { OrderedChain } from "../../deterministic/chain.ts";
import { type Joined, RemainderJoin } from "../../deterministic/join.ts";
import { type ElementSpec, mergeSpecs } from "../../elements/spec.ts";
import { hex64, type NewFile } from "../../host.ts";
import { ChunkWriter } from "../chunk_writer.ts";
import { retryWhileLocked } from "../document.ts";
import type { CarriedRest, LedgerEntry, LedgerHead, Rest } from "../ledger.ts";
import {
  type Chunk,
  encodeManifest,
  type Manifest,
  MANIFEST_NAME,
  readManifest,
  removeLeftover,
  within,
} from "../manifest.ts";
import { type DistributedFolder, tidy } from "./folder.ts";
import { RestReader } from "./rest_reader.ts";
import { readNote, type RunNote } from "./run_writer.ts";
import type { WorkOf, Written } from "./work.ts";

export interface EntryPipeline {
  readonly node: DatasetNode;
  /** `undefined` if one worker produces all of the dataset: then no rows are left over. */
  readonly chain: OrderedChain | undefined;
  readonly seed: bigint;
}

/**
 * Adds an entry for runs. Returns the amount of joined batches that it wrote. May be called again.
 *
 * Errors: `aborted` if another owner has taken over the save, `data_loss` if files are missing.
 */
export async function enter(
  folder: DistributedFolder,
  pipeline: EntryPipeline,
  work: WorkOf<"entry">,
): Promise<Written> {
  const nothing = { elements: 0, sizeBytes: 0 };
  if (await isFinished(folder, work.id)) return nothing;
  try {
    return await enterRuns(folder, pipeline, work);
  } catch (error) {
    // Another worker, which was declared dead, has finished the same save and removed the files.
    if (await isFinished(folder, work.id)) return nothing;
    throw error;
  }
}

async function enterRuns(
  folder: DistributedFolder,
  pipeline: EntryPipeline,
  work: WorkOf<"entry">,
): Promise<Written> {
  const { ledger } = folder;
  const { id, number } = work;
  expectOurs(folder, work, await ledger.head());
  const before = number === 0 ? undefined : await ledger.requiredEntry(id, number - 1);
  const writer = new EntryWriter(folder, pipeline, work, before?.joint?.carried ?? []);
  // An entry without runs only ends the save. The previous owner may have made it.
  const made = work.runs.length === 0 ? await ledger.entry(id, number) : undefined;
  const entry = made ?? await enterOurs(folder, work, writer);
  if (work.isLast) await finish(folder, pipeline.node, entry, work);
  return writer.joined;
}

/**
 * Makes the entry, adds it to the ledger, and returns the entry that is now there. If this one cannot
 * be there, because it failed or another worker was faster, removes its files.
 */
async function enterOurs(
  folder: DistributedFolder,
  work: WorkOf<"entry">,
  writer: EntryWriter,
): Promise<LedgerEntry> {
  let mayBeEntered = false;
  try {
    const entry = await writer.write();
    const entered = await folder.ledger.enterOnce(work.id, entry, (head) => {
      expectOurs(folder, work, head);
      mayBeEntered = true;
    });
    mayBeEntered = entered === entry;
    return entered;
  } finally {
    if (!mayBeEntered) writer.removeJoined();
  }
}

/** Whether the saved dataset is committed. If so, removes all other files of the save. */
async function isFinished(folder: DistributedFolder, id: string): Promise<boolean> {
  const manifest = await manifestOf(folder, id);
  if (manifest === undefined) return false;
  await folder.ledger.change(async (head) => {
    // The head of the next save must stay.
    if (head?.id === id) await tidy(folder, manifest);
    return undefined;
  });
  return true;
}

async function manifestOf(
  { host, settings }: DistributedFolder,
  id: string,
): Promise<Manifest | undefined> {
  const manifest = await readManifest(host, settings.folder);
  return manifest?.id === id ? manifest : undefined;
}

/** Commits the manifest of all entries, unless a worker that was declared dead has done so. */
async function finish(
  folder: DistributedFolder,
  node: DatasetNode,
  last: LedgerEntry,
  work: WorkOf<"entry">,
): Promise<void> {
  const { host, settings, ledger } = folder;
  await retryWhileLocked(host, () =>
    ledger.change(async (head) => {
      expectOurs(folder, work, head);
      const made = await manifestOf(folder, work.id);
      if (made !== undefined) await tidy(folder, made);
      else {
        // Fails while another writer holds the lock, perhaps only to check it: `retryWhileLocked()` retries all.
        const file = await host.newFiles.create(within(settings.folder, MANIFEST_NAME));
        await tidy(folder, await writeManifest(file, folder, node, last, work));
      }
      return undefined;
    }));
}

async function writeManifest(
  file: NewFile,
  { settings, ledger }: DistributedFolder,
  { elementSpec }: DatasetNode,
  last: LedgerEntry,
  { id, owner }: WorkOf<"entry">,
): Promise<Manifest> {
  try {
    const entries: LedgerEntry[] = [];
    for (let at = 0; at < last.number; at++) entries.push(await ledger.requiredEntry(id, at));
    entries.push(last);
    const specs = entries.filter(({ chunks }) => chunks.length > 0).map(({ spec }) => spec);
    const manifest = {
      id,
      spec: elementSpec ?? specInCommon(specs),
      compression: settings.compression,
      owner,
      chunks: entries.flatMap(({ chunks }) => chunks),
    };
    await file.append(encodeManifest(manifest));
    await file.commit();
    return manifest;
  } finally {
    file.abandon();
  }
}

class EntryWriter {
  readonly #folder: DistributedFolder;
  readonly #work: WorkOf<"entry">;
  readonly #join: RemainderJoin | undefined;
  /** The left-over rows of splits, by sequence number: some may still wait to be joined. */
  readonly #rests = new Map<number, Rest>();
  readonly #restReader: RestReader;
  readonly #before: readonly CarriedRest[];
  readonly #chunks: Chunk[] = [];
  readonly #specs: ElementSpec[] = [];
  readonly #attempt: string;
  /** The open chunk for joined batches. */
  #open: ChunkWriter | undefined;
  readonly #joined: string[] = [];
  /** The amount of joined batches that it wrote. */
  joined: Written = { elements: 0, sizeBytes: 0 };

  constructor(
    folder: DistributedFolder,
    { chain, seed }: EntryPipeline,
    work: WorkOf<"entry">,
    before: readonly CarriedRest[],
  ) {
    const { host } = folder;
    this.#folder = folder;
    this.#work = work;
    this.#restReader = new RestReader(folder);
    this.#before = before;
    this.#attempt = hex64(host);
    this.#join = chain?.batch && new RemainderJoin(chain, { host, seed, epoch: 0 });
  }

  async write(): Promise<LedgerEntry> {
    const { id, number, runs, upTo, isLast } = this.#work;
    try {
      for (const { rows, ...rest } of this.#before) await this.#add(rest, rows);
      for (const run of runs) await this.#addRun(await readNote(this.#folder, id, run));
      if (isLast) await this.#writeJoined(await this.#join?.end()); // one: an error ends the save
      await this.#closeChunk();
    } finally {
      this.#open?.abandon();
      this.#restReader.close();
    }
    const carried = (this.#join?.carried ?? [])
      .map(({ sequence, rows }) => ({ ...this.#rests.get(sequence)!, rows }));
    const spec = specInCommon(this.#specs);
    return { number, chunks: this.#chunks, spec, joint: { upTo, carried, isLast } };
  }

  /** Removes the chunks of joined batches. */
  removeJoined(): void {
    const { host, settings: { folder } } = this.#folder;
    for (const name of this.#joined) removeLeftover(host, within(folder, name));
  }

  async #addRun({ items, spec }: RunNote): Promise<void> {
    if (items.some((item) => "chunk" in item)) this.#specs.push(spec);
    for (const item of items) {
      if ("rest" in item) await this.#add(item.rest);
      else {
        await this.#closeChunk();
        this.#chunks.push(item.chunk);
      }
    }
  }

  async #add(rest: Rest, lastRows = Infinity): Promise<void> {
    this.#rests.set(rest.sequence, rest);
    const rows = await this.#restReader.read(rest);
    this.#join!.add(rest.sequence, rest.index, rows, { rows: lastRows });
    await this.#writeJoined(await this.#join!.next());
  }

  /** Adds a batch of rows from several splits to the open chunk of such batches. */
  async #writeJoined(joined: Joined | undefined): Promise<void> {
    if (joined === undefined) return;
    if ("error" in joined) throw joined.error;
    this.#specs.push(specOf(joined.element));
    this.#open ??= await this.#beginChunk();
    await this.#open.write(joined.element);
    if (this.#open.isFull) await this.#closeChunk();
  }

  async #beginChunk(): Promise<ChunkWriter> {
    const { host, settings: { folder, compression, chunkBytesMax: bytesMax } } = this.#folder;
    const compress = compression === "gzip";
    const position = String(this.#chunks.length).padStart(6, "0");
    const suffix = compress ? ".tfrecord.gz" : ".tfrecord";
    const name = `${this.#work.id}-joined-${this.#attempt}-${position}${suffix}`;
    return await ChunkWriter.begin(host, folder, name, { compress, bytesMax });
  }

  async #closeChunk(): Promise<void> {
    const chunk = await this.#open?.finish();
    this.#open = undefined;
    if (chunk === undefined) return;
    this.#chunks.push(chunk);
    this.#joined.push(chunk.name);
    const { elements, sizeBytes } = this.joined;
    this.joined = { elements: elements + chunk.count, sizeBytes: sizeBytes + chunk.sizeBytes };
  }
}

function specInCommon(specs: readonly ElementSpec[]): ElementSpec {
  return specs.length === 0 ? undefined : specs.reduce((a, b) => mergeSpecs(a, b, () => undefined));
}

function expectOurs(
  { settings }: DistributedFolder,
  { id, owner }: WorkOf<"entry">,
  head: LedgerHead | undefined,
): void {
  if (head?.id === id && head.joint?.owner === owner) return;
  throw new LeatError(
    "aborted",
    `Another service now saves to ${settings.folder}, or the files of this save were removed: this save ends.`,
  );
}
