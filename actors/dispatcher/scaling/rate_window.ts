/** Rates of counters over a sliding window. */

/** A window has this many slots. Of the reports within one slot, only the last is kept. */
const SLOTS = 20;

/** Above any real count, and far below where sums and quotients overflow. */
const COUNT_MAX = 2 ** 80;

export type Counts = Readonly<Record<string, number>>;

interface Sample {
  readonly atMs: number;
  readonly counts: Counts;
}

/** The newest reports of some counts, each with its time. */
export class RateWindow {
  /** Oldest first. Only the first may be older than the window, so that the window is covered. */
  readonly #samples: Sample[] = [];
  readonly #windowMs: number;
  /** What was counted before the sender's counts began. */
  #base: Counts = {};

  /** @param windowMs Length of the window. It is longer if there was no report for longer. */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  get newest(): Sample | undefined {
    return this.#samples.at(-1);
  }

  /** Adds a report, unless a newer one was added or a number in it is unusable. */
  add(atMs: number, counts: Counts): void {
    const samples = this.#samples;
    if (atMs <= (this.newest?.atMs ?? -Infinity)) return;
    if (!isComputable(atMs) || !areCounts(counts)) return;
    const before = samples.at(-2);
    if (before !== undefined && atMs - before.atMs < this.#windowMs / SLOTS) samples.pop();
    samples.push({ atMs, counts: sumsOf(counts, this.#base) });
    while (samples.length > 2 && samples[1]!.atMs <= atMs - this.#windowMs) samples.shift();
  }

  /**
   * A window that continues this one with another sender, whose counts begin at 0. It is empty if
   * this one is old.
   *
   * @param atMs The time of the other sender's first report, on its clock.
   * @param aheadMs How far that clock is ahead of the one before.
   */
  continued(atMs: number, aheadMs = 0): RateWindow {
    const next = new RateWindow(this.#windowMs);
    const samples = this.#samples.map((one) => ({ ...one, atMs: one.atMs + aheadMs }));
    if (this.isOld(atMs - aheadMs)) return next;
    next.#samples.push(...samples);
    next.#base = this.newest!.counts;
    return next;
  }

  /** Whether no other sender continues this window at that time. */
  isOld(atMs: number): boolean {
    return atMs - (this.#samples[0]?.atMs ?? -Infinity) > 2 * this.#windowMs;
  }

  /** The growth of a count within the window. */
  growth(key: string): number {
    const [oldest] = this.#samples;
    return oldest === undefined ? 0 : this.newest!.counts[key]! - oldest.counts[key]!;
  }

  /** The time between the window's ends, in ms; 0 before the second report. */
  get spanMs(): number {
    const [oldest] = this.#samples;
    return oldest === undefined ? 0 : this.newest!.atMs - oldest.atMs;
  }

  /** The rate of a count; 0 before the second report. */
  perSecond(key: string): number {
    return this.spanMs === 0 ? 0 : 1_000 * this.growth(key) / this.spanMs;
  }
}

/**
 * The growth of a count per growth of another (`per`) in the windows. If the other has not grown
 * there, the totals are divided instead; null if the other is 0.
 */
export function perUnit(windows: readonly RateWindow[], key: string, per: string): number | null {
  const sum = (count: (window: RateWindow) => number) =>
    windows.reduce((total, window) => total + count(window), 0);
  const grown = sum((window) => window.growth(per));
  if (grown > 0) return sum((window) => window.growth(key)) / grown;
  const total = sum(({ newest }) => newest?.counts[per] ?? 0);
  return total <= 0 ? null : sum(({ newest }) => newest?.counts[key] ?? 0) / total;
}

function sumsOf(counts: Counts, base: Counts): Counts {
  const sums: Record<string, number> = {};
  for (const name in counts) sums[name] = counts[name]! + (base[name] ?? 0);
  return sums;
}

function areCounts(counts: Counts): boolean {
  for (const name in counts) if (!isCount(counts[name]!)) return false;
  return true;
}

/** Whether the value can be a count, a size or a duration: not negative, infinite or NaN. */
export function isCount(value: number): boolean {
  return value >= 0 && value <= COUNT_MAX;
}

/** Whether sums and quotients of such numbers are finite. */
export function isComputable(count: number): boolean {
  return Math.abs(count) <= COUNT_MAX;
}
