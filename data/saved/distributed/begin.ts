/** Begins a distributed save, or finds the progress of an unfinished one. */
import { hex64 } from "../../host.ts";
import { LeatError } from "../../../core/error.ts";
import { hashJson } from "../../../core/hash.ts";
import type { SplitTable } from "../../sharding/splits.ts";
import type { LedgerHead } from "../ledger.ts";
import { fileNameOf, MANIFEST_NAME, readManifest, storedPaths, within } from "../manifest.ts";
import { type DistributedFolder, tidy } from "./folder.ts";
import { readNote, runOfName, writtenIn } from "./run_writer.ts";
import { type Begun, IS_SAVED, type WrittenRun } from "./work.ts";

/**
 * Begins a save of a dataset with the listed splits, or resumes one. May be called again, also while
 * other workers write for the same owner.
 *
 * Errors: `already_exists` if the folder has a saved dataset, or a single writer (`ElementsWriter`) is
 * active; `failed_precondition` if the save of another dataset is unfinished, or the same service has
 * finished this save or begun a later one; `aborted` if another owner has begun meanwhile: retry it if
 * the save is still wanted. `overwrite` replaces a saved dataset, and the unfinished save of another
 * one.
 */
export async function begin(
  folder: DistributedFolder,
  list: () => Promise<SplitTable>,
  owner: string,
): Promise<Begun> {
  const { host, settings: { folder: path, overwrite, compression, fingerprint }, ledger } = folder;
  let before: LedgerHead | undefined;
  // Fails before splits are listed if the folder is not writable.
  await ledger.change((head) => {
    before = head;
    return Promise.resolve(undefined);
  });
  const table = await list();
  const joint = { owner, fingerprint, digest: hashJson(table) };
  let begun!: Begun;
  await ledger.change(async (head) => {
    // Listing takes long. This owner must not replace one that has begun meanwhile.
    if (!isSameOwner(head, before) && head?.joint?.owner !== owner) throw begunMeanwhile(path);
    if (head?.joint !== undefined && isLater(head.joint.owner, owner)) throw begunSince(path);
    const unfinished = await unfinishedIn(folder, head, owner);
    const isSame = unfinished?.joint?.fingerprint === fingerprint &&
      unfinished.joint.digest === joint.digest && unfinished.compression === compression;
    if (unfinished?.joint !== undefined && !isSame && !overwrite) throw otherBegun(path);
    const id = isSame ? unfinished.id : hex64(host);
    begun = { ...isSame ? await progressOf(folder, id) : NOTHING, id, table };
    return { id, compression, joint };
  });
  return begun;
}

function isSameOwner(head: LedgerHead | undefined, before: LedgerHead | undefined): boolean {
  return head?.joint === undefined ||
    (head.id === before?.id && head.joint.owner === before.joint?.owner);
}

/** Whether `owner` and `than` are saves of one cluster, and `owner` is later: `CLUSTER/NUMBER`. */
function isLater(owner: string, than: string): boolean {
  const [[cluster, number], [other, before]] = [owner.split("/"), than.split("/")];
  return cluster === other && Number(number) > Number(before);
}

const NOTHING = { entries: 0, upTo: 0, runs: [], elements: 0, sizeBytes: 0 };

async function unfinishedIn(
  folder: DistributedFolder,
  head: LedgerHead | undefined,
  owner: string,
): Promise<LedgerHead | undefined> {
  const { host, settings: { folder: path, overwrite } } = folder;
  const manifest = await readManifest(host, path);
  const isFinished = manifest !== undefined && manifest.id === head?.id;
  // The writer died after it committed the manifest and before it removed the head.
  if (isFinished) await tidy(folder, manifest);
  if (manifest !== undefined && !overwrite) throw savedAlready(path);
  // A repeated request came after the save was finished, by another worker: it must not begin again.
  const last = manifest?.owner;
  if (last !== undefined && (last === owner || isLater(last, owner))) throw begunSince(path);
  // A single writer (`ElementsWriter`) holds the lock of the manifest: then `create()` fails.
  if (head?.joint === undefined) {
    (await host.newFiles.create(within(path, MANIFEST_NAME))).abandon();
  }
  return isFinished ? undefined : head;
}

async function progressOf(
  folder: DistributedFolder,
  id: string,
): Promise<Omit<Begun, "id" | "table">> {
  let [entries, upTo, elements, sizeBytes] = [0, 0, 0, 0];
  for (let isLast = false; !isLast;) {
    const entry = await folder.ledger.entry(id, entries);
    if (entry?.joint === undefined) break;
    ({ upTo, isLast } = entry.joint);
    // The last entry is not counted, so a worker does it again, and commits the saved dataset.
    if (!isLast) entries++;
    for (const chunk of entry.chunks) {
      elements += chunk.count;
      sizeBytes += chunk.sizeBytes;
    }
  }
  const runs: WrittenRun[] = [];
  let next = upTo;
  for (const run of await notedRuns(folder, id)) {
    if (run.first < next) continue;
    runs.push(run);
    next = run.first + run.count;
    const written = writtenIn(await readNote(folder, id, run));
    elements += written.elements;
    sizeBytes += written.sizeBytes;
  }
  return { entries, upTo, runs, elements, sizeBytes };
}

async function notedRuns(
  { host, settings: { folder } }: DistributedFolder,
  id: string,
): Promise<WrittenRun[]> {
  const paths = await storedPaths(host, folder);
  const runs = paths.flatMap((path) => runOfName(id, fileNameOf(path)) ?? []);
  return runs.sort((a, b) => a.first - b.first);
}

function savedAlready(path: string): LeatError {
  return new LeatError(
    "already_exists",
    `distributedSave: ${path} holds a saved dataset. Save to another folder, or with { overwrite: true }.`,
    { details: { reason: IS_SAVED } },
  );
}

function begunSince(path: string): LeatError {
  return new LeatError(
    "failed_precondition",
    `distributedSave: this service has finished this save to ${path}, or begun a later one: this one ends.`,
  );
}

function begunMeanwhile(path: string): LeatError {
  return new LeatError(
    "aborted",
    `distributedSave: another service began to save to ${path} meanwhile. Save to another folder, or wait.`,
  );
}

function otherBegun(path: string): LeatError {
  return new LeatError(
    "failed_precondition",
    `distributedSave: ${path} holds an unfinished save of another dataset, or of this one with other options or other ` +
      `files. Finish that save, save to another folder, or ` +
      `start again with { overwrite: true }.`,
  );
}
