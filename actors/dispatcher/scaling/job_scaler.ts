/**
 * Decides how many workers one job wants. If trainers wait and workers are busy, it wants as many
 * as meet the trainers' demand, but at most twice as many as serve it now. A step that gains almost
 * nothing is undone for a while, because something else is the limit (storage, a network).
 */
import type { JobScaling, WorkerPool } from "../protocol_scaling.ts";
import { countText, percentText } from "../../../data/amounts.ts";

/** Trainers wait too much if they wait for more than this share of their time. */
const WAITING_SHARE = 0.1;
/** If workers are busy for less than this share of the time, trainers wait for something else. */
const BUSY_SHARE = 0.7;
/** Target utilisation of workers, with a margin so that small fluctuations change nothing. */
const TARGET_BUSY_SHARE = 0.8;
/** One step multiplies the workers by at most this, because the demand is only estimated. */
const GROWTH_MAX = 2;
/** A step has helped if it gained this share of what it could have gained. */
const GAIN_SHARE = 0.3;
/** Observations after which a step without gain counts as failed. */
const TRIAL_LOOKS = 3;
/** How long a floor or a ceiling is remembered, in ms. */
const MEMORY_MS = 600_000;
/** Each failed step doubles the time that a ceiling is remembered, up to this, in ms. */
const MEMORY_MAX_MS = 3_600_000;
/** So long after a change, in ms, the rates wait for workers that have produced nothing yet. */
const FILL_MAX_MS = 600_000;
/** A ceiling is forgotten if the clients get this many times what they got when it was set. */
const LIMIT_MOVED = 1.5;
/** A floor is forgotten if the demand falls below this share of what it was when it was set. */
const DEMAND_FELL = 0.8;

/** The measurements of a job. Rates are in elements per second. */
export interface JobSigns {
  readonly jobId: number;
  /** The same for the jobs of its next epochs. */
  readonly series: string;
  readonly name: string;
  /** Workers that produce for the job. */
  readonly serving: number;
  /** Static policies: the number of workers that share the job; null in other modes. */
  readonly shares: number | null;
  readonly pool: WorkerPool;
  /** What worker the job waits for, in words, if no live one may serve it; null otherwise. */
  readonly sought: string | null;
  /** Null while the figures of a client or a serving worker are missing or old. */
  readonly rates: JobRates | null;
  /** Whether a serving worker has produced nothing yet, as while it fills a shuffle buffer. */
  readonly isFilling: boolean;
  /**
   * How many workers its clients could use, by their own measurement; missing if none reports it.
   */
  readonly usable?: number | undefined;
}

export interface JobRates {
  /** The share of time, 0 to 1, in which the training loops waited. */
  readonly waitingShare: number;
  /** The share of time in which its pipelines worked, as the mean over the serving workers. */
  readonly busyShare: number;
  /** The clients' rate if they never waited. */
  readonly demand: number;
  /** The clients' actual rate. */
  readonly delivered: number;
  /** One worker's rate if it worked all the time. */
  readonly madeByOne: number;
}

/** A step up whose gain is not judged yet. */
interface Trial {
  readonly from: number;
  readonly delivered: number;
  looks: number;
}

type Decision = Pick<JobScaling, "kind" | "text" | "wanted">;

export class JobScaler {
  readonly #settleMs: number;
  #wanted: number | undefined;
  #usable: number | undefined;
  #serving = 0;
  /** Since when the number of serving workers has not changed. */
  #sinceMs = 0;
  /** The number at the last observation, and since when. */
  #seen = { serving: 0, sinceMs: 0 };
  /** When a worker last filled its buffers. */
  #filledMs = -Infinity;
  #observedMs = -Infinity;
  #trial: Trial | undefined;
  /** More workers than these did not help. */
  #ceiling:
    | { readonly workers: number; readonly delivered: number; readonly untilMs: number }
    | undefined;
  #ceilingMs = MEMORY_MS;
  /** Fewer workers than these did not meet the trainers' demand. */
  #floor:
    | { readonly workers: number; readonly demand: number; readonly untilMs: number }
    | undefined;

  /** @param settleMs The window of rates: after it, rates no longer include earlier workers. */
  constructor(settleMs: number) {
    this.#settleMs = settleMs;
  }

  observe(nowMs: number, signs: JobSigns): JobScaling {
    const { jobId, name } = signs;
    this.#observedMs = nowMs;
    this.#noteServing(nowMs, signs);
    const { kind, text, wanted } = this.#decide(nowMs, signs);
    this.#wanted = wanted;
    return { jobId, name, wanted, kind, text: `job ${name} ${text}` };
  }

  /** Notes that the job has no readers, as between two epochs. Returns since when, in ms. */
  rest(nowMs: number): number {
    this.#noteServing(nowMs, { serving: 0, isFilling: false });
    return nowMs - this.#observedMs;
  }

  /** A short fall is no change: all tasks end between two epochs. */
  #noteServing(nowMs: number, { serving, isFilling }: Pick<JobSigns, "serving" | "isFilling">) {
    if (serving !== this.#seen.serving) this.#seen = { serving, sinceMs: nowMs };
    const { sinceMs } = this.#seen;
    if (serving > this.#serving || nowMs - sinceMs >= this.#settleMs) {
      if (serving !== this.#serving) this.#sinceMs = sinceMs;
      this.#serving = serving;
    }
    if (isFilling && nowMs - this.#sinceMs < FILL_MAX_MS) this.#filledMs = nowMs;
  }

  /** Whether the rates are those of all workers that serve now. */
  #isSettled(nowMs: number, { serving }: JobSigns): boolean {
    const sinceMs = Math.max(this.#sinceMs, this.#filledMs);
    return serving === this.#serving && nowMs - sinceMs >= this.#settleMs;
  }

  #decide(nowMs: number, signs: JobSigns): Decision {
    const { serving, shares, sought, rates } = signs;
    if (shares !== null) {
      return {
        kind: "fixed",
        wanted: shares,
        text: `is divided among ${countText(shares, "worker")}`,
      };
    }
    const held = Math.max(1, this.#wanted ?? serving);
    if (serving === 0) {
      const why = sought === null ? "" : `: it waits for ${sought}, and no live worker is one`;
      return { kind: "unknown", wanted: held, text: `has no worker yet${why}` };
    }
    const measured = this.#measuredByClients(signs);
    if (measured !== undefined) return measured;
    if (rates === null || !this.#isSettled(nowMs, signs)) {
      return { kind: "unknown", wanted: held, text: "is being measured" };
    }
    this.#forget(nowMs, rates);
    this.#judge(nowMs, rates);
    if (rates.waitingShare <= WAITING_SHARE) return this.#satisfied(rates);
    if (rates.busyShare < BUSY_SHARE) return this.#pathIsSlow(rates);
    return this.#needsMore(nowMs, rates);
  }

  /**
   * If clients newly report how many workers they could use (FastFlow, section 9), the job wants
   * that many at once. Later the rates decide.
   */
  #measuredByClients({ usable, serving, rates }: JobSigns): Decision | undefined {
    const isNews = usable !== this.#usable;
    this.#usable = usable;
    if (!isNews || usable === undefined || usable <= serving) return undefined;
    this.#trial = { from: serving, delivered: rates?.delivered ?? 0, looks: 0 };
    return {
      kind: "more",
      wanted: usable,
      text: `could use ${countText(usable, "worker")}, as its trainer has measured`,
    };
  }

  /** Trainers hardly wait: their demand determines how many workers suffice. */
  #satisfied(rates: JobRates): Decision {
    const needed = Math.ceil(rates.demand / rates.madeByOne / TARGET_BUSY_SHARE);
    // No more than now: the present workers suffice, and the estimate is not exact.
    const enough = Math.min(needed, Math.max(this.#wanted ?? 0, this.#serving));
    return {
      kind: "enough",
      wanted: Math.max(1, enough, this.#floor?.workers ?? 0),
      text: `waits ${percentText(rates.waitingShare)} of its time, and its workers are busy ` +
        `${percentText(rates.busyShare)} of theirs`,
    };
  }

  /** Elements could be produced faster than they arrive: fewer workers would produce as many. */
  #pathIsSlow(rates: JobRates): Decision {
    const needed = Math.ceil(this.#serving * rates.busyShare / TARGET_BUSY_SHARE);
    return {
      kind: "limited",
      wanted: Math.max(1, needed, this.#floor?.workers ?? 0),
      text: `waits ${percentText(rates.waitingShare)} of its time, but its workers are busy only ` +
        `${percentText(rates.busyShare)} of theirs: the path to the trainers is slow, or its ` +
        "epochs are short, and more workers do not help",
    };
  }

  /** Trainers wait for workers that are busy. */
  #needsMore(nowMs: number, rates: JobRates): Decision {
    const waits = `waits ${percentText(rates.waitingShare)} of its time`;
    const ceiling = this.#ceiling;
    if (ceiling !== undefined && this.#serving >= ceiling.workers) {
      return {
        kind: "limited",
        wanted: ceiling.workers,
        text:
          `${waits}, but more than ${
            countText(ceiling.workers, "worker")
          } did not help: something else ` +
          "limits it, such as the storage that it reads or a network",
      };
    }
    const asked = this.#wanted ?? 0;
    const wanted = asked > this.#serving || this.#trial !== undefined
      ? Math.max(asked, this.#serving)
      : this.#stepUp(nowMs, rates);
    return {
      kind: "more",
      wanted,
      text: `${waits}, and its workers are busy ${percentText(rates.busyShare)} of theirs`,
    };
  }

  #stepUp(nowMs: number, { demand, delivered, madeByOne }: JobRates): number {
    const from = this.#serving;
    const needed = Math.ceil(demand / madeByOne / TARGET_BUSY_SHARE);
    this.#trial = { from, delivered, looks: 0 };
    this.#floor = { workers: from + 1, demand, untilMs: nowMs + MEMORY_MS };
    return Math.min(
      Math.max(from + 1, needed),
      GROWTH_MAX * from,
      this.#ceiling?.workers ?? Infinity,
    );
  }

  /** Judges whether the last step has helped. */
  #judge(nowMs: number, { waitingShare, demand, delivered }: JobRates): void {
    const trial = this.#trial;
    if (trial === undefined) return;
    const isOver = waitingShare <= WAITING_SHARE || this.#serving < trial.from ||
      (this.#wanted ?? 0) <= trial.from;
    if (isOver) this.#trial = undefined;
    if (isOver || this.#serving === trial.from) return;
    const possible = Math.min(demand, trial.delivered * this.#serving / trial.from);
    const gained = delivered - trial.delivered;
    if (gained > 0 && gained >= GAIN_SHARE * (possible - trial.delivered)) {
      this.#trial = undefined;
      this.#ceilingMs = MEMORY_MS;
    } else if (++trial.looks >= TRIAL_LOOKS) {
      this.#ceiling = {
        workers: trial.from,
        delivered: trial.delivered,
        untilMs: nowMs + this.#ceilingMs,
      };
      this.#ceilingMs = Math.min(2 * this.#ceilingMs, MEMORY_MAX_MS);
      this.#floor = undefined;
      this.#trial = undefined;
    }
  }

  /** Forgets a ceiling or floor that is old, or that the rates contradict. */
  #forget(nowMs: number, { demand, delivered }: JobRates): void {
    const [ceiling, floor] = [this.#ceiling, this.#floor];
    if (ceiling !== undefined) {
      const moved = delivered > LIMIT_MOVED * ceiling.delivered;
      if (moved || nowMs >= ceiling.untilMs) this.#ceiling = undefined;
    }
    if (floor !== undefined) {
      const fell = demand < DEMAND_FELL * floor.demand;
      if (fell || nowMs >= floor.untilMs) this.#floor = undefined;
    }
  }
}
