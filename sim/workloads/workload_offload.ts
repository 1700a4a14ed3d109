/**
 * A small cluster with a dispatcher, two workers and a trainer. The trainer prepares a part of its
 * elements itself, and the service prepares the rest. The trainer saves its iterator from time to time,
 * and continues from there after a crash, or without a reason.
 *
 * Promises: the training loop receives each element once, and in order with `deterministic`. While the
 * service works, each side provides its share. The loop reaches the end, whatever fails. The same holds
 * if the workers' part of the pipeline changes while the loop reads.
 */
import type { Dataset } from "../../data/dataset.ts";
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import type { OffloadNode } from "../../data/operators/offload.ts";
import { Adaptation, setAdaptation } from "../../offload/adaptation.ts";
import { figuresOf, type OffloadProgress } from "../../offload/figures.ts";
import { Violations } from "../checkers/checker.ts";
import { DecisionsChecker } from "../checkers/decisions.ts";
import { HalvesChecker } from "../checkers/halves.ts";
import { SimCluster } from "../engine/cluster.ts";
import type { SimNode } from "../engine/node.ts";
import type { SimRandom } from "../engine/random.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "../engine/service.ts";
import { drawStreamTimings, type ServiceTimings } from "../engine/timings.ts";
import { Crashes } from "../faults/crashes.ts";
import { referenceRun } from "../reference/reference_stream.ts";
import {
  DECIDED,
  EXCHANGED,
  LOCAL_STEP_MS,
  OFFLOADED,
  PERIOD,
  profiledPlan,
  RandomCuts,
  type Rows,
  type Variant,
} from "./lib/offload_variants.ts";
import { Readings, Trainings } from "./lib/reading.ts";
import { outcomeOf, type RunOptions, type RunOutcome, runThroughTrouble } from "./workload.ts";

const WORKERS = ["worker-1", "worker-2"] as const;
const TRAINER = "trainer";
const NODES = { dispatcher: [DISPATCHER_NODE], worker: WORKERS, client: [TRAINER] } as const;

/** Maximum training step, in ms. It is long enough for some retries of the service in a run. */
const STEP_MAX_MS: [number, ...number[]] = [20, 500];
/** Timeout of an element of the service, in ms. */
const TIMEOUT_MS: [number, ...number[]] = [300, 3_000];
const RATIOS: [number, ...number[]] = [0.2, 0.5, 0.9];
/** Probabilities, per element, that the loop saves its iterator, and that it then restores one. */
const SAVE_PROBABILITY = 0.2;
const RESTORE_PROBABILITY = 0.2;

/** Computes the elements in the order of the pipeline, and in the order of its DETERMINISTIC job. */
async function wantedOf({ rowsOf }: Variant): Promise<Wanted> {
  const canonical: number[] = [];
  await referenceRun(rowsOf, 1, (given) => {
    if ("element" in given) canonical.push(...(given.element as Rows).data);
  });
  return { plain: canonical.toSorted((a, b) => a - b), canonical };
}

interface Wanted {
  readonly plain: readonly number[];
  readonly canonical: readonly number[];
}

const wanted = new Map<Variant, Promise<Wanted>>();

export async function runOffload(options: RunOptions): Promise<RunOutcome> {
  return await runVariant(options, OFFLOADED);
}

/** Runs one seed whose trainer has an outdated profile. */
export async function runDecisions(options: RunOptions): Promise<RunOutcome> {
  return await runVariant(options, DECIDED);
}

/** Runs one seed in which the workers' part of the pipeline changes. */
export async function runExchange(options: RunOptions): Promise<RunOutcome> {
  return await runVariant(options, EXCHANGED);
}

async function runVariant(options: RunOptions, variant: Variant): Promise<RunOutcome> {
  const elements = await wanted.getOrInsertComputed(variant, wantedOf);
  using run = new OffloadRun(options, variant, elements);
  return await outcomeOf(run, ({ checker }) => checker.taken.length);
}

class OffloadRun implements Disposable {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly checker: HalvesChecker;
  readonly #timings: ServiceTimings;
  readonly #crashes: Crashes;
  readonly #trainings = new Trainings(this.violations.by("training"));
  readonly #readings = new Readings();
  readonly #variant: Variant;
  readonly #wanted: readonly number[];
  readonly #ratio: number;
  readonly #candidate: string;
  readonly #deterministic: boolean;
  readonly #adapt: boolean;
  /** The time of a step by candidate, if steps depend on the candidate. */
  readonly #stepMs: Readonly<Record<string, number>> | undefined;
  readonly #decisions: DecisionsChecker;
  readonly #timeoutMs: number;
  readonly #stepMaxMs: number;
  /** The trainer's checkpoint on its disk. */
  #saved: { readonly token: Uint8Array; readonly taken: readonly number[] } | undefined;

  constructor(
    { seed, faults, readable = false, crashes = [], crashPoint }: RunOptions,
    variant: Variant,
    { plain, canonical }: Wanted,
  ) {
    const { changes } = this.#variant = variant;
    const isExchanged = changes !== "never";
    this.cluster = new SimCluster({ seed, faults, readable });
    const rng = this.cluster.random.fork("offload");
    this.#ratio = rng.pick(RATIOS);
    this.#candidate = rng.pick(["p'1", "p'2", "p'3"]);
    this.#deterministic = rng.chance(0.5) && !isExchanged;
    this.#adapt = rng.chance(0.3) || isExchanged;
    this.#timeoutMs = rng.pick(TIMEOUT_MS);
    this.#stepMaxMs = rng.pick(STEP_MAX_MS);
    this.#wanted = this.#candidate === "p'3" ? canonical : plain;
    const helps = changes === "measured" && rng.chance(0.5);
    if (changes === "measured") {
      this.#stepMs = { "p'3": 2_800, "p'2": helps ? 1_400 : 5_600, null: LOCAL_STEP_MS };
    }
    this.#decisions = new DecisionsChecker(
      helps ? "p'2" : "p'3",
      this.violations.by("decisions"),
    );
    const findings = this.violations.by("halves");
    this.checker = new HalvesChecker(this.#wanted, this.#deterministic, findings);
    this.#timings = drawStreamTimings(this.cluster, this.cluster.random.fork("timings"));
    this.cluster.addNode(DISPATCHER_NODE, bootDispatcher(this.#timings.dispatcher));
    for (const name of WORKERS) this.cluster.addNode(name, bootWorker(this.#timings.worker));
    this.cluster.addNode(TRAINER, (node) => {
      this.#trainings.begin(node, (who, rng) => this.#train(node, who, rng));
    });
    this.#crashes = new Crashes(this.cluster, {
      nodes: NODES,
      roles: crashes,
      point: crashPoint,
      onCrash: (node) => this.#trainings.crashed(node),
    });
  }

  async toTheEnd(): Promise<void> {
    const hasEnded = () => this.#trainings.haveEnded([TRAINER]);
    await runThroughTrouble(this.cluster, this.#crashes, hasEnded);
  }

  [Symbol.dispose](): void {
    this.#readings[Symbol.dispose]();
  }

  async #train(node: SimNode, who: string, rng: SimRandom): Promise<void> {
    for (;;) {
      const { dataset, next } = this.#open(node, rng);
      await using iterator = next();
      this.checker.resume(this.#saved?.taken ?? []);
      this.#decisions.forget();
      if (this.#saved !== undefined) await iterator.restore(this.#saved.token);
      if (await this.#read(iterator, dataset, { node, who, rng })) return this.checker.ended(who);
      this.cluster.counters.tally("iterator_restored");
    }
  }

  /** Reads to the end, or until the iterator is to be restored. Returns whether it is at its end. */
  async #read(
    iterator: DatasetIterator<Rows>,
    dataset: Dataset<Rows>,
    { node, who, rng }: { node: SimNode; who: string; rng: SimRandom },
  ): Promise<boolean> {
    const progress = () => figuresOf(dataset.node).read();
    const isRestored = this.#saved !== undefined;
    let failed = 0;
    for (;;) {
      const { done, value } = await iterator.next();
      if (done) {
        if (this.#stepMs !== undefined) this.#decisions.ended();
        if (progress().fallbacks > 0) this.cluster.counters.tally("service_fell_back");
        return true;
      }
      for (const element of value.data) this.checker.took(element, who);
      if (!isRestored) this.#checkShare(progress(), who);
      this.#crashes.delivered(this.checker.taken.length);
      if (this.#stepMs !== undefined) {
        const { candidate = null, fallbacks } = progress();
        if (fallbacks > failed) this.#decisions.forget();
        failed = fallbacks;
        this.#decisions.took(candidate);
        await node.host.sleep(this.#stepMs[`${candidate}`]!);
        continue;
      }
      if (rng.chance(SAVE_PROBABILITY)) {
        const token = await iterator.save();
        this.#saved = { token, taken: this.checker.taken };
        if (rng.chance(RESTORE_PROBABILITY)) return false;
      }
      await node.host.sleep(rng.between(0, this.#stepMaxMs));
    }
  }

  /** Checks the service's share in the first half. Near the end one side may have nothing left. */
  #checkShare({ local, remote, fallbacks }: OffloadProgress, who: string): void {
    const isEarly = 2 * this.checker.taken.length < this.#wanted.length;
    if (!isEarly || fallbacks > 0 || this.#adapt || this.#deterministic) return;
    this.checker.shared(remote.elements, local.elements + remote.elements, this.#ratio, who);
  }

  #open(node: SimNode, rng: SimRandom) {
    const { rowsOf, changes } = this.#variant;
    const plan = changes === "measured"
      ? profiledPlan()
      : { candidate: this.#candidate, ratio: this.#ratio };
    let dataset: Dataset<Rows> | undefined;
    const next = this.#readings.dataset<Rows>(
      node,
      (service) =>
        dataset = rowsOf().offload({
          service,
          plan,
          timeoutMs: this.#timeoutMs,
          deterministic: this.#deterministic,
          adapt: this.#adapt,
        }),
      this.#timings.client,
    );
    if (changes !== "never") {
      const cuts = changes === "random"
        ? new RandomCuts(rng.fork("cuts"), this.#candidate)
        : undefined;
      setAdaptation(dataset!.node as OffloadNode, new Adaptation(plan, cuts, PERIOD));
    }
    return { dataset: dataset!, next };
  }
}
