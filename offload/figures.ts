/** What an offloaded pipeline has done so far. */
import type { LeatError } from "../core/error.ts";
import { byteSize } from "../core/tree.ts";
import type { Supply } from "./conditional/wait_meter.ts";
import type { OffloadPlan } from "./plan.ts";
import type { PlanningProgress } from "./planner.ts";

/** One side's share. */
export interface SideFigures {
  /** Elements, or batches, given to the training loop. */
  readonly elements: number;
  /** Their size, in bytes. */
  readonly bytes: number;
}

/** A copy of the figures of an offloaded pipeline. */
export interface OffloadProgress {
  /** The share of elements that workers are to prepare, from 0 to 1. */
  readonly ratio: number;
  /** Where elements are prepared now. */
  readonly state: "local" | "local and remote";
  /** What this process prepared. */
  readonly local: SideFigures;
  /** What workers prepared. */
  readonly remote: SideFigures;
  /** How often local CPUs took over because the service failed. */
  readonly fallbacks: number;
  /** How often the ratio was corrected while training ran. */
  readonly corrections: number;
  /** What workers run; `null` while all is prepared here. Left out before the first element. */
  readonly candidate?: string | null;
  /** Why the service failed last. */
  readonly lastFailure?: string;
  /** What is being measured for a plan; left out if nothing is. */
  readonly planning?: PlanningProgress;
  /** The last plan that an iterator of the dataset made, at its start or later. Left out: none. */
  readonly plan?: OffloadPlan;
}

/** How long a service that failed counts as away, if it gives nothing. */
const AWAY_MIN_MS = 30_000;
const AWAY_MAX_MS = 15 * 60_000;

/** Counts what an offloaded pipeline does. */
export class OffloadFigures {
  /** Whether this only measures a candidate: if the service fails, the candidate is left out. */
  isMeasuring = false;
  /** What workers have given so far, and what of it waits here. Undefined: there are not several. */
  supply: () => Supply | undefined = () => undefined;
  #ratio = 0;
  /** When the service failed, if it has given nothing since. */
  #awaySinceMs: number | undefined;
  #awayForMs = 0;
  #fallbacks = 0;
  #corrections = 0;
  #lastFailure: LeatError | undefined;
  #plan: OffloadPlan | undefined;
  #planning: PlanningProgress | undefined;
  #candidate: string | null | undefined;
  #workers = 0;
  readonly #sides = { local: { elements: 0, bytes: 0 }, remote: { elements: 0, bytes: 0 } };

  /** Notes what is being measured for a plan. `undefined`: nothing. */
  plans(progress: PlanningProgress | undefined): void {
    this.#planning = progress;
  }

  planned(plan: OffloadPlan): void {
    this.#plan = plan;
  }

  /** The last plan that an iterator of the dataset made. */
  get plan(): OffloadPlan | undefined {
    return this.#plan;
  }

  /** The greatest number of workers that gave elements at the same time. */
  get workers(): number {
    return this.#workers;
  }

  /** Notes how many workers give elements. */
  readFrom(workers: number): void {
    this.#workers = Math.max(this.#workers, workers);
  }

  /** Notes the candidate that workers run from now on. */
  runs(candidate: string | null): void {
    this.#candidate = candidate;
    if (candidate === null) this.begin(0);
  }

  /** Notes the ratio with which an epoch or a candidate begins. */
  begin(ratio: number): void {
    this.#ratio = ratio;
  }

  count(side: "local" | "remote", element: unknown): void {
    const counted = this.#sides[side];
    counted.elements++;
    counted.bytes += bytesOfElement(element);
  }

  /**
   * Whether the service has failed not long ago, and has given nothing since. It counts as back after
   * a while, which doubles with each failure: in a short epoch, no element may arrive in time to show
   * that it is back. A try that fails begins the while again.
   */
  isAway(nowMs: number): boolean {
    return this.#awaySinceMs !== undefined && nowMs - this.#awaySinceMs < this.#awayForMs;
  }

  /** Why the service failed last. */
  get lastFailure(): LeatError | undefined {
    return this.#lastFailure;
  }

  /** Notes that the service is away. It counts as back after `leastMs`, or more if it was away before. */
  wentAway(nowMs: number, leastMs = AWAY_MIN_MS): void {
    const forMs = Math.max(AWAY_MIN_MS, leastMs, 2 * this.#awayForMs);
    this.#awayForMs = Math.min(AWAY_MAX_MS, forMs);
    this.#awaySinceMs = nowMs;
  }

  fellBack(reason: LeatError, nowMs: number): void {
    this.wentAway(nowMs);
    this.#fallbacks++;
    this.#lastFailure = reason;
  }

  /** A try of a service that is away has failed, too. It counts as away for at least `forMs` more. */
  stillAway(nowMs: number, forMs: number): void {
    if (this.#awaySinceMs === undefined) return;
    this.#awayForMs = Math.max(this.#awayForMs, forMs);
    this.#awaySinceMs = nowMs;
  }

  /** The service has given an element. */
  resumed(): void {
    this.#awaySinceMs = undefined;
    this.#awayForMs = 0;
  }

  /** Notes that the ratio was changed while training runs. */
  corrected(ratio: number): void {
    this.#ratio = ratio;
    this.#corrections++;
  }

  /** A copy of the figures. */
  read(): OffloadProgress {
    const failure = this.#lastFailure;
    return {
      ratio: this.#ratio,
      state: this.#ratio > 0 && this.#awaySinceMs === undefined ? "local and remote" : "local",
      local: { ...this.#sides.local },
      remote: { ...this.#sides.remote },
      fallbacks: this.#fallbacks,
      corrections: this.#corrections,
      ...(this.#candidate === undefined ? {} : { candidate: this.#candidate }),
      ...(failure === undefined ? {} : { lastFailure: `${failure.code}: ${failure.message}` }),
      ...(this.#planning === undefined ? {} : { planning: this.#planning }),
      ...(this.#plan === undefined ? {} : { plan: this.#plan }),
    };
  }
}

/** The size of an element in bytes: at least 1, 1 if it is not plain data, 0 for `undefined`. */
export function bytesOfElement(element: unknown): number {
  if (element === undefined) return 0;
  try {
    return Math.max(1, byteSize(element));
  } catch {
    return 1;
  }
}

const figures = new WeakMap<object, OffloadFigures>();

/** The figures of an `offload` node, of all its iterators together. */
export function figuresOf(node: object): OffloadFigures {
  return figures.getOrInsertComputed(node, () => new OffloadFigures());
}
