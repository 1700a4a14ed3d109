/**
 * The ledger of a folder into which a dataset is being saved. It lists the chunks that are final,
 * so readers can begin before there is a manifest, and writers can resume after a crash.
 *
 * Its head is the file `SAVING`, which exists from the beginning of a save until the manifest is
 * committed. Its entries are numbered files. Each lists the chunks that follow the previous
 * entry's.
 */
import { isCount } from "../../core/count.ts";
import { LeatError, type WireError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";
import type { Compression } from "../formats/compression/compression.ts";
import type { Host } from "../host.ts";
import type { ElementSpec } from "../elements/spec.ts";
import { changeDocument, readDocument, writeDocument } from "./document.ts";
import { checkChunks, checkCompression, checkId, type Chunk, within } from "./manifest.ts";

/** The name of the head within its folder. */
const LEDGER_NAME = "SAVING";

const HEAD_FORMAT = "leat-saving-1";
const ENTRY_FORMAT = "leat-ledger-1";

/** What is being saved. */
export interface LedgerHead {
  /** The id of the future manifest. */
  readonly id: string;
  readonly compression: Compression | undefined;
  /** For a distributed save. `undefined` for a single writer. */
  readonly joint?: DistributedHead | undefined;
  /** Why the save ended early. It can be resumed. */
  readonly failure?: WireError | undefined;
}

/** What all workers of a distributed save must agree on. */
export interface DistributedHead {
  /**
   * Identifies the service's save that assigns the work: `CLUSTER/NUMBER`. In a cluster, later
   * saves have higher numbers. An owner that takes over a save writes its own name here.
   */
  readonly owner: string;
  /** The fingerprint of the dataset. */
  readonly fingerprint: string;
  /** The digest of the split table. */
  readonly digest: string;
}

/** Chunks that are final. */
export interface LedgerEntry {
  /** Numbers the entries, from 0. */
  readonly number: number;
  readonly chunks: readonly Chunk[];
  /** The common spec of the elements in these chunks. */
  readonly spec: ElementSpec;
  /** For a distributed save. */
  readonly joint?: DistributedEntry | undefined;
}

/** How far the entries reach, up to this one. */
export interface DistributedEntry {
  /** The entries so far contain all rows of the splits before this position, except `carried`. */
  readonly upTo: number;
  /** Rows that wait for rows of later splits, to fill a batch. */
  readonly carried: readonly CarriedRest[];
  /** Whether there are no more splits. */
  readonly isLast: boolean;
}

/** The rows that a split leaves over, because they do not fill a batch. */
export interface Rest {
  /** Position of the split in the order of splits. */
  readonly sequence: number;
  /** Position of the split in the split table. */
  readonly index: number;
  /** The file that holds the rows; `record` is the number of the record in it. */
  readonly file: string;
  readonly record: number;
}

/** A `Rest` of which only the last `rows` rows still wait. */
export interface CarriedRest extends Rest {
  readonly rows: number;
}

export class Ledger {
  readonly #host: Host;
  readonly #folder: string;

  constructor(host: Host, folder: string) {
    this.#host = host;
    this.#folder = folder;
  }

  /** The head; `undefined` if nothing is being saved. */
  head(): Promise<LedgerHead | undefined> {
    return readDocument(this.#host, this.headPath, HEAD_FORMAT, this.#remedy, checkHead);
  }

  /**
   * Changes the head, or begins a ledger. Concurrent changes are applied one after the other.
   *
   * @param change Returns the new head; `undefined` leaves the current one as it is.
   */
  async change(
    change: (head: LedgerHead | undefined) => Promise<LedgerHead | undefined>,
  ): Promise<void> {
    await changeDocument(this.#host, this.headPath, HEAD_FORMAT, this.#remedy, checkHead, change);
  }

  /** An entry; `undefined` if it is not written yet. */
  entry(id: string, number: number): Promise<LedgerEntry | undefined> {
    const path = this.#path(entryName(id, number));
    return readDocument(this.#host, path, ENTRY_FORMAT, this.#remedy, checkEntry);
  }

  /** An entry that must exist. Errors: `data_loss` if it does not. */
  async requiredEntry(id: string, number: number): Promise<LedgerEntry> {
    const entry = await this.entry(id, number);
    if (entry !== undefined) return entry;
    throw new LeatError(
      "data_loss",
      `${this.#path(entryName(id, number))} is missing: it was removed. ${this.#remedy}`,
    );
  }

  async enter(id: string, entry: LedgerEntry): Promise<void> {
    await writeDocument(this.#host, this.#path(entryName(id, entry.number)), ENTRY_FORMAT, entry);
  }

  /**
   * Adds an entry in a distributed save, and returns the one that is now in the ledger. If another
   * worker has added one for the same runs, that one stays, because readers may have read it.
   * `check` gets the head, and throws if the owner has changed. It runs under the head's lock:
   * either a new owner finds this entry, or `check` finds the new owner.
   */
  async enterOnce(
    id: string,
    entry: LedgerEntry,
    check: (head: LedgerHead | undefined) => void,
  ): Promise<LedgerEntry> {
    let entered = entry;
    await this.change(async (head) => {
      check(head);
      const known = await this.entry(id, entry.number);
      if (known?.joint?.upTo === entry.joint?.upTo) entered = known!;
      else await this.enter(id, entry);
      return undefined;
    });
    return entered;
  }

  /** The file of the head, which is removed after the save was finished or abandoned. */
  get headPath(): string {
    return this.#path(LEDGER_NAME);
  }

  #path(name: string): string {
    return within(this.#folder, name);
  }

  get #remedy(): string {
    return `Remove the folder ${this.#folder} to have it written again.`;
  }
}

/** `failure` needs no check: `LeatError.fromWire()` accepts anything. */
function checkHead({ id, compression, joint }: Record<string, unknown>): void {
  checkId(id);
  checkCompression(compression);
  if (joint === undefined) return;
  const texts = isPlainObject(joint) ? [joint.owner, joint.fingerprint, joint.digest] : [undefined];
  if (!texts.every((text) => typeof text === "string")) throw new Error("unknown owner");
}

function checkEntry({ number, joint, ...others }: Record<string, unknown>): void {
  checkChunks(others);
  if (!isCount(number)) throw new Error("unknown number");
  if (joint !== undefined && !isDistributedEntry(joint)) throw new Error("unknown end");
}

function isDistributedEntry(value: unknown): value is DistributedEntry {
  return isPlainObject(value) && isCount(value.upTo) && typeof value.isLast === "boolean" &&
    Array.isArray(value.carried) &&
    value.carried.every((rest) => isRest(rest) && "rows" in rest && isCount(rest.rows));
}

export function isRest(value: unknown): value is Rest {
  return isPlainObject(value) && typeof value.file === "string" &&
    [value.sequence, value.index, value.record].every(isCount);
}

export function entryName(id: string, number: number): string {
  return `${id}-${String(number).padStart(6, "0")}.ledger`;
}
