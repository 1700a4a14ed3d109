/**
 * The metric store (FastFlow paper, section 5.2 and table 2): measured metrics. Their keys change
 * when the pipeline, the model or the resources change.
 */
import { hashJson } from "../core/hash.ts";
import { isPlainObject } from "../core/tree.ts";
import type { DatasetNode } from "../data/node.ts";
import { fingerprintGraph } from "../data/wire.ts";
import type { CandidateMetrics, OffloadMetrics } from "./decide.ts";

/** A store of values by key. Every call may throw: the metrics are then measured. */
export interface MetricStore extends Disposable {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
}

/**
 * The keys of table 2. The paper keeps Gthp by the model alone. Here it is in bytes per second, so it
 * depends on the pipeline's batches.
 */
export interface MetricKeys {
  /** (P, M): Gthp, Lthp, Pcycle, Gcycle, idle. */
  readonly local: string;
  /** (P, M, RemoteNodeInfo): Rthp and Ocycle of each candidate. */
  readonly remote: string;
}

/** What the keys are made of. */
export interface MetricSubject {
  readonly pipeline: DatasetNode;
  /** Names the model (its architecture, not its parameters) and the accelerator. */
  readonly model: string;
  /** The CPUs of this host. */
  readonly localResources: string;
  /** Describes the workers: how many, of what kind, how far away. */
  readonly remoteResources: string;
  /** Whether training keeps the order of elements, so that one side may wait for the other. */
  readonly deterministic: boolean;
  /** How elements are compressed on their way. Null: as the service chooses. */
  readonly compression: string | null;
}

/** The keys of a subject; undefined for a pipeline that has no fingerprint. */
export function keysOf(subject: MetricSubject): MetricKeys | undefined {
  const { pipeline, model, localResources, remoteResources, ...how } = subject;
  let P: string;
  try {
    P = fingerprintGraph(pipeline);
  } catch {
    // Functions that use outside variables have no fingerprint.
    return undefined;
  }
  const local = ["P, M", P, model, localResources];
  return {
    local: hashJson(local),
    remote: hashJson([...local, remoteResources, how.deterministic, how.compression]),
  };
}

/** The local metrics; undefined if the stored value is damaged or missing. */
export function readLocal(
  value: unknown,
): Omit<OffloadMetrics, "candidates"> | undefined {
  if (!isPlainObject(value)) return undefined;
  // JSON has no Infinity, the throughput of training steps that take no time.
  const Gthp = value.Gthp === null ? Infinity : positive(value.Gthp);
  const Lthp = positive(value.Lthp);
  const [Pcycle, Gcycle, idle] = [value.Pcycle, value.Gcycle, value.idle].map(count);
  if (Gthp === undefined || Lthp === undefined || Pcycle === undefined) return undefined;
  return {
    ...{ Gthp, Lthp, Pcycle },
    ...(Gcycle === undefined ? {} : { Gcycle }),
    ...(idle === undefined ? {} : { idle }),
  };
}

/**
 * The metrics of candidates; undefined if the stored value is damaged or missing.
 * @param names The candidates that the pipeline has.
 */
export function readCandidates(
  value: unknown,
  names: readonly string[],
): CandidateMetrics[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const metrics = value.flatMap((at): CandidateMetrics[] => {
    if (!isPlainObject(at) || typeof at.name !== "string" || !names.includes(at.name)) return [];
    const Rthp = count(at.Rthp);
    const Ocycle = count(at.Ocycle);
    if (Rthp === undefined || Ocycle === undefined) return [];
    const workers = count(at.workers);
    return [{ name: at.name, Rthp, Ocycle, ...(workers === undefined ? {} : { workers }) }];
  });
  return metrics.length === value.length ? metrics : undefined;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function positive(value: unknown): number | undefined {
  return count(value) === 0 ? undefined : count(value);
}
