/** Figures for people: the reported ones, and those derived from them by the table of metrics. */
import type { MetricOrigin } from "../metric.ts";
import {
  counterKeysOf,
  type Described,
  type MetricGroup,
  metricsOf,
  type Reported,
} from "../protocol_metrics.ts";
import { type Counts, isCount, perUnit, type RateWindow } from "../scaling/rate_window.ts";

/** The newest report of a group, and the window of its counters. */
interface Report<G extends MetricGroup> {
  readonly figures: Reported<G>;
  readonly window: RateWindow;
}

/** The counters of a report, for the window of rates. Missing ones count as 0. */
export function countersOf<G extends MetricGroup>(group: G, figures: Reported<G>): Counts {
  const reported = figures as Partial<Counts>;
  const counts: Record<string, number> = {};
  // Not checked here: the window ignores a report with an unusable number.
  for (const key of counterKeysOf(group)) counts[key] = reported[key] ?? 0;
  return counts;
}

/** A report's figures of the group, without unusable numbers and a newer peer's unknown figures. */
export function knownFigures<G extends MetricGroup>(group: G, figures: Reported<G>): Reported<G> {
  const known: Record<string, number> = {};
  for (const [key] of metricsOf(group)) {
    const value = numberAt(figures, key);
    if (value !== undefined) known[key] = value;
  }
  return known as Reported<G>;
}

/** The figures of a group for people, over all reports. */
export function described<G extends MetricGroup>(
  group: G,
  reports: readonly Report<G>[],
): Described<G> {
  const all = reports.map(({ figures }) => figures);
  const windows = reports.map(({ window }) => window);
  const figures: Record<string, number | null> = {};
  for (const [key, { origin }] of metricsOf(group)) {
    figures[key] = valueOf(key, origin, all, windows);
  }
  return figures as Described<G>;
}

function valueOf(
  key: string,
  origin: MetricOrigin,
  reports: readonly object[],
  windows: readonly RateWindow[],
): number | null {
  if (origin === "optional" || origin === "computed") return numberAt(reports[0], key) ?? null;
  if (typeof origin === "string") return sumOf(reports, key);
  if ("rate" in origin || "share" in origin) {
    // One report shows no growth. Without any report nothing has happened, which is known.
    if (windows.length === 0) return 0;
    const spanned = windows.filter(({ spanMs }) => spanMs > 0);
    const values = "rate" in origin
      ? spanned.map((window) => window.perSecond(origin.rate))
      : spanned.flatMap((window) => shareIn(window, origin.share, origin.of) ?? []);
    if (values.length === 0) return null;
    return "rate" in origin ? values.reduce((sum, rate) => sum + rate) : Math.max(...values);
  }
  if ("mean" in origin) return perUnit(windows, origin.mean, origin.per);
  const whole = sumOf(reports, origin.per);
  return whole === 0 ? null : sumOf(reports, origin.quotient) / whole;
}

function shareIn(
  window: RateWindow,
  part: string,
  wholeOf: readonly string[] | "time",
): number | null {
  const whole = wholeOf === "time"
    ? window.spanMs
    : wholeOf.reduce((sum, key) => sum + window.growth(key), 0);
  return whole <= 0 ? null : Math.min(1, Math.max(0, window.growth(part) / whole));
}

function sumOf(reports: readonly object[], key: string): number {
  return reports.reduce((sum, report) => sum + (numberAt(report, key) ?? 0), 0);
}

/** A reported figure. A number that cannot be a count or size counts as missing. */
function numberAt(figures: object | undefined, key: string): number | undefined {
  const value = (figures as Partial<Counts> | undefined)?.[key];
  return value === undefined || !isCount(value) ? undefined : value;
}
