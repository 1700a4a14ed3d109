/**
 * What a dispatcher can be told when it is started.
 *
 * @module
 */
import { checkScaling, type ScalingOptions } from "./scaling/autoscaler.ts";
import type { Journal } from "./journal/journal.ts";
import { checkedQuotas, type Quotas } from "./jobs/quotas.ts";
import { SNAPSHOT_BYTES_MAX } from "./journal/snapshot.ts";
import type { DialWorker } from "./liveness/reachability_probe.ts";
import type { DispatcherState } from "./state/state.ts";
import { checkWorkerNames } from "./modes/listed_workers.ts";

/** Options of a dispatcher. */
export interface DispatcherOptions {
  /**
   * The workers that share the jobs of static policies, by name: the index of each is its shard. Jobs
   * keep the list that they began with. Default: none, so that such jobs are refused.
   */
  readonly workers?: readonly string[];
  /** A worker that sends no heartbeat for longer, in ms, is lost: its tasks end. Default 60,000. */
  readonly workerTimeoutMs?: number;
  /** A client that sends no heartbeat for longer, in ms, is released. Default 120,000. */
  readonly clientTimeoutMs?: number;
  /**
   * A client whose link was closed at its end, as when its process ends, is released if its node does
   * not come back for so long. Default 10,000; no longer than `clientTimeoutMs`.
   */
  readonly clientGraceMs?: number;
  /**
   * An iteration without clients is forgotten after this, and so is a dataset that was registered for
   * jobs alone when there is none left; -1: never. Default 300,000.
   */
  readonly jobGcTimeoutMs?: number;
  /**
   * DETERMINISTIC: how far beyond what the reader has splits are handed out. It bounds what is kept of
   * an iteration. Default 256.
   */
  readonly windowSplits?: number;
  /** A piece of a job's work fails the job when so many runners died that ran it. Default 3. */
  readonly runnerDeathsMax?: number;
  /** What one identity may take; what is left out has its default. */
  readonly quotas?: Partial<Quotas>;
  /** Limits and times of what it says of how many workers there should be. */
  readonly scaling?: ScalingOptions;
}

/** The settings of a dispatcher: plain data, except for the last three. */
export interface DispatcherConfig extends DispatcherOptions {
  /** Which of the world's logs is its journal. Default `"dispatcher"`. */
  readonly logName?: string;
  /**
   * Coordinated reads: a task that a consumer cannot reach for longer is replaced; one that no
   * consumer reaches, at once. Default 10,000.
   */
  readonly lostTaskTimeoutMs?: number;
  /** Records after which the journal is compacted: the most that a start has to replay. Default 20,000. */
  readonly journalRecordsMax?: number;
  /** Bytes of records after which it is compacted (or the size of the snapshot, if that is more). Default 16 MiB. */
  readonly journalBytesMax?: number;
  /** How long its snapshot may be, in bytes; a journal with a larger state grows. Default 768 MiB. */
  readonly journalSnapshotBytesMax?: number;
  /** Puts something before the journal, which gives that state: tests watch it so, or break it. */
  readonly wrapJournal?: (journal: Journal, state: DispatcherState) => Journal;
  /** Checks that a worker's address answers; left out, nobody checks. */
  readonly dialWorker?: DialWorker;
  /** Given, whenever a dispatcher starts, what says whether a node is that of a registered worker. */
  readonly onWorkers?: (isWorker: (node: string) => boolean) => void;
}

type Hook = "wrapJournal" | "dialWorker" | "onWorkers";

/** The same with its defaults, checked. */
export type Settings =
  & Required<Omit<DispatcherConfig, "scaling" | "quotas" | Hook>>
  & Pick<DispatcherConfig, Hook>
  & { readonly scaling: Required<ScalingOptions>; readonly quotas: Quotas };

const DEFAULTS = {
  logName: "dispatcher",
  workerTimeoutMs: 60_000,
  clientTimeoutMs: 120_000,
  clientGraceMs: 10_000,
  jobGcTimeoutMs: 300_000,
  lostTaskTimeoutMs: 10_000,
  workers: [],
  windowSplits: 256,
  runnerDeathsMax: 3,
  journalRecordsMax: 20_000,
  journalBytesMax: 16 * 2 ** 20,
  journalSnapshotBytesMax: SNAPSHOT_BYTES_MAX,
} satisfies Partial<Settings>;

/** @throws {LeatError} `invalid_argument` for workers or scaling that cannot be. */
export function settingsOf(config: DispatcherConfig): Settings {
  const settings = { ...DEFAULTS, ...config };
  return {
    ...settings,
    workers: checkWorkerNames(settings.workers),
    scaling: checkScaling(config.scaling),
    quotas: checkedQuotas(config.quotas),
    clientGraceMs: Math.min(settings.clientGraceMs, settings.clientTimeoutMs),
  };
}
