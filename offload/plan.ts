/** The plan: metrics, decision, and an explanation in words. */
import { bytesText, percentText } from "../data/amounts.ts";
import type { OffloadChoice } from "../data/operators/offload.ts";
import {
  bestOf,
  estimateOf,
  type OffloadDecision,
  type OffloadMetrics,
  shareFor,
  type ShareReason,
  SPEED_UP_THRESHOLD,
} from "./decide.ts";
import { countText } from "../data/amounts.ts";

/** Limit of a measurement's steps (the paper makes 50 to 100). It ends earlier once it is exact. */
export const PROFILE_STEPS = 50;
/** Limit of the time that planning takes, in ms. */
export const PLANNING_TIMEOUT_MS = 60_000;
/** `explain()` compares the cost of planning with a training of this many steps. */
const STEPS_COMPARED = 10_000;

const REASONS: Readonly<Record<ShareReason, string>> = {
  "workers suffice": "because workers alone are fast enough",
  "workers are faster": "because workers alone are faster than with this host's help",
  "all of workers": "as much as workers and network can give",
  "time left": "with which workers and this host have time left",
  "finish together": "so that workers and this host finish together",
  "least share":
    "the least share that makes it so fast, because receiving costs this host more than preparing",
};

/** Where metrics come from. */
export type MetricSource = "measured" | "stored";

/** The parts of a plan. */
export interface OffloadPlanParts {
  /** What algorithm 1 has decided. */
  readonly decision: OffloadDecision;
  /** The metrics that it has decided by. */
  readonly metrics: OffloadMetrics;
  /** What cannot be offloaded, or could not be measured, as sentences. */
  readonly refused: readonly string[];
  /**
   * The operators because of which workers' elements keep their order, as with `deterministic: true`.
   * Default: none.
   */
  readonly ordered?: readonly string[];
  /** Whether the metrics were measured now or read from the store. */
  readonly source: MetricSource;
  /** How long planning took, in ms. */
  readonly planningMs: number;
  /** The expected time of a training step, in ms. Left out: the size of a batch is unknown. */
  readonly stepMs?: number | undefined;
  /**
   * Whether no candidate was measured because the service could not be reached, or gave nothing.
   * Default false.
   */
  readonly isUnreached?: boolean;
}

/** Whether to offload, which part, and what share of the data. Made by `planOffload()` and `fit()`. */
export class OffloadPlan implements OffloadChoice, OffloadPlanParts {
  /** What algorithm 1 has decided. */
  readonly decision: OffloadDecision;
  /** The metrics that it has decided by. */
  readonly metrics: OffloadMetrics;
  /** What cannot be offloaded, or could not be measured, as sentences. */
  readonly refused: readonly string[];
  /** The operators because of which workers' elements keep their order, as with `deterministic: true`. */
  readonly ordered: readonly string[];
  /** Whether the metrics were measured now or read from the store. */
  readonly source: MetricSource;
  /** How long planning took, in ms. */
  readonly planningMs: number;
  /** The expected time of a training step, in ms. Left out: the size of a batch is unknown. */
  readonly stepMs?: number | undefined;
  /** Whether no candidate was measured because the service could not be reached, or gave nothing. */
  readonly isUnreached: boolean;

  /** @ignore */
  constructor(
    { decision, metrics, refused, ordered = [], source, ...others }: OffloadPlanParts,
  ) {
    const { planningMs, stepMs, isUnreached = false } = others;
    this.decision = decision;
    this.metrics = metrics;
    this.refused = refused;
    this.ordered = ordered;
    this.source = source;
    this.planningMs = planningMs;
    this.stepMs = stepMs;
    this.isUnreached = isUnreached;
  }

  /** @ignore */
  static without(
    rule: "short training" | "no time",
    { planningMs = 0, speedUpThreshold = SPEED_UP_THRESHOLD }: {
      readonly planningMs?: number;
      readonly speedUpThreshold?: number | undefined;
    } = {},
  ): OffloadPlan {
    return new OffloadPlan({
      decision: {
        ...{ candidate: null, ratio: 0, rule },
        ...{ speedUpMax: 1, speedUpThreshold, estimate: 0 },
      },
      metrics: { Gthp: 0, Lthp: 0, Pcycle: 0, candidates: [] },
      ...{ refused: [], source: "measured", planningMs },
    });
  }

  /** The candidate that is offloaded; `null`: none. */
  get candidate(): string | null {
    return this.decision.candidate;
  }

  /** The share of elements that workers prepare, from 0 to 1. */
  get ratio(): number {
    return this.decision.ratio;
  }

  /** A sentence that says what is done and why, and a table of what was measured. */
  explain(): string {
    if (this.metrics.Lthp === 0) return [this.#sentence(), ...this.#overhead()].join("\n");
    return [
      ...[this.#sentence(), "", ...this.#table()],
      ...[...this.#workers(), ...this.#overhead(), ...this.#order(), ...this.#refusals()],
    ].join("\n");
  }

  /** Returns what `explain()` returns. */
  toString(): string {
    return this.explain();
  }

  #sentence(): string {
    const { rule, candidate, ratio, speedUpMax, estimate } = this.decision;
    const { Lthp, Gthp, Pcycle } = this.metrics;
    const best = bestOf(this.metrics);
    const faster = Number.isFinite(speedUpMax) ? `at most ${times(speedUpMax)} as fast` : "faster";
    switch (rule) {
      case "short training":
        return "Nothing is offloaded, and nothing was measured: the training has too few steps.";
      case "no time":
        return "Nothing is offloaded: planning ran out of time before it measured anything that " +
          "workers could run. Give it more time (planningTimeoutMs), or a plan.";
      case "no stall":
        return "Nothing is offloaded: training does not wait for data.";
      case "speed-up below threshold":
        return `Nothing is offloaded: without waiting for data training would be ${faster}.`;
      case "no candidate":
        return `Nothing is offloaded, though training could be ${faster}: workers can run no part ` +
          "of the pipeline now, for the reasons below.";
      case "no gain":
        return `Nothing is offloaded, though training could be ${faster}: ${
          best!.Ocycle < Pcycle
            ? "workers, or the network to them, are too slow."
            : "receiving what workers prepare costs this host more than they save."
        }`;
      case "offload": {
        const why = REASONS[shareFor(this.metrics, best!).why];
        const waits = Number.isFinite(Gthp)
          ? `training waits for data ${percentText(1 - Lthp / Gthp)} of its time`
          : "training takes elements as fast as they come";
        return `Workers run ${candidate} for ${
          percentText(ratio)
        } of the data, ${why}: ${waits}, ` +
          `and is expected to become ${times(estimate / Lthp)} as fast.`;
      }
    }
  }

  #table(): string[] {
    const { Gthp, Lthp, Pcycle, candidates } = this.metrics;
    const { Upper, Lower } = this.decision;
    const rows = [
      ["", "throughput", "CPU time here per step", "estimate"],
      ["training alone (Gthp)", rate(Gthp), "", ""],
      ["local (Lthp, Pcycle)", rate(Lthp), ms(Pcycle), rate(Math.min(Gthp, Lthp))],
      ...candidates.map((at) => [
        `${at.name} (Rthp, Ocycle)`,
        rate(at.Rthp),
        ms(at.Ocycle),
        rate(Math.min(Gthp, estimateOf(this.metrics, at))),
      ]),
      ...(Upper === undefined ? [] : [["Upper", rate(Upper), "", ""]]),
      ...(Lower === undefined ? [] : [["Lower", rate(Lower), "", ""]]),
    ];
    const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
    const line = (row: readonly string[]) =>
      row.map((cell, i) => i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))
        .join("  ").trimEnd();
    return rows.map(line);
  }

  /** Section 9 of the paper. */
  #workers(): string[] {
    const { workers, candidate } = this.decision;
    const measured = this.metrics.candidates.find(({ name }) => name === candidate)?.workers;
    if (workers === undefined || measured === undefined) return [];
    const had = `${countText(measured, "worker")} ${measured === 1 ? "was" : "were"} measured`;
    return [
      "",
      `Training would not wait with ${
        countText(workers, "worker")
      } (Lower, but at most Gthp, / Rthp of one); ${had}.`,
    ];
  }

  /** What planning itself costs. */
  #overhead(): string[] {
    const { planningMs, stepMs } = this;
    if (planningMs === 0) return [];
    const took = `Planning took ${(planningMs / 1_000).toFixed(2)} s`;
    if (this.source === "stored") return ["", `${took}, with metrics from the store.`];
    if (stepMs === undefined) return ["", `${took}.`];
    const share = 100 * planningMs / (STEPS_COMPARED * stepMs);
    return [
      "",
      `${took}: as long as ${Math.ceil(planningMs / stepMs)} steps of this training, which is ` +
      `${share < 10 ? share.toPrecision(2) : Math.round(share)} % of ${
        STEPS_COMPARED.toLocaleString("en")
      } steps.`,
    ];
  }

  #order(): string[] {
    const names = this.ordered.map((name) => `\`${name}\``).join(", ");
    return names === "" ? [] : [
      "",
      `In order: elements of workers keep their place, as with deterministic: true, because ${names} ` +
      "would give other elements in another order.",
    ];
  }

  #refusals(): string[] {
    return this.refused.length === 0
      ? []
      : ["", ...this.refused.map((reason) => `Not considered: ${reason.replace(/\.$/, "")}.`)];
  }
}

/** A larger factor only shows that a training step takes hardly any time. */
const FACTOR_MAX = 100;

function times(factor: number): string {
  if (factor > FACTOR_MAX) return `over ${FACTOR_MAX} times`;
  return `${factor.toFixed(2)} times`;
}

function rate(bytesPerSecond: number): string {
  return Number.isFinite(bytesPerSecond)
    ? `${bytesText(Math.max(0, bytesPerSecond))}/s`
    : "unlimited";
}

function ms(value: number): string {
  return `${value.toFixed(2)} ms`;
}
