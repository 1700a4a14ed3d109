/** @module Figures of nothing, for each figure in the table of metrics. */

import {
  type Described,
  type MetricGroup,
  metricsOf,
  type Reported,
} from "../../actors/dispatcher/protocol_metrics.ts";

/** A report of a group in which each figure is 0. */
export function noReport<G extends MetricGroup>(group: G): Reported<G> {
  const reported = metricsOf(group)
    .filter(([, { origin }]) => origin === "counter" || origin === "level");
  return Object.fromEntries(reported.map(([key]) => [key, 0])) as Reported<G>;
}

/** A description of a group in which each figure is 0, or null where it may be unknown. */
export function noFigures<G extends MetricGroup>(group: G): Described<G> {
  const figures = metricsOf(group).map(([key, { origin }]) => {
    const isKnown = typeof origin === "string"
      ? origin === "counter" || origin === "level"
      : "rate" in origin || "share" in origin;
    return [key, isKnown ? 0 : null];
  });
  return Object.fromEntries(figures) as Described<G>;
}
