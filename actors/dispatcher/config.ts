/** Options of a dispatcher and their defaults. */
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
   * The names of the workers that share the jobs of static policies; a worker's index is its shard.
   * A job keeps the list it started with. Default: none; such jobs are refused.
   */
  readonly workers?: readonly string[];
  /** After this time without a heartbeat, in ms, a worker is lost. Default 60,000. */
  readonly workerTimeoutMs?: number;
  /**
   * A worker whose connection closed, for example because its process was killed, is lost if its
   * node does not reconnect within this time, in ms. Default 10,000. It has no effect unless it
   * is below `workerTimeoutMs`.
   */
  readonly workerGraceMs?: number;
  /** Time without a heartbeat, in ms, after which a client is released. Default 120,000. */
  readonly clientTimeoutMs?: number;
  /**
   * A client whose connection closed, for example because its process ended, is released if its
   * node does not reconnect within this time, in ms. Default 10,000; at most `clientTimeoutMs`.
   */
  readonly clientGraceMs?: number;
  /**
   * After this time, in ms, an iteration is forgotten that nobody reads, or only tasks of such
   * iterations. So is a pipeline of `distribute()` without jobs, after a minute at least. -1 means
   * never. Default 300,000.
   */
  readonly jobGcTimeoutMs?: number;
  /** DETERMINISTIC: how many splits may be assigned ahead of the reader's position. Default 256. */
  readonly windowSplits?: number;
  /** An iteration fails once this many runners have died at one piece of its work. Default 3. */
  readonly runnerDeathsMax?: number;
  /** Limits, mostly per identity; missing ones have their defaults. */
  readonly quotas?: Partial<Quotas>;
  /** Limits and times of the autoscaler. */
  readonly scaling?: ScalingOptions;
}

/** The settings of a dispatcher: plain data, except for its functions. */
export interface DispatcherConfig extends DispatcherOptions {
  /** The name of the platform's log that holds the journal. Default `"dispatcher"`. */
  readonly logName?: string;
  /**
   * Coordinated reads: a task is replaced when a consumer cannot reach it for this time, in ms, and
   * at once when no consumer can. Default 10,000.
   */
  readonly lostTaskTimeoutMs?: number;
  /**
   * The journal is compacted after this many records, which limits the replay. If their bytes are at
   * most an eighth of the last snapshot, 50 times as many are allowed. Default 20,000.
   */
  readonly journalRecordsMax?: number;
  /**
   * The journal is also compacted after this many bytes. If the last snapshot is larger, its size
   * is the limit. Default 16 MiB.
   */
  readonly journalBytesMax?: number;
  /**
   * The journal is not compacted while a snapshot would exceed this many bytes. Default 768 MiB.
   */
  readonly journalSnapshotBytesMax?: number;
  /** Wraps the journal, for tests that watch or break it. */
  readonly wrapJournal?: (journal: Journal, state: DispatcherState) => Journal;
  /** Checks that a worker's address answers; if missing, nothing is checked. */
  readonly dialWorker?: DialWorker;
  /** Whether clients can dial a node by this name; if missing, every name is accepted. */
  readonly isNodeAddress?: (node: string) => boolean;
  /** Called at each start with a view of the registered workers. */
  readonly onWorkers?: (workers: KnownWorkers) => void;
}

/** What a dispatcher's server may ask about a node. */
export interface KnownWorkers {
  /** Whether it is the node of a registered worker. */
  isAddress(node: string): boolean;
  /** The identity of the registered worker there; undefined if there is none. */
  ownerOf(node: string): string | undefined;
}

type Hook = "wrapJournal" | "dialWorker" | "isNodeAddress" | "onWorkers";

/** A checked {@linkcode DispatcherConfig} with its defaults. */
export type Settings =
  & Required<Omit<DispatcherConfig, "scaling" | "quotas" | Hook>>
  & Pick<DispatcherConfig, Hook>
  & { readonly scaling: Required<ScalingOptions>; readonly quotas: Quotas };

const DEFAULTS = {
  logName: "dispatcher",
  workerTimeoutMs: 60_000,
  workerGraceMs: 10_000,
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

/** @throws {LeatError} `invalid_argument` for invalid workers, quotas or scaling. */
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
