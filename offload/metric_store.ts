/**
 * The metric store (FastFlow paper, section 5.2 and table 2): measured metrics. Their keys change
 * when the pipeline, the model or the resources change.
 */
import { hashJson } from "../core/hash.ts";
import { isPlainObject } from "../core/tree.ts";
import { type DatasetNode, inPreOrder } from "../data/node.ts";
import { fingerprintGraph } from "../data/wire.ts";
import type { CandidateMetrics, OffloadMetrics } from "./decide.ts";

/** A store of values by key. Every call may throw: the metrics are then measured. */
export interface MetricStore extends Disposable {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
}

/** The keys of table 2. */
export interface MetricKeys {
  /** (M): Gthp. */
  readonly model: string;
  /** (P, M): Lthp, Pcycle, Gcycle, idle. */
  readonly local: string;
  /** (P, M, RemoteNodeInfo): Rthp and Ocycle of each candidate. */
  readonly remote: string;
}

/** What the keys are made of. */
export interface MetricSubject {
  readonly pipeline: DatasetNode;
  /** Names the model: its architecture, not its parameters. */
  readonly model: string;
  /** The CPUs of this host. */
  readonly localResources: string;
  /** Describes the workers: how many, of what kind, how far away. */
  readonly remoteResources: string;
}

/** The keys of a subject; undefined for a pipeline that has no fingerprint. */
export function keysOf(subject: MetricSubject): MetricKeys | undefined {
  const { pipeline, model, localResources, remoteResources } = subject;
  let P: string;
  try {
    P = fingerprintGraph(pipeline);
  } catch {
    // Functions that use outside variables have no fingerprint.
    return undefined;
  }
  // The batch size affects the throughput of the model.
  const batches = inPreOrder(pipeline).filter(({ division }) => division === "rows")
    .map(({ attributes }) => attributes["size"]);
  const M = [model, batches];
  return {
    model: hashJson(["M", M]),
    local: hashJson(["P, M", P, M, localResources]),
    remote: hashJson(["P, M, RemoteNodeInfo", P, M, localResources, remoteResources]),
  };
}

/** Gthp; undefined if the stored value is damaged or missing. */
export function readGthp(value: unknown): number | undefined {
  if (!isPlainObject(value)) return undefined;
  // JSON has no Infinity, the throughput of training steps that take no time.
  return value.Gthp === null ? Infinity : positive(value.Gthp);
}

/** The local metrics; undefined if the stored value is damaged or missing. */
export function readLocal(
  value: unknown,
): Omit<OffloadMetrics, "Gthp" | "candidates"> | undefined {
  if (!isPlainObject(value)) return undefined;
  const Lthp = positive(value.Lthp);
  const [Pcycle, Gcycle, idle] = [value.Pcycle, value.Gcycle, value.idle].map(count);
  if (Lthp === undefined || Pcycle === undefined) return undefined;
  return {
    ...{ Lthp, Pcycle },
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
