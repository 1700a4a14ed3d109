/** Plans: measures, or reads from the metric store, and decides. */
import { LeatError } from "../core/error.ts";
import { openIterator } from "../data/dataset_iterator.ts";
import type { Host } from "../data/host.ts";
import type { DatasetNode } from "../data/node.ts";
import { OffloadNode, type OffloadOptions } from "../data/operators/offload.ts";
import { cutPointsOf } from "./cut_points.ts";
import {
  type CandidateMetrics,
  decide,
  isBehind,
  type OffloadMetrics,
  staysLocal,
} from "./decide.ts";
import { figuresOf, sizeOf } from "./figures.ts";
import { keysOf, type MetricStore, readCandidates, readGthp, readLocal } from "./metric_store.ts";
import { OffloadPlan, PROFILE_STEPS } from "./plan.ts";
import { type IsDecided, profileCandidate, profileLocal, type ProfileOptions } from "./profile.ts";
import { offloadDependencies } from "./dependencies.ts";

type LocalMetrics = Omit<OffloadMetrics, "candidates">;

export interface PlanRequest {
  readonly pipeline: DatasetNode;
  /** The service, and what its clients need. */
  readonly service: Pick<
    OffloadOptions,
    "service" | "token" | "ca" | "compression" | "targetTags" | "timeoutMs"
  >;
  readonly host: Host;
  /** One training step on a copy of the training state. */
  readonly train?: ProfileOptions["train"];
  readonly stepMs?: number | undefined;
  readonly profileSteps?: number | undefined;
  /** Names the model in the metric store. Needed for a store. */
  readonly model?: string | undefined;
  readonly metricsStore?: string | undefined;
  /** Describes the workers in the metric store. Default: the service's address and tags. */
  readonly remoteResources?: string | undefined;
  readonly speedUpThreshold?: number | undefined;
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
  #isMeasured = false;
  /** Why a candidate could not be measured: the others are not tried. */
  #failure: string | undefined;
  /** The size of a batch in bytes, if one was seen. */
  #batchBytes: number | undefined;

  constructor(request: PlanRequest) {
    this.#request = request;
    const { host, train, stepMs, profileSteps: steps = PROFILE_STEPS } = request;
    const clocks = { nowMs: () => host.nowMs(), cpuMs: offloadDependencies().cpuMs };
    this.#profile = { clocks, steps, train, stepMs, sleep: (ms) => host.sleep(ms) };
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

    let base = known(stored(keys?.model, readGthp), stored(keys?.local, readLocal));
    if (base === undefined) {
      const { Gthp, Lthp, Pcycle } = await this.#local();
      base = { Gthp, Lthp, Pcycle };
      keep(keys?.model, { Gthp });
      keep(keys?.local, { Lthp, Pcycle });
    }
    let candidates: CandidateMetrics[] = [];
    if (!staysLocal(base, speedUpThreshold)) {
      const found = stored(keys?.remote, readCandidates);
      candidates = found ?? await this.#candidates(base);
      // Keep nothing if a candidate failed: it may work the next time.
      const isWhole = candidates.length > 0 && this.#failure === undefined;
      if (found === undefined && isWhole) keep(keys?.remote, candidates);
    }
    const metrics: OffloadMetrics = { ...base, candidates };
    const decision = decide(metrics, speedUpThreshold);
    return new OffloadPlan({
      decision,
      metrics,
      refused: this.#refused,
      source: this.#isMeasured ? "measured" : "stored",
      planningMs: host.nowMs() - fromMs,
      stepMs: this.#batchBytes && 1_000 * this.#batchBytes / decision.estimate,
    });
  }

  #subject() {
    const { pipeline, model = "", remoteResources, service: { service, targetTags = [] } } =
      this.#request;
    return {
      pipeline,
      model,
      localResources: offloadDependencies().localResources(),
      remoteResources: remoteResources ?? JSON.stringify([addressOf(service), targetTags]),
    };
  }

  async #local() {
    this.#isMeasured = true;
    const { pipeline, host } = this.#request;
    const local = await profileLocal(() => openIterator(pipeline, { host }), this.#profile);
    this.#batchBytes = sizeOf(local.batch);
    return local;
  }

  async #candidates(base: LocalMetrics): Promise<CandidateMetrics[]> {
    this.#isMeasured = true;
    const { pipeline } = this.#request;
    const { candidates, refused } = cutPointsOf(pipeline);
    this.#refused.push(...refused);
    const metrics: CandidateMetrics[] = [];
    for (const { name } of candidates) {
      if (this.#failure !== undefined) {
        this.#refused.push(`${name}: not measured, because the service failed before`);
        continue;
      }
      const localStepMs = this.#batchBytes && 1_000 * this.#batchBytes / base.Lthp;
      const options = { ...this.#profile, localStepMs };
      const measured = await this.#candidate(
        name,
        options,
        (Rthp) => isBehind(base, metrics, Rthp),
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
    const failure = () => figures.read().lastFailure;
    const measured = await profileCandidate(
      name,
      () => openIterator(node, { host }),
      options,
      (Rthp) => failure() !== undefined || isDecided(Rthp),
    );
    const { workers } = figures;
    this.#failure = failure();
    if (this.#failure === undefined) return { ...measured, ...(workers > 0 ? { workers } : {}) };
    this.#refused.push(`${name}: the service failed while it was measured: ${this.#failure}`);
    return undefined;
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

  /** The store saves time; without it the metrics are measured. */
  #warnOfStore(error: unknown): void {
    const { message, cause } = LeatError.from(error);
    const why = cause instanceof Error ? `${message}: ${cause.message}` : message;
    this.#request.host.warn(`offload: the metric store is not used now: ${why}`);
  }
}

function known(
  Gthp: number | undefined,
  local: { readonly Lthp: number; readonly Pcycle: number } | undefined,
): LocalMetrics | undefined {
  return Gthp === undefined || local === undefined ? undefined : { Gthp, ...local };
}
