/** How a figure is declared. `protocol_metrics.ts` has the table. */
/** The unit of a figure in heartbeats and descriptions; in `/metrics` all times are in seconds. */
export type MetricUnit =
  | "bytes"
  | "bytes/s"
  | "cores"
  | "elements"
  | "elements/s"
  | "flag"
  | "GB·hours"
  | "hours"
  | "ms"
  | "number"
  | "requests"
  | "seconds"
  | "share"
  | "splits"
  | "threads"
  | "workers";

/**
 * Where a figure comes from. Every heartbeat reports a `counter`, which never decreases, and a
 * `level`; some heartbeats report an `optional` level. The dispatcher computes a `computed` figure.
 * A worker's counters and levels are sums over its tasks. The other origins derive a figure from
 * counters of the same group:
 */
export type MetricOrigin =
  | "counter"
  | "level"
  | "optional"
  | "computed"
  /** The recent growth per second; null before the second report. Over a worker's tasks: the sum. */
  | { readonly rate: string }
  /**
   * The recent growth, as a share of time or of counters; null before the second report. Over a
   * worker's tasks: the largest.
   */
  | { readonly share: string; readonly of: readonly string[] | "time" }
  /** The recent growth per unit of another counter; null before its first unit. */
  | { readonly mean: string; readonly per: string }
  /** One counter divided by another; null while that is 0. */
  | { readonly quotient: string; readonly per: string };

/** The origins of figures that are never null after the first heartbeat. */
export type KnownOrigin = "counter" | "level";

/**
 * The declaration of a figure: its origin, its name in `/metrics` (null: it is not there; names of
 * counters end in `_total`), its unit, a sentence about it, and the heading of its column on the
 * live page and in `status`, if it has one.
 */
export type MetricRow = readonly [
  origin: MetricOrigin,
  name: string | null,
  unit: MetricUnit,
  help: string,
  heading?: string,
];

export interface Metric {
  readonly origin: MetricOrigin;
  readonly name: string | null;
  readonly unit: MetricUnit;
  readonly help: string;
  readonly heading: string | undefined;
}

export function metricOf([origin, name, unit, help, heading]: MetricRow): Metric {
  return { origin, name, unit, help, heading };
}
