/**
 * Enters runs in the ledger: rows left over from splits become batches, and the entry lists all
 * chunks in order. The last entry also commits the saved dataset.
 */
import { LeatError } from "../../../core/error.ts";
import { specOf } from "../../elements/components.ts";
import type { DatasetNode } from "../../node.ts";
import type { OrderedChain } from "../../deterministic/chain.ts";
import { type Joined, RemainderJoin } from "../../deterministic/join.ts";
import { type ElementSpec, mergeSpecs } from "../../elements/spec.ts";
import { hex64, type NewFile } from "../../host.ts";
import { ChunkWriter } from "../chunk_writer.ts";
import { inTurn } from "../document.ts";
import type { CarriedRest, LedgerEntry, LedgerHead, Rest } from "../ledger.ts";
import {
  type Chunk,
  encodeManifest,
  type Manifest,
  MANIFEST_NAME,
  readManifest,
  within,
} from "../manifest.ts";
import { type DistributedFolder, tidy } from "./folder.ts";
import { readNote, readRest, type RunNote } from "./run_writer.ts";
import type { WorkOf, Written } from "./work.ts";

export interface EntryPipeline {
  readonly node: DatasetNode;
  /** Undefined if the dataset is produced whole, and leaves no rows over. */
  readonly chain: OrderedChain | undefined;
  readonly seed: bigint;
}

/**
 * Enters runs, and returns how much it wrote itself: joined batches. May be repeated.
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
    // A worker that was declared dead was doing the same, and has already removed the files.
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
  const before = number === 0 ? undefined : await ledger.entryBefore(id, number - 1);
  const writer = new EntryWriter(folder, pipeline, work, before?.joint?.carried ?? []);
  // With no runs there is only the end to enter, which the previous owner may have done.
  const made = work.runs.length === 0 ? await ledger.entry(id, number) : undefined;
  const entry = made ?? await enterOurs(folder, work, writer);
  if (work.isLast) await finish(folder, pipeline.node, entry, work);
  return writer.joined;
}

/**
 * Enters what was made, and returns the entry that counts. If another one counts, removes its own
 * files: this worker may be late.
 */
async function enterOurs(
  folder: DistributedFolder,
  work: WorkOf<"entry">,
  writer: EntryWriter,
): Promise<LedgerEntry> {
  const entry = await writer.write();
  let mayBeEntered = false;
  try {
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

/** Whether the saved dataset is committed already. Then no other files of the save remain. */
async function isFinished(folder: DistributedFolder, id: string): Promise<boolean> {
  const manifest = await manifestOf(folder, id);
  if (manifest === undefined) return false;
  await folder.ledger.change(async (head) => {
    // The next save may have begun.
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

/**
 * Commits the manifest of all entries; a worker that was declared dead may have done so already.
 */
async function finish(
  folder: DistributedFolder,
  node: DatasetNode,
  last: LedgerEntry,
  work: WorkOf<"entry">,
): Promise<void> {
  const { host, settings, ledger } = folder;
  await inTurn(host, () =>
    ledger.change(async (head) => {
      expectOurs(folder, work, head);
      const made = await manifestOf(folder, work.id);
      if (made !== undefined) await tidy(folder, made);
      else {
        // The lock is held by a single writer, or by one that only checks; so look at the head
        // again.
        const file = await host.newFiles.create(within(settings.folder, MANIFEST_NAME));
        await tidy(folder, await writeManifest(file, folder, node, last, work.id));
      }
      return undefined;
    }));
}

async function writeManifest(
  file: NewFile,
  { settings, ledger }: DistributedFolder,
  { elementSpec }: DatasetNode,
  last: LedgerEntry,
  id: string,
): Promise<Manifest> {
  try {
    const entries: LedgerEntry[] = [];
    for (let at = 0; at < last.number; at++) entries.push(await ledger.entryBefore(id, at));
    entries.push(last);
    const specs = entries.filter(({ chunks }) => chunks.length > 0).map(({ spec }) => spec);
    const manifest = {
      id,
      spec: elementSpec ?? specInCommon(specs),
      compression: settings.compression,
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
  /** Leftover rows that may still wait, of all splits. */
  readonly #rests = new Map<number, Rest>();
  readonly #before: readonly CarriedRest[];
  readonly #chunks: Chunk[] = [];
  readonly #specs: ElementSpec[] = [];
  readonly #attempt: string;
  /** The open chunk for joined batches. */
  #open: ChunkWriter | undefined;
  readonly #joined: string[] = [];
  /** How much it wrote itself. */
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
    this.#before = before;
    this.#attempt = hex64(host);
    this.#join = chain?.batch && new RemainderJoin(chain, { host, seed, epoch: 0 });
  }

  async write(): Promise<LedgerEntry> {
    const { id, number, runs, upTo, isLast } = this.#work;
    try {
      for (const { rows, ...rest } of this.#before) await this.#add(rest, rows);
      for (const run of runs) await this.#addRun(await readNote(this.#folder, id, run));
      if (isLast) await this.#writeJoined(await this.#join?.end());
      await this.#closeChunk();
    } finally {
      this.#open?.abandon();
    }
    const carried = (this.#join?.carried ?? [])
      .map(({ sequence, rows }) => ({ ...this.#rests.get(sequence)!, rows }));
    const spec = specInCommon(this.#specs);
    return { number, chunks: this.#chunks, spec, joint: { upTo, carried, isLast } };
  }

  /** Removes what it wrote itself. */
  removeJoined(): void {
    const { host, settings: { folder } } = this.#folder;
    for (const name of this.#joined) host.newFiles.remove(within(folder, name));
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

  async #add(rest: Rest, lastRows?: number): Promise<void> {
    this.#rests.set(rest.sequence, rest);
    const rows = await readRest(this.#folder, rest);
    await this.#writeJoined(await this.#join!.add(rest.sequence, rest.index, rows, lastRows));
  }

  /**
   * Writes batches of rows from several splits to chunks of their own, in their place in the order.
   */
  async #writeJoined(joined: Joined | undefined): Promise<void> {
    if (joined === undefined) return;
    if ("error" in joined) throw joined.error;
    this.#specs.push(specOf(joined.element));
    this.#open ??= await this.#beginChunk();
    await this.#open.write(joined.element);
  }

  async #beginChunk(): Promise<ChunkWriter> {
    const { host, settings: { folder, compression } } = this.#folder;
    const compress = compression === "gzip";
    const place = String(this.#chunks.length).padStart(6, "0");
    const suffix = compress ? ".tfrecord.gz" : ".tfrecord";
    const name = `${this.#work.id}-joined-${this.#attempt}-${place}${suffix}`;
    return await ChunkWriter.begin(host, folder, name, 0, compress);
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
