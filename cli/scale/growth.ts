/** The figures of cluster sizes, and how each grows with the cluster. */
import { type Quantity, ratio, type Unit } from "../lib/quantity.ts";
import { type Cell, formatNumber, headingOf, inUnit, type Table } from "../lib/table.ts";
import type { SizeRun } from "./measurements.ts";

/** A row of the table. */
export interface SizeFigure {
  readonly name: string;
  readonly unit: Unit;
  readonly quantityOf: (run: SizeRun) => Quantity;
  /**
   * What counts as linear growth. `grows`: a figure of the whole cluster may grow with the workers.
   * `stays`: a figure of a message, a node or a wait may not grow. Absent: the figure is no cost.
   */
  readonly linear?: "grows" | "stays";
}

/** All figures, in the order of the table. */
export const SIZE_FIGURES = {
  load: figure("dispatcher load", "messages/s", (it) => it.dispatcherMessages, "grows"),
  workerHeartbeat: figure("worker heartbeat", "µs", (it) => it.workerHeartbeat, "stays"),
  clientHeartbeat: figure("client heartbeat", "µs", (it) => it.clientHeartbeat, "stays"),
  split: figure("split", "µs", (it) => it.split, "stays"),
  firstBatch: figure("first batch", "ms", (it) => it.firstBatch, "stays"),
  allBatches: figure("batch at all clients", "ms", (it) => it.allBatches, "stays"),
  recovery: figure("recovery", "ms", (it) => it.recovery, "stays"),
  replay: figure("CPU of the replay", "ms", (it) => it.replay, "grows"),
  heap: figure("heap per node", "KB", (it) => it.heapPerNode, "stays"),
  state: figure("state per worker", "bytes", (it) => it.statePerWorker, "stays"),
  cpu: figure("CPU of all", "s", (it) => it.cpuSeconds, "grows"),
  process: figure("memory of the process", "MB", (it) => it.memory, "grows"),
  events: figure("events per ms of CPU", "1", (it) => it.eventsPerCpuMs),
};

/** A figure that grew by this factor more than linearly counts as worse. Less may be noise. */
export const WORSE_FROM = 1.5;

/** How a figure grew from the smallest cluster to the largest. */
interface Growth {
  readonly figure: SizeFigure;
  readonly factor: Quantity;
  /**
   * The factor. If the figure may grow with the workers, it is divided by their growth. 1 is linear.
   */
  readonly againstLinear?: Quantity;
  readonly isWorse: boolean;
}

/** Returns the growth of a figure; undefined if there is only one size, or no number above 0. */
export function growthOf(figure: SizeFigure, sizes: readonly SizeRun[]): Growth | undefined {
  const [first, last] = [sizes[0], sizes.at(-1)];
  if (first === undefined || last === undefined || first === last) return undefined;
  const factor = ratio(figure.quantityOf(last), figure.quantityOf(first));
  if (!(factor.value > 0 && figure.quantityOf(first).value > 0)) return undefined;
  if (figure.linear === undefined) return { figure, factor, isWorse: false };
  const allowed = figure.linear === "grows" ? workersFactor(sizes) : 1;
  const againstLinear = { ...factor, value: factor.value / allowed };
  return { figure, factor, againstLinear, isWorse: againstLinear.value >= WORSE_FROM };
}

function workersFactor(sizes: readonly SizeRun[]): number {
  return sizes.at(-1)!.workers / sizes[0]!.workers;
}

/** Returns how many times as many workers the largest cluster has as the smallest. */
export function timesText(sizes: readonly SizeRun[]): string {
  const factor = workersFactor(sizes);
  return formatNumber(factor, Number.isInteger(factor) ? 0 : undefined);
}

/** Returns the figures that grew faster than linearly, worst first. */
export function worseThanLinear(sizes: readonly SizeRun[]): Growth[] {
  return Object.values(SIZE_FIGURES)
    .flatMap((figure) => growthOf(figure, sizes) ?? [])
    .filter(({ isWorse }) => isWorse)
    .sort((a, b) => b.againstLinear!.value - a.againstLinear!.value);
}

/** Returns a table with a row for each figure and a column for each size. */
export function sizeTable(sizes: readonly SizeRun[]): Table {
  const hasGrowth = sizes.length > 1;
  const grown = (growth?: Growth): Cell[] =>
    hasGrowth
      ? [growth?.factor, growth?.againstLinear, growth?.isWorse ? "worse than linear" : ""]
      : [];
  const rows = Object.values(SIZE_FIGURES).map((figure): Cell[] => {
    const { name: heading, unit, quantityOf } = figure;
    return [
      headingOf({ heading, unit }),
      ...sizes.map((run) => inUnit(quantityOf(run), unit)),
      ...grown(growthOf(figure, sizes)),
    ];
  });
  return {
    title: "Cluster sizes",
    columns: [
      { heading: "" },
      ...sizes.map(({ workers }) => ({ heading: `${workers} workers` })),
      ...(hasGrowth
        ? [
          { heading: `for ×${timesText(sizes)} workers`, unit: "×" as const },
          { heading: "against linear", unit: "×" as const },
          { heading: "" },
        ]
        : []),
    ],
    rows: [["clients", ...sizes.map(({ clients }) => clients), ...grown()], ...rows],
  };
}

function figure(
  name: string,
  unit: Unit,
  quantityOf: (run: SizeRun) => Quantity,
  linear?: SizeFigure["linear"],
): SizeFigure {
  return { name, unit, quantityOf, ...(linear === undefined ? {} : { linear }) };
}
