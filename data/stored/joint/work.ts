/**
 * A save that several write together: the pieces of work that it is cut into, and what comes of each.
 * All of it is plain data. Somebody hands the work out; whoever does it meets the others in the folder
 * alone.
 */
import type { WireError } from "../../../core/error.ts";
import type { Split, SplitTable } from "../../splits.ts";

/** What is saved, and how. */
export interface JointSaveSettings {
  /** All writers see the same files there. */
  readonly folder: string;
  readonly compression?: "gzip";
  /** A file that has grown to so many bytes is followed by another. */
  readonly chunkBytesMax?: number;
  /** Whether what is there is replaced. */
  readonly overwrite: boolean;
  /** Of the dataset. */
  readonly fingerprint: string;
}

/** A piece of work. `owner`: who hands it out; `id`: that of the save, from its beginning. */
export type SaveWork =
  /** Look at the folder, and begin or go on. */
  | { readonly work: "begin"; readonly owner: string }
  /** Write the elements of some splits that follow each other. */
  | {
    readonly work: "run";
    readonly owner: string;
    readonly id: string;
    /** The place of the first in the order of splits. */
    readonly first: number;
    readonly splits: readonly (Split & { readonly index: number })[];
  }
  /** Enter runs that were written in the ledger; the last time, make a saved dataset of it. */
  | {
    readonly work: "entry";
    readonly owner: string;
    readonly id: string;
    readonly number: number;
    readonly runs: readonly WrittenRun[];
    readonly upTo: number;
    readonly isLast: boolean;
  }
  /** Note why the save ends, for who waits to read. */
  | {
    readonly work: "failure";
    readonly owner: string;
    readonly id: string;
    readonly error: WireError;
  };

/** The reason, among an error's details, where a folder holds a saved dataset already. */
export const IS_SAVED = "is_saved";

/** A run that is written, and waits to be entered. */
export interface WrittenRun {
  readonly first: number;
  readonly count: number;
  /** Tells its files from those that another writer may make of the same splits. */
  readonly attempt: string;
}

/** How much was written. */
export interface Written {
  readonly elements: number;
  /** Compressed, if they are. */
  readonly sizeBytes: number;
}

/** What came of a beginning: how far the save was already. */
export interface Begun extends Written {
  readonly id: string;
  readonly table: SplitTable;
  /** How many entries the ledger has, and which splits they do not have any more. */
  readonly entries: number;
  readonly upTo: number;
  /** Runs beyond them that are written. */
  readonly runs: readonly WrittenRun[];
}

/** What came of a run. */
export interface RunReport extends Written {
  readonly attempt: string;
}

/** Work of one kind. */
export type WorkOf<W extends SaveWork["work"]> = Extract<SaveWork, { readonly work: W }>;
