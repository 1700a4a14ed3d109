/**
 * The pieces of work of a distributed save, and their results, as plain data. The dispatcher
 * assigns the pieces; the workers share nothing but the folder.
 */
import type { WireError } from "../../../core/error.ts";
import type { Split, SplitTable } from "../../sharding/splits.ts";

/** What is saved, and how. */
export interface DistributedSaveSettings {
  /** All workers must see the same files there. */
  readonly folder: string;
  /** Left out: none. */
  readonly compression?: "gzip";
  /** Size in bytes after which a new file begins. */
  readonly chunkBytesMax?: number;
  /** Whether existing contents are replaced. */
  readonly overwrite: boolean;
  /** The fingerprint of the dataset. */
  readonly fingerprint: string;
}

/** A piece of work. `owner` assigns it; `id` identifies the save from its beginning. */
export type SaveWork =
  /** Look at the folder, and begin or resume. */
  | { readonly work: "begin"; readonly owner: string }
  /** Write the elements of consecutive splits. */
  | {
    readonly work: "run";
    readonly owner: string;
    readonly id: string;
    /** Position of the first one in the order of splits. */
    readonly first: number;
    readonly splits: readonly (Split & { readonly index: number })[];
  }
  /** Enter finished runs in the ledger; the last time, commit the saved dataset. */
  | {
    readonly work: "entry";
    readonly owner: string;
    readonly id: string;
    readonly number: number;
    readonly runs: readonly WrittenRun[];
    readonly upTo: number;
    readonly isLast: boolean;
  }
  /** Record why the save ends, for readers that wait. */
  | {
    readonly work: "failure";
    readonly owner: string;
    readonly id: string;
    readonly error: WireError;
  };

/** The reason, in an error's details, if the folder already holds a saved dataset. */
export const IS_SAVED = "is_saved";

/** A finished run that waits to be entered. */
export interface WrittenRun {
  readonly first: number;
  readonly count: number;
  /** Distinguishes its files from those of another worker with the same splits. */
  readonly attempt: string;
}

export interface Written {
  readonly elements: number;
  /** After compression. */
  readonly sizeBytes: number;
}

/** The result of a beginning: how far the save already was. */
export interface Begun extends Written {
  readonly id: string;
  readonly table: SplitTable;
  /** Number of ledger entries, and the position of the first split that they do not contain. */
  readonly entries: number;
  readonly upTo: number;
  /** Finished runs after that position. */
  readonly runs: readonly WrittenRun[];
}

export interface RunReport extends Written {
  readonly attempt: string;
}

export type WorkOf<W extends SaveWork["work"]> = Extract<SaveWork, { readonly work: W }>;
