/** What workers run for the conditional operator. It may change while an epoch runs. */
import type { DatasetNode } from "../../data/node.ts";
import type { RatioControl } from "../adapt.ts";
import type { OpenRemote } from "./remote_side.ts";

/** One candidate, or none. */
export interface RemotePart {
  /** `null`: all is prepared here. */
  readonly candidate: string | null;
  /** The share of remote elements, from 0 to 1. */
  readonly ratio: number;
  /** Corrects the ratio. Left out: it stays. Not with `keepsOrder`, where splits keep their side. */
  readonly control?: RatioControl | undefined;
  /** Whether preparing an element costs this host more CPU time than receiving it, by the plan. */
  readonly savesCpu?: boolean;
  /** p'1: the source that is read here for workers. */
  readonly readHere?: DatasetNode | undefined;
  /** Workers run no more than this; what is above it runs here, split by split. Left out: all. */
  readonly below?: DatasetNode | undefined;
  /** Starts to read splits of a table with this digest. */
  readonly openRemote: (table: { readonly total: number; readonly digest: string }) => OpenRemote;
}
