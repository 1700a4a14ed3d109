/** The part of the pipeline that workers run. It may change while an epoch runs. */
import type { DatasetNode } from "../../data/node.ts";
import type { RatioControl } from "../adapt.ts";
import type { OpenRemote } from "./remote_side.ts";

/** One candidate, or none. */
export interface RemotePart {
  /** `null`: this host prepares everything. */
  readonly candidate: string | null;
  /** The share of remote elements, from 0 to 1. */
  readonly ratio: number;
  /** Corrects the ratio. Left out: the ratio stays. Not used with `keepsOrder`: splits keep their side. */
  readonly control?: RatioControl | undefined;
  /** Whether, by the plan, preparing an element here costs more CPU time than receiving it. */
  readonly savesCpu?: boolean;
  /** p'1: the source that this host reads for workers. */
  readonly readHere?: DatasetNode | undefined;
  /** The last operator that workers run; those above it run here. Left out if none are above. */
  readonly lastRemote?: DatasetNode | undefined;
  /** Returns a function that opens a reader of splits, for a table with this size and digest. */
  readonly openRemote: (table: { readonly total: number; readonly digest: string }) => OpenRemote;
}
