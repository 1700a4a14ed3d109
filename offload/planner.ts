/** Makes plans: measures the metrics, or reads them from the metric store, and decides. */
import { LeatError, type LeatErrorCode } from "../core/error.ts";
import { chainOf } from "../data/deterministic/chain.ts";
import { openIterator } from "../data/dataset_iterator.ts";
import type { Host } from "../data/host.ts";
import { type DatasetNode, inPreOrder } from "../data/node.ts";
import { CacheNode } from "../data/operators/caching/cache.ts";
import { SnapshotNode } from "../data/operators/caching/snapshot.ts";
import { OffloadNode, type OffloadOptions } from "../data/operators/offload.ts";
import { seedOf } from "../data/operators/options.ts";
import { readManifest } from "../data/saved/manifest.ts";
import { type CutPoint, type CutPoints, cutPointsOf } from "./cut_points.ts";
import {
  type CandidateMetrics,
  decide,
  isBehind,
  type OffloadMetrics,
  staysLocal,
} from "./decide.ts";
import { bytesOfElement, figuresOf } from "./figures.ts";
import { keysOf, type MetricStore, readCandidates, readLocal } from "./metric_store.ts";
import { OffloadPlan, PLANNING_TIMEOUT_MS, PROFILE_STEPS } from "./plan.ts";
import { type IsDecided, profileCandidate, profileLocal, type ProfileOptions } from "./profile.ts";
import { offloadDependencies } from "./dependencies.ts";

/** Below this share of the best throughput in first steps, a candidate is measured no further. */
export const FIRST_MARGIN = 0.9;
/** If receiving batches costs at most this share of Pcycle, single elements need not be measured. */
export const CHEAP_SHARE = 0.5;
/** Measuring the local pipeline takes at most this share of the planning time. */
const LOCAL_SHARE_MAX = 0.5;

/**
 * With these failures the service cannot be used at all, so no other candidate is measured. Others are
 * of one candidate, such as a file that workers may not read. That is `permission_denied`, as is a role
 * that the token lacks, which the service refuses at once.
 */
const UNUSABLE: ReadonlySet<LeatErrorCode> = new Set<LeatErrorCode>([
  "unavailable",
  "deadline_exceeded",
  "unauthenticated",
]);

type LocalMetrics = Omit<OffloadMetrics, "candidates">;

export interface PlanRequest {
  readonly pipeline: DatasetNode;
  /** How training will read: the service, what its clients need, and the order. */
  readonly service: Pick<
    OffloadOptions,
    "service" | "token" | "ca" | "compression" | "targetTags" | "timeoutMs" | "deterministic"
  >;
  readonly host: Host;
  /** One training step on a copy of the training state. */
  readonly train?: ProfileOptions["train"];
  readonly stepMs?: number | undefined;
  readonly profileSteps?: number | undefined;
  /** Names the model in the metric store. Needed with `metricsStore`. */
  readonly model?: string | undefined;
  readonly metricsStore?: string | undefined;
  /** Describes the workers in the metric store. Default: the service's address and tags. */
  readonly remoteResources?: string | undefined;
  readonly speedUpThreshold?: number | undefined;
  /** Limit of the planning time, in ms. */
  readonly planningTimeoutMs?: number | undefined;
  /** Measures all candidates completely, even those that cannot be the best. Default false. */
  readonly measuresAll?: boolean;
  /** Ends measuring, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called at each step. */
  readonly onProgress?: ((progress: PlanningProgress) => void) | undefined;
}

/** How far planning is. */
export interface PlanningProgress {
  /** The candidate that is measured now. `null`: the local pipeline. */
  readonly candidate: string | null;
  /** How many candidates there are. */
  readonly candidates: number;
  /** How many of them were measured before this one. */
  readonly measured: number;
  /** The step of this measurement, from 1. */
  readonly step: number;
  /** How many steps it has at most. */
  readonly steps: number;
}

/** Plans the offloading of a pipeline. */
export async function plan(request: PlanRequest): Promise<OffloadPlan> {
  return await new Planning(request).run();
}

/** Where the service's dispatcher is. */
export function addressOf(service: OffloadOptions["service"]): string {
  return typeof service === "string" ? service : service.address;
}

class Planning {
  readonly #request: PlanRequest;
  readonly #profile: ProfileOptions;
  readonly #refused: string[] = [];
  #cutPoints: CutPoints | undefined;
  readonly #limitMs: number;
  readonly #untilMs: number;
  /** The greatest throughput of a candidate in its first steps. */
  #firstThroughput = 0;
  #isMeasured = false;
  /** Whether a candidate was not measured because time ran out. */
  #isLate = false;
  /** Whether no measurement was cut short. */
  #isComplete = true;
  /** Whether a candidate failed. */
  #hasFailed = false;
  /** How the service failed, if it cannot be used. The remaining candidates are then not measured. */
  #unusable: LeatErrorCode | undefined;
  /** The size of a batch in bytes, if one was seen. */
  #batchBytes: number | undefined;

  constructor(request: PlanRequest) {
    this.#request = request;
    const { host, train, stepMs, signal, profileSteps: steps = PROFILE_STEPS } = request;
    const clocks = { nowMs: () => host.nowMs(), cpuMs: offloadDependencies().cpuMs };
    const sleep: ProfileOptions["sleep"] = (ms, signal) => host.sleep(ms, signal);
    this.#profile = { clocks, steps, train, stepMs, sleep, signal };
    this.#limitMs = request.planningTimeoutMs ?? PLANNING_TIMEOUT_MS;
    this.#untilMs = host.nowMs() + this.#limitMs;
  }

  async run(): Promise<OffloadPlan> {
    const { host } = this.#request;
    const fromMs = host.nowMs();
    using store = await this.#openStore();
    const keys = store && keysOf(this.#subject());
    const stored = <V>(key: string | undefined, read: (value: unknown) => V | undefined) =>
      key === undefined ? undefined : read(this.#attempt(() => store!.get(key)));
    const keep = (key: string | undefined, value: unknown) => {
      if (key !== undefined) this.#attempt(() => store!.set(key, value));
    };
    const { speedUpThreshold } = this.#request;

    let base = stored(keys?.local, readLocal);
    if (base === undefined) {
      base = await this.#local();
      if (base === undefined) {
        const planningMs = host.nowMs() - fromMs;
        return OffloadPlan.without("no time", { planningMs, speedUpThreshold });
      }
      if (await this.#isTypical()) keep(keys?.local, base);
    }
    let candidates: CandidateMetrics[] = [];
    if (!staysLocal(base, speedUpThreshold)) {
      const names = this.#cuts.candidates.map(({ name }) => name);
      const found = stored(keys?.remote, (value) => readCandidates(value, names));
      candidates = found ?? await this.#candidates(base);
      // If a candidate failed, nothing is stored: the candidate may work the next time.
      const isWhole = candidates.length > 0 && !this.#hasFailed && !this.#isLate;
      const isKept = found === undefined && isWhole && await this.#isTypical();
      if (isKept) keep(keys?.remote, candidates);
    }
    const metrics: OffloadMetrics = { ...base, candidates };
    const decision = decide(metrics, speedUpThreshold);
    const isUnknown = decision.rule === "no candidate" && this.#isLate;
    return new OffloadPlan({
      decision: isUnknown ? { ...decision, rule: "no time" } : decision,
      metrics,
      refused: this.#refused,
      ordered: this.#request.service.deterministic === undefined ? this.#cuts.ordered : [],
      source: this.#isMeasured ? "measured" : "stored",
      planningMs: host.nowMs() - fromMs,
      stepMs: this.#batchBytes && 1_000 * this.#batchBytes / decision.estimate,
      isUnreached: candidates.length === 0 && this.#unusable !== undefined &&
        this.#unusable !== "unauthenticated",
    });
  }

  #subject() {
    const { pipeline, model = "", remoteResources } = this.#request;
    const { service, targetTags = [], deterministic = false, compression = null } =
      this.#request.service;
    return {
      pipeline,
      model,
      localResources: offloadDependencies().localResources(),
      remoteResources: remoteResources ?? JSON.stringify([addressOf(service), targetTags]),
      ...{ deterministic, compression },
    };
  }

  /**
   * Whether another run would measure the same: nothing was cut short, and no cache was complete. The
   * other run may have more time, and no cache yet.
   */
  async #isTypical(): Promise<boolean> {
    const { pipeline, host, metricsStore } = this.#request;
    return metricsStore !== undefined && this.#isComplete && !await isCached(pipeline, host);
  }

  /** Measures the local pipeline. Undefined if there was no time for a step. */
  async #local(): Promise<LocalMetrics | undefined> {
    this.#isMeasured = true;
    const { pipeline, host } = this.#request;
    const measured = await profileLocal(() => openIterator(pipeline, { host }), {
      ...this.#profile,
      // The rest of the time is for candidates: without one, Lthp alone decides nothing.
      untilMs: host.nowMs() + LOCAL_SHARE_MAX * this.#limitMs,
      onStep: this.#onStep(null, 0),
    });
    if (measured === undefined) return undefined;
    const { batch, isComplete, ...local } = measured;
    this.#isComplete &&= isComplete;
    this.#batchBytes = bytesOfElement(batch);
    return local;
  }

  get #cuts(): CutPoints {
    const { pipeline, service: { deterministic } } = this.#request;
    return this.#cutPoints ??= cutPointsOf(pipeline, deterministic);
  }

  #onStep(candidate: string | null, measured: number): ProfileOptions["onStep"] {
    const { onProgress } = this.#request;
    if (onProgress === undefined) return undefined;
    const { length: candidates } = this.#cuts.candidates;
    return (step, steps) => onProgress({ candidate, candidates, measured, step, steps });
  }

  async #candidates(base: LocalMetrics): Promise<CandidateMetrics[]> {
    this.#isMeasured = true;
    const { candidates, refused } = this.#cuts;
    this.#refused.push(...refused);
    const metrics: CandidateMetrics[] = [];
    // Batches first: receiving them costs this host least, so measuring the others can end early.
    const ordered = candidates.toSorted((a, b) => Number(isBatched(b)) - Number(isBatched(a)));
    const { measuresAll = false, pipeline, host } = this.#request;
    for (const [number, cut] of ordered.entries()) {
      const { name } = cut;
      if (this.#unusable !== undefined) {
        this.#refused.push(`${name}: not measured, because the service failed before`);
        continue;
      }
      // A measurement before this one may have completed it.
      if (await isCached(pipeline, host, cut.original(cut.root))) {
        this.#refused.push(`${name}: not measured, because a cache after it is complete`);
        continue;
      }
      // The measured candidate with the same elements in batches. Single ones cost this host no less.
      const batched = /^p'[12]/.test(name)
        ? metrics.find((at) => at.name === name.replace(/^p'[12]/, "p'3"))
        : undefined;
      const Ocycle = batched?.Ocycle ?? 0;
      const isSame = batched !== undefined && cut.readHere === undefined && !isPadded(cut);
      if (!measuresAll && isSame && Ocycle <= CHEAP_SHARE * base.Pcycle) {
        this.#refused.push(`${name}: not measured, because receiving ${batched.name} costs little`);
        continue;
      }
      const nowMs = this.#request.host.nowMs();
      const options = {
        ...this.#profile,
        localStepMs: this.#batchBytes && 1_000 * this.#batchBytes / base.Lthp,
        // The candidates that are left divide the remaining time equally.
        untilMs: nowMs + (this.#untilMs - nowMs) / (candidates.length - number),
        firstThroughputMin: measuresAll ? 0 : FIRST_MARGIN * this.#firstThroughput,
        onStep: this.#onStep(name, number),
      };
      const measured = await this.#candidate(
        name,
        options,
        (Rthp) => !measuresAll && isBehind(base, metrics, Rthp, Ocycle),
      );
      if (measured !== undefined) metrics.push(measured);
    }
    return metrics;
  }

  async #candidate(
    name: string,
    options: ProfileOptions,
    isDecided: IsDecided,
  ): Promise<CandidateMetrics | undefined> {
    const { pipeline, service, host } = this.#request;
    const node = new OffloadNode(pipeline, { ...service, plan: { candidate: name, ratio: 1 } });
    const figures = figuresOf(node);
    figures.isMeasuring = true;
    const hasFailed = () => figures.lastFailure !== undefined;
    let failure: unknown;
    let measured;
    try {
      measured = await profileCandidate(
        name,
        () => openIterator(node, { host }),
        {
          ...options,
          onFailure: (error) => failure = error,
          supply: () => figures.supply(),
        },
        (Rthp) => hasFailed() || isDecided(Rthp),
      );
    } catch (error) {
      // A training step has failed.
      if (error !== failure) throw error;
      return this.#fails(`${name}: its elements`, LeatError.from(error));
    }
    const { workers, lastFailure } = figures;
    if (lastFailure !== undefined) {
      if (UNUSABLE.has(lastFailure.code)) this.#unusable = lastFailure.code;
      return this.#fails(`${name}: the service`, lastFailure);
    }
    if (measured !== undefined) {
      const { firstThroughput, metrics, isComplete } = measured;
      this.#isComplete &&= isComplete;
      if (firstThroughput > this.#firstThroughput && firstThroughput < Infinity) {
        this.#firstThroughput = firstThroughput;
      }
      return { ...metrics, ...(workers > 0 ? { workers } : {}) };
    }
    this.#isLate = true;
    const limit = `planningTimeoutMs, ${this.#limitMs} ms, left no time for a step`;
    this.#refused.push(`${name}: not measured, because ${limit}`);
    return undefined;
  }

  #fails(what: string, { code, message }: LeatError): undefined {
    this.#hasFailed = true;
    this.#refused.push(`${what} failed while it was measured: ${code}: ${message}`);
  }

  async #openStore(): Promise<MetricStore | undefined> {
    const { metricsStore: path } = this.#request;
    if (path === undefined) return undefined;
    try {
      return await offloadDependencies().openStore(path);
    } catch (error) {
      this.#warnOfStore(error);
      return undefined;
    }
  }

  #attempt<V>(use: () => V): V | undefined {
    try {
      return use();
    } catch (error) {
      this.#warnOfStore(error);
      return undefined;
    }
  }

  /** Warns, and no more: without the store the metrics are measured. */
  #warnOfStore(error: unknown): void {
    const { message, cause } = LeatError.from(error);
    const why = cause instanceof Error ? `${message}: ${cause.message}` : message;
    this.#request.host.warn(`offload: the metric store is not used now: ${why}`);
  }
}

/**
 * Whether a pipeline reads elements from a complete cache or snapshot, instead of preparing them.
 * @param part Only caches after this node count. Default: all.
 */
async function isCached(pipeline: DatasetNode, host: Host, part?: DatasetNode): Promise<boolean> {
  const seed = seedOf(pipeline);
  for (const node of inPreOrder(pipeline)) {
    if (part !== undefined && !inPreOrder(node).includes(part)) continue;
    if (node instanceof CacheNode && node.isFull) return true;
    const folder = folderOf(node, seed);
    if (folder !== undefined && await readManifest(host, folder) !== undefined) return true;
  }
  return false;
}

/** Where an operator of a pipeline with this seed keeps elements; undefined if not in files. */
function folderOf(node: DatasetNode, seed: bigint | undefined): string | undefined {
  if (node instanceof CacheNode) return node.path;
  return node instanceof SnapshotNode ? node.folderWith(seed) : undefined;
}

/** Whether workers give whole batches. */
function isBatched({ chain: { batch } }: CutPoint): boolean {
  return batch !== undefined;
}

/** Whether batches contain padding, so that single elements are smaller. */
function isPadded({ whole }: CutPoint): boolean {
  return chainOf(whole)?.batch?.kind === "paddedBatch";
}
