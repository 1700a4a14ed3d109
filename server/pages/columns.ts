/** The columns that the table of metrics gives to the live page and to `status`. */
import type { MetricUnit } from "../../actors/dispatcher/metric.ts";
import { type MetricGroup, metricsOf } from "../../actors/dispatcher/protocol_metrics.ts";

export interface FigureColumn {
  /** The figure in its group's description. */
  readonly key: string;
  readonly heading: string;
  readonly unit: MetricUnit;
}

/** The columns of a group, in the order of the table. */
export function columnsOf(group: MetricGroup): readonly FigureColumn[] {
  return metricsOf(group).flatMap(([key, { heading, unit }]) =>
    heading === undefined ? [] : [{ key, heading, unit }]
  );
}

/** The columns of each group that the live page shows. */
export const PAGE_COLUMNS = {
  client: columnsOf("client"),
  process: columnsOf("process"),
  sharing: columnsOf("sharing"),
  task: columnsOf("task"),
};
