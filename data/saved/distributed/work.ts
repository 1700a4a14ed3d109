/**
 * The steps of a distributed save, and their results, as plain data. The dispatcher assigns the steps
 * to workers, which share nothing but the folder.
 */
import type { WireError } from "../../../core/error.ts";
import type { Split, SplitTable } from "../../sharding/splits.ts";

/** What is saved, and how. */
export interface DistributedSaveSettings {
  /** All workers must see the same files there. */
  readonly folder: string;
  /** Default: no compression. */
  readonly compression?: "gzip";
  /** Size in bytes after which a new file begins. */
  readonly chunkBytesMax?: number;
  /** Whether to replace a saved dataset, and the unfinished save of another one. */
  readonly overwrite: boolean;
  /** The fingerprint of the dataset. */
  readonly fingerprint: string;
}

/** A step. `owner` identifies the service's save that assigned it, `id` the save's files. */
export type SaveWork =
  /** Begin a save, or resume the one in the folder. */
  | { readonly work: "begin"; readonly owner: string }
  /** Write the elements of consecutive splits. */
  | {
    readonly work: "run";
    readonly owner: string;
    readonly id: string;
    /** Position of the first of these splits in the order of splits. */
    readonly first: number;
    readonly splits: readonly (Split & { readonly index: number })[];
  }
  /** Add finished runs to the ledger, as entry `number`. With `isLast`, commit the saved dataset. */
  | {
    readonly work: "entry";
    readonly owner: string;
    readonly id: string;
    readonly number: number;
    readonly runs: readonly WrittenRun[];
    readonly upTo: number;
    readonly isLast: boolean;
  }
  /** Record why the save has failed, for readers that wait for the saved dataset. */
  | {
    readonly work: "failure";
    readonly owner: string;
    readonly id: string;
    readonly error: WireError;
  };

/** The `reason` in the details of the error if the folder already has a saved dataset. */
export const IS_SAVED = "is_saved";

/** A finished run of splits that is not in the ledger yet. */
export interface WrittenRun {
  readonly first: number;
  readonly count: number;
  /** Distinguishes its files from those that another worker wrote for the same splits. */
  readonly attempt: string;
}

export interface Written {
  readonly elements: number;
  /** After compression. */
  readonly sizeBytes: number;
}

/** The result of `begin`: the progress of the save so far. */
export interface Begun extends Written {
  readonly id: string;
  readonly table: SplitTable;
  /** Number of ledger entries. */
  readonly entries: number;
  /** Position of the first split that the entries do not contain. */
  readonly upTo: number;
  /** Finished runs after that position. */
  readonly runs: readonly WrittenRun[];
}

export interface RunReport extends Written {
  readonly attempt: string;
  /** Size of the rows that its splits left over. `sizeBytes` counts them once they are in batches. */
  readonly restBytes?: number;
}

export type WorkOf<W extends SaveWork["work"]> = Extract<SaveWork, { readonly work: W }>;
