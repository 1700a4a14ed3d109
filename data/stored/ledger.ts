/**
 * The ledger of a folder that a dataset is being saved to: what of it is final already, so that it can
 * be read before there is a manifest, and gone on with after its writers have died.
 *
 * Its head is the file `SAVING`, which is there from the beginning of a save until its manifest is. Its
 * entries are numbered files, each of which lists the chunks that follow those of the entry before.
 */
import { LeatError, type WireError } from "../../core/error.ts";
import type { Compression } from "../formats/compression.ts";
import type { Host } from "../host.ts";
import type { ElementSpec } from "../spec.ts";
import { changeDocument, readDocument, writeDocument } from "./document.ts";
import { type Chunk, within } from "./manifest.ts";

/** The name of the head within its folder. */
export const LEDGER_NAME = "SAVING";

const HEAD_FORMAT = "leat-saving-1";
const ENTRY_FORMAT = "leat-ledger-1";

/** What is being saved. */
export interface LedgerHead {
  /** That of the manifest to come. */
  readonly id: string;
  readonly compression: Compression | undefined;
  /** Where several write together: what they have to agree on. Undefined where one process writes alone. */
  readonly joint?: JointHead | undefined;
  /** Why the save ended before it was whole. It can be gone on with. */
  readonly failure?: WireError | undefined;
}

/** What the writers of one folder agree on. */
export interface JointHead {
  /**
   * Who hands out the work, as `CLUSTER/NUMBER`: of one cluster a higher number is later. Whoever takes
   * a save over writes its own name here.
   */
  readonly owner: string;
  /** Of the dataset. */
  readonly fingerprint: string;
  /** Of the table of its splits. */
  readonly digest: string;
}

/** Chunks that are final. */
export interface LedgerEntry {
  /** Counts the entries, from 0. */
  readonly number: number;
  readonly chunks: readonly Chunk[];
  /** What the elements in these chunks have in common. */
  readonly spec: ElementSpec;
  /** Where several write together: how far this is. */
  readonly joint?: JointEntry | undefined;
}

/** Where in the order of splits an entry ends. */
export interface JointEntry {
  /** The entries up to this one have everything of the splits before this place, … */
  readonly upTo: number;
  /** … but for rows that wait for others to fill a batch. */
  readonly carried: readonly CarriedRest[];
  /** There are no more splits. */
  readonly isLast: boolean;
}

/** Rows that a split has left over. */
export interface Rest {
  /** The split's place in the order of splits, and in their table. */
  readonly sequence: number;
  readonly index: number;
  /** The file that holds them, and as which of its records. */
  readonly file: string;
  readonly record: number;
}

/** Those of them that wait still: the last ones. */
export interface CarriedRest extends Rest {
  readonly rows: number;
}

/** The ledger of one folder. */
export class Ledger {
  readonly #host: Host;
  readonly #folder: string;

  constructor(host: Host, folder: string) {
    this.#host = host;
    this.#folder = folder;
  }

  /** The head; `undefined` where nothing is being saved. */
  head(): Promise<LedgerHead | undefined> {
    return readDocument(this.#host, this.#path(LEDGER_NAME), HEAD_FORMAT, this.#remedy);
  }

  /**
   * Changes the head, or begins a ledger: of several that do, one after the other.
   *
   * @param change is given the head as it is, and answers what it is to be; `undefined`: it stays.
   */
  async change(
    change: (head: LedgerHead | undefined) => Promise<LedgerHead | undefined>,
  ): Promise<void> {
    await changeDocument(this.#host, this.#path(LEDGER_NAME), HEAD_FORMAT, this.#remedy, change);
  }

  /** An entry; `undefined` where it was not written yet. */
  entry(id: string, number: number): Promise<LedgerEntry | undefined> {
    const path = this.#path(entryName(id, number));
    return readDocument(this.#host, path, ENTRY_FORMAT, this.#remedy);
  }

  /** An entry that has to be there. Errors: `data_loss`. */
  async entryBefore(id: string, number: number): Promise<LedgerEntry> {
    const entry = await this.entry(id, number);
    if (entry !== undefined) return entry;
    throw new LeatError(
      "data_loss",
      `${this.#path(entryName(id, number))} is missing: somebody has removed it. ${this.#remedy}`,
    );
  }

  /** Adds an entry. */
  async enter(id: string, entry: LedgerEntry): Promise<void> {
    await writeDocument(this.#host, this.#path(entryName(id, entry.number)), ENTRY_FORMAT, entry);
  }

  /**
   * Adds an entry where several write together, and answers it. What somebody else has entered as the
   * same stays: it may have been read. `check` is given the head, and fails where nothing may be entered
   * any more. Nobody takes the save over in between: who does has to find either the entry or its own
   * name in the head.
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

  /** Removes the head: there is a manifest now, or there will be none. Synchronous. */
  end(): void {
    this.#host.newFiles.remove(this.#path(LEDGER_NAME));
  }

  #path(name: string): string {
    return within(this.#folder, name);
  }

  get #remedy(): string {
    return `Remove the folder ${this.#folder} to have it written again.`;
  }
}

/** The name of an entry's file. */
export function entryName(id: string, number: number): string {
  return `${id}-${String(number).padStart(6, "0")}.ledger`;
}
