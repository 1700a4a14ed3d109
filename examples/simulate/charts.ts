/**
 * The plots of the report, drawn to SVG text without a browser. Colours are variables of the page's style sheet, so that
 * one drawing serves light and dark.
 *
 * @module
 */

import * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import {
  type CoordinatedReadsExperiment,
  type Experiment,
  type Provenance,
  type Quantity,
  ratio,
  type ReadsRun,
  type ScaleOutCurve,
  type ScaleOutExperiment,
  SHARING_MODES,
  type SharingExperiment,
  type SharingMode,
  type SharingRun,
  type WorkerFailureExperiment,
} from "./results.ts";
import { curveName, mean, sharingBaseline } from "./summary.ts";
import { formatNumber } from "./table.ts";

/** A drawing and what a reader needs beside it. */
export interface Figure {
  title: string;
  /** What is plotted, for those who do not see it. */
  description: string;
  /** An `<svg>` element. */
  svg: string;
  legend: LegendEntry[];
  /** Whether it wants the whole width of the page. */
  wide: boolean;
}

/** One line of a legend. */
export interface LegendEntry {
  label: string;
  /** A CSS colour. */
  color: string;
  swatch: "line" | "broad" | "dashed" | "dotted" | "area" | Provenance | `${Provenance} bar`;
}

interface ChartPoint {
  x: number;
  y: number;
  provenance: Provenance;
}

interface ChartSeries {
  name: string;
  color: string;
  /** How it is told from one that lies on it: the lower one is drawn broad, the upper one dashed. */
  layer?: "broad" | "dashed";
  points: ChartPoint[];
}

/** A value that holds for every x: a dashed line across the plot. */
interface Reference {
  name: string;
  color: string;
  y: number;
  provenance: Provenance;
}

/** A place on the x axis worth a word. */
interface Marker {
  x: number;
  text: string;
}

interface LineChart {
  title: string;
  description: string;
  xLabel: string;
  /** Logarithmic where doubling matters, linear where proportion does. */
  xScale: "log" | "linear";
  yLabel: string;
  /** Behind a value of y in a tooltip. */
  ySuffix: string;
  wide?: boolean;
  series: ChartSeries[];
  references: Reference[];
  markers: Marker[];
}

const WIDTH = 540;
const HEIGHT = 330;
const WIDE_WIDTH = 1104;
const FONT_SIZE_PX = "13px";
const DOT_RADIUS = 4.5;
const NEUTRAL_COLOR = "var(--muted)";
const SURFACE_COLOR = "var(--surface)";
const DANGER_COLOR = "var(--danger)";
const SERIES_COLORS = [1, 2, 3, 4, 5, 6].map((index) => `var(--series-${index})`);
/** Those that are not mistaken for the colour of danger. */
const SURVIVOR_COLORS = SERIES_COLORS.filter((_, index) => index !== 1);
const SYMBOLS: Record<Provenance, Plot.SymbolType> = { measured: "circle", modelled: "diamond" };
/** Two ideals closer than this are one line: an infinitely fast pipeline does not know where its files are. */
const SAME_REFERENCE_SHARE = 0.02;
const HISTOGRAM_BINS = 40;

/** The plots of an experiment, in the order in which they are read. */
export function figuresOf(experiment: Experiment): Figure[] {
  switch (experiment.kind) {
    case "scale_out":
      return scaleOutFigures(experiment);
    case "sharing":
      return sharingFigures(experiment);
    case "coordinated_reads":
      return [wasteFigure(experiment), stepTimeFigure(experiment)];
    case "worker_failure":
      return [timelineFigure(experiment)];
  }
}

/** The colour of series number `index`, from 0; after the last one they start over. */
function seriesColor(index: number): string {
  return SERIES_COLORS[index % SERIES_COLORS.length] ?? NEUTRAL_COLOR;
}

function scaleOutFigures(experiment: ScaleOutExperiment): Figure[] {
  const markers = experiment.curves.flatMap((curve): Marker[] =>
    curve.coresEndAtWorkers === undefined ? [] : [{
      x: curve.coresEndAtWorkers,
      text: `${experiment.hostCores} cores in full use, ${curveName(curve)}`,
    }]
  ).slice(0, 1);
  const chart = (
    words: Pick<LineChart, "title" | "description" | "yLabel" | "ySuffix" | "wide">,
    y: (curve: ScaleOutCurve, run: ScaleOutCurve["colocated"]) => Quantity,
    references: Reference[],
  ) =>
    drawLines({
      ...words,
      xLabel: "workers",
      xScale: "log",
      markers,
      references: mergeEqual(references),
      series: experiment.curves.map((curve, index) => ({
        name: curveName(curve),
        color: seriesColor(index),
        points: curve.runs.map((run) => toPoint(run.workers, y(curve, run))),
      })),
    });
  const colocated = (y: (curve: ScaleOutCurve) => Quantity) =>
    experiment.curves.map((curve, index) =>
      toReference(`colocated, ${curveName(curve)}`, seriesColor(index), y(curve))
    );
  const one: Reference = {
    name: "colocated",
    color: NEUTRAL_COLOR,
    y: 1,
    provenance: "measured",
  };
  return [
    chart(
      {
        title: "Throughput",
        description: "Batches per second by number of workers, beside colocated and ideal.",
        yLabel: "throughput (batches/s)",
        ySuffix: " batches/s",
        wide: true,
      },
      (_, run) => run.throughput,
      [
        ...nameApart(
          mergeEqual(
            experiment.curves.map((curve) => toReference("ideal", NEUTRAL_COLOR, curve.ideal)),
          ),
          experiment.curves,
        ),
        ...colocated((curve) => curve.colocated.throughput),
      ],
    ),
    chart(
      {
        title: "Job-time speedup",
        description: "Throughput by number of workers, as a multiple of the colocated baseline's.",
        yLabel: "speedup over colocated (×)",
        ySuffix: "×",
      },
      (curve, run) => ratio(run.throughput, curve.colocated.throughput),
      [
        one,
        ...experiment.curves.map((curve, index) =>
          toReference(
            `ideal, ${curveName(curve)}`,
            seriesColor(index),
            ratio(curve.ideal, curve.colocated.throughput),
          )
        ),
      ],
    ),
    chart(
      {
        title: "Cost saving (equation 1)",
        description: "Cost of a colocated batch over the cost of a batch by number of workers.",
        yLabel: "saving over colocated (×)",
        ySuffix: "×",
      },
      (curve, run) => ratio(curve.colocated.costPerThousandBatches, run.costPerThousandBatches),
      [{ ...one, provenance: "modelled" }],
    ),
  ];
}

function sharingFigures(experiment: SharingExperiment): Figure[] {
  const baseline = sharingBaseline(experiment);
  if (baseline === undefined) return [];
  const modes = (["C", "B", "A"] as SharingMode[])
    .filter((mode) => experiment.runs.some((run) => run.mode === mode));
  const chart = (title: string, quantity: (run: SharingRun) => Quantity) =>
    drawLines({
      title,
      description:
        `${title} by number of trainers in each mode, as a multiple of one trainer's with a deployment of its own.`,
      xLabel: "trainers",
      xScale: "linear",
      yLabel: "relative to one trainer (×)",
      ySuffix: "×",
      references: [],
      markers: [],
      series: modes.map((mode) => ({
        name: `${mode}: ${SHARING_MODES[mode]}`,
        color: seriesColor(["A", "B", "C"].indexOf(mode)),
        ...(mode === "A" ? {} : { layer: mode === "B" ? "dashed" as const : "broad" as const }),
        points: experiment.runs.filter((run) => run.mode === mode)
          .map((run) => toPoint(run.trainers, ratio(quantity(run), quantity(baseline)))),
      })),
    });
  return [
    chart("Batches produced", (run) => run.batchesProduced),
    chart("Bytes read from storage", (run) => run.bytesRead),
    chart("CPU time of preprocessing", (run) => run.cpuTime),
    chart("Job time", (run) => run.jobTime),
  ];
}

/** Runs of experiment (c) with their names and colours. */
function readsRuns(experiment: CoordinatedReadsExperiment): { name: string; run: ReadsRun }[] {
  return [
    { name: "uncoordinated", run: experiment.uncoordinated },
    { name: "coordinated", run: experiment.coordinated },
  ];
}

const READS_COLORS = { domain: ["uncoordinated", "coordinated"], range: SERIES_COLORS.slice(1, 3) };

function wasteFigure(experiment: CoordinatedReadsExperiment): Figure {
  const bars = readsRuns(experiment).flatMap(({ name, run }) => [
    { reads: name, measure: "padding", ...run.paddingShare },
    { reads: name, measure: "waiting for the slowest", ...run.idleShare },
  ]);
  const title = "Accelerator time without use";
  const description =
    "Share of padding among tokens and of time spent waiting for the slowest trainer, with and without coordinated reads.";
  const percent = (bar: { value: number }) => bar.value * 100;
  const common = { x: percent, y: "reads", fy: "measure" };
  const svg = draw(title, description, {
    height: HEIGHT,
    marginLeft: 108,
    marginRight: 56,
    marginTop: 34,
    x: { label: "share (%)", domain: [0, Math.max(5, ...bars.map(percent))], nice: true, ticks: 5 },
    y: { label: null, domain: READS_COLORS.domain },
    fy: { label: null, axis: null, padding: 0.3 },
    color: READS_COLORS,
    marks: [
      Plot.gridX({ strokeOpacity: 0.12, ticks: 5 }),
      ...(["measured", "modelled"] as const).map((provenance) =>
        Plot.barX(bars.filter((bar) => bar.provenance === provenance), {
          ...common,
          ...barStyle(provenance, "reads"),
        })
      ),
      Plot.text(bars, {
        ...common,
        text: (bar) => `${formatNumber(percent(bar), 1)} %`,
        dx: 6,
        textAnchor: "start",
      }),
      Plot.text([...new Set(bars.map((bar) => bar.measure))], {
        fy: (measure: string) => measure,
        text: (measure: string) => measure,
        frameAnchor: "top-left",
        dy: -16,
        fontWeight: 600,
      }),
      Plot.ruleX([0]),
    ],
  });
  const provenances = distinct(bars.map((bar) => bar.provenance));
  return { title, description, svg, legend: provenanceLegend(provenances, "bar"), wide: false };
}

function stepTimeFigure(experiment: CoordinatedReadsExperiment): Figure {
  const runs = readsRuns(experiment);
  const steps = runs.flatMap(({ name, run }) =>
    run.stepTimesMs.map((ms) => ({ reads: name, ms, provenance: run.stepTimesProvenance }))
  );
  const means = runs.filter(({ run }) => run.stepTimesMs.length > 0)
    .map(({ name, run }) => ({ reads: name, ms: mean(run.stepTimesMs) }));
  const middleMs =
    (Math.min(...steps.map(({ ms }) => ms)) + Math.max(...steps.map(({ ms }) => ms))) /
    2;
  const title = "Step time";
  const description =
    "Distribution of the time of synchronous steps with and without coordinated reads, with its mean.";
  const bin = { y: "proportion-facet" } as const;
  const svg = draw(title, description, {
    height: HEIGHT,
    marginLeft: 50,
    marginRight: 20,
    marginTop: 46,
    x: { label: "step time (ms)", nice: true },
    y: { label: "share of steps (%)", percent: true, ticks: 4, nice: true },
    fy: { label: null, axis: null, domain: READS_COLORS.domain, padding: 0.25 },
    color: READS_COLORS,
    marks: [
      Plot.gridY({ strokeOpacity: 0.12, ticks: 4 }),
      ...(["measured", "modelled"] as const).map((provenance) =>
        Plot.rectY(
          steps.filter((step) => step.provenance === provenance),
          Plot.binX<Plot.RectYOptions>(bin, {
            x: { value: "ms", thresholds: HISTOGRAM_BINS },
            fy: "reads",
            inset: 0.5,
            ...barStyle(provenance, "reads"),
          }),
        )
      ),
      Plot.ruleX(means, { x: "ms", fy: "reads", stroke: "currentColor", strokeDasharray: "3 3" }),
      ...[true, false].map((isRight) =>
        Plot.text(means.filter(({ ms }) => ms > middleMs === isRight), {
          x: "ms",
          fy: "reads",
          text: ({ ms }) => `mean ${formatNumber(ms, 1)} ms`,
          frameAnchor: "top",
          textAnchor: isRight ? "end" : "start",
          dx: isRight ? -5 : 5,
          dy: 4,
          ...HALO,
        })
      ),
      Plot.text(READS_COLORS.domain, {
        fy: (name: string) => name,
        text: (name: string) => name,
        frameAnchor: "top-left",
        dy: -16,
        fontWeight: 600,
      }),
      Plot.ruleY([0]),
    ],
  });
  const provenances = distinct(steps.map((step) => step.provenance));
  return { title, description, svg, legend: provenanceLegend(provenances, "bar"), wide: false };
}

function timelineFigure(experiment: WorkerFailureExperiment): Figure {
  const { intervalMs, killedWorker, timeline } = experiment;
  const survivors = timeline.filter(({ worker }) => worker !== killedWorker);
  const workers = timeline.map((it) => ({
    worker: it.worker,
    provenance: it.provenance,
    color: it.worker === killedWorker
      ? DANGER_COLOR
      : SURVIVOR_COLORS[survivors.indexOf(it) % SURVIVOR_COLORS.length] ?? NEUTRAL_COLOR,
  }));
  const bars = timeline.flatMap(({ worker, batches, provenance }) =>
    batches.map((count, index) => ({
      worker,
      provenance,
      count,
      x1: index * intervalMs / 1000,
      x2: (index + 1) * intervalMs / 1000,
    }))
  );
  const events = [{ x: experiment.killedAtMs / 1000, text: `${killedWorker} killed` }];
  if (experiment.restartedAtMs !== undefined) {
    events.push({ x: experiment.restartedAtMs / 1000, text: "replacement registered" });
  }
  const title = "Batches delivered";
  const description =
    `Batches that the trainer got in every ${intervalMs} ms of the run, by worker, with the moment ${killedWorker} was killed.`;
  const svg = draw(title, description, {
    width: WIDE_WIDTH,
    height: HEIGHT,
    marginLeft: 50,
    marginTop: 34,
    x: { label: "time since the run began (s)" },
    y: { label: `batches per ${intervalMs} ms`, nice: true, ticks: 5 },
    color: { domain: workers.map((it) => it.worker), range: workers.map((it) => it.color) },
    marks: [
      Plot.gridY({ strokeOpacity: 0.12, ticks: 5 }),
      Plot.rectY(
        bars,
        Plot.stackY({
          x1: "x1",
          x2: "x2",
          y: "count",
          fill: "worker",
          inset: 0.5,
          fillOpacity: (bar) => bar.provenance === "measured" ? 1 : MODELLED_FILL_OPACITY,
          title: (bar) => `${bar.worker}: ${bar.count} batches at ${formatNumber(bar.x1, 1)} s`,
        }),
      ),
      Plot.ruleX(events, { x: "x", stroke: "currentColor", strokeWidth: 1.5 }),
      // On either side of what lies between the two, so that they never run into each other.
      ...events.map((event, index) =>
        Plot.text([event], {
          x: "x",
          text: "text",
          frameAnchor: "top",
          textAnchor: index < events.length - 1 ? "end" : "start",
          dx: index < events.length - 1 ? -6 : 6,
          dy: -16,
          fontWeight: 600,
        })
      ),
      Plot.ruleY([0]),
    ],
  });
  const legend = workers.map(({ worker, color }): LegendEntry => ({
    label: worker,
    color,
    swatch: "area",
  }));
  const provenances = distinct(workers.map((it) => it.provenance));
  legend.push(...provenanceLegend(provenances, "bar"));
  return { title, description, svg, legend, wide: true };
}

function drawLines(chart: LineChart): Figure {
  const xs = distinct(chart.series.flatMap((it) => it.points.map((point) => point.x)))
    .sort((a, b) => a - b);
  const xDomain = xDomainOf(chart.xScale, xs[0] ?? 1, xs.at(-1) ?? 1);
  const ys = [...chart.series.flatMap((it) => it.points), ...chart.references].map(({ y }) => y);
  const svg = draw(chart.title, chart.description, {
    width: chart.wide ? WIDE_WIDTH : WIDTH,
    height: HEIGHT,
    marginLeft: 50,
    marginRight: 20,
    marginTop: 34,
    x: { label: chart.xLabel, type: chart.xScale, domain: xDomain },
    y: { label: chart.yLabel, domain: [0, Math.max(...ys) * 1.06], nice: true, ticks: 6 },
    marks: [
      Plot.gridY({ strokeOpacity: 0.12, ticks: 6 }),
      Plot.axisX(xs, { tickFormat: (x: number) => String(x), label: chart.xLabel }),
      ...chart.references.flatMap((reference) => referenceMarks(reference, xDomain, chart.ySuffix)),
      ...chart.markers.filter(({ x }) => x >= xDomain[0] && x <= xDomain[1])
        .flatMap((marker) => markerMarks(marker, xDomain)),
      ...chart.series.flatMap((series) => seriesMarks(series, chart)),
      Plot.ruleY([0]),
    ],
  });
  const { title, description } = chart;
  return { title, description, svg, legend: lineLegend(chart), wide: chart.wide ?? false };
}

/** Room for the marks at either end. */
function xDomainOf(scale: LineChart["xScale"], first: number, last: number): [number, number] {
  if (scale === "log") return [first / 1.12, last * 1.12];
  const room = Math.max((last - first) * 0.05, 0.5);
  return [first - room, last + room];
}

const LINE_STYLES = {
  plain: { strokeWidth: 2 },
  dashed: { strokeWidth: 2, strokeDasharray: "7 4" },
  broad: { strokeWidth: 6, strokeOpacity: 0.4 },
};

function seriesMarks(series: ChartSeries, chart: LineChart): Plot.Markish[] {
  const { color, name, points } = series;
  return [
    Plot.line(points, {
      x: "x",
      y: "y",
      stroke: color,
      ...LINE_STYLES[series.layer ?? "plain"],
    }),
    ...dots(
      points,
      color,
      series.layer === "broad" ? DOT_RADIUS + 2.5 : DOT_RADIUS,
      ({ x, y, provenance }) =>
        `${name}, ${x} ${chart.xLabel}: ${formatNumber(y)}${chart.ySuffix} (${provenance})`,
    ),
  ];
}

/** The marks of values: a filled disc for a measured one, a hollow diamond for a modelled one. */
function dots(
  points: ChartPoint[],
  color: string,
  radius: number,
  title: (point: ChartPoint) => string,
): Plot.Markish[] {
  return (["measured", "modelled"] as const).map((provenance) =>
    Plot.dot(points.filter((point) => point.provenance === provenance), {
      x: "x",
      y: "y",
      title,
      symbol: SYMBOLS[provenance],
      r: radius,
      stroke: color,
      strokeWidth: 2,
      fill: provenance === "measured" ? color : SURFACE_COLOR,
      className: provenance,
    })
  );
}

function referenceMarks(
  reference: Reference,
  [xFirst, xLast]: [number, number],
  suffix: string,
): Plot.Markish[] {
  const { color, name, y, provenance } = reference;
  return [
    Plot.line([[xFirst, y], [xLast, y]], {
      stroke: color,
      strokeWidth: 1.5,
      strokeDasharray: "3 4",
    }),
    ...dots(
      [{ x: xLast, y, provenance }],
      color,
      DOT_RADIUS,
      () => `${name}: ${formatNumber(y)}${suffix} (${provenance})`,
    ),
  ];
}

/** White space around letters that stand on lines. */
const HALO = { stroke: SURFACE_COLOR, strokeWidth: 5, fill: "currentColor" };

function markerMarks({ x, text }: Marker, [xFirst, xLast]: [number, number]): Plot.Markish[] {
  const inRightHalf = Math.log(x / xFirst) > Math.log(xLast / xFirst) / 2;
  return [
    Plot.ruleX([x], { stroke: "currentColor", strokeOpacity: 0.45 }),
    Plot.text([text], {
      x: [x],
      frameAnchor: "top",
      textAnchor: inRightHalf ? "end" : "start",
      dx: inRightHalf ? -6 : 6,
      dy: -4,
      ...HALO,
    }),
  ];
}

function lineLegend(chart: LineChart): LegendEntry[] {
  const entries = [...chart.series].sort((a, b) => a.name < b.name ? -1 : 1)
    .map(({ name, color, layer }): LegendEntry => ({
      label: name,
      color,
      swatch: layer ?? "line",
    }));
  entries.push(
    ...chart.references.map(({ name, color }): LegendEntry => ({
      label: name,
      color,
      swatch: "dotted",
    })),
  );
  const provenances = [...chart.series.flatMap((it) => it.points), ...chart.references]
    .map((it) => it.provenance);
  return [...entries, ...provenanceLegend(distinct(provenances), "point")];
}

function provenanceLegend(provenances: Provenance[], mark: "point" | "bar"): LegendEntry[] {
  return provenances.sort().map((provenance) => ({
    label: provenance,
    color: "currentColor",
    swatch: mark === "bar" ? `${provenance} bar` : provenance,
  }));
}

const MODELLED_FILL_OPACITY = 0.3;

/** Bars of measured numbers are filled, those of modelled ones outlined over a faint fill. */
function barStyle(provenance: Provenance, series: string): Plot.MarkOptions {
  return provenance === "measured" ? { fill: series, className: provenance } : {
    fill: series,
    fillOpacity: MODELLED_FILL_OPACITY,
    stroke: series,
    strokeDasharray: "4 2",
    className: provenance,
  };
}

function toPoint(x: number, quantity: Quantity): ChartPoint {
  return { x, y: quantity.value, provenance: quantity.provenance };
}

function toReference(name: string, color: string, quantity: Quantity): Reference {
  return { name, color, y: quantity.value, provenance: quantity.provenance };
}

/** Drops references of one name that say the same. */
function mergeEqual(references: Reference[]): Reference[] {
  return references.filter((reference, index) =>
    !references.slice(0, index).some((earlier) =>
      earlier.name === reference.name &&
      Math.abs(earlier.y - reference.y) <= SAME_REFERENCE_SHARE * earlier.y
    )
  );
}

/** Ideals that differ are told apart by their curves. */
function nameApart(ideals: Reference[], curves: ScaleOutCurve[]): Reference[] {
  if (ideals.length === 1) return ideals;
  return ideals.map((ideal) => {
    const index = curves.findIndex((curve) => curve.ideal.value === ideal.y);
    return {
      ...ideal,
      name: `ideal, ${curveName(curves[index]!)}`,
      color: seriesColor(index),
    };
  });
}

function distinct<T>(values: Iterable<T>): T[] {
  return [...new Set(values)];
}

/** As much of a document as naming a drawing takes; the types of the browser are not Deno's. */
interface SvgElement {
  textContent: string;
}

interface SvgDocument {
  createElementNS(namespace: string, name: string): SvgElement;
}

interface SvgDrawing {
  readonly outerHTML: string;
  setAttribute(name: string, value: string): void;
  prepend(...children: SvgElement[]): void;
}

/** Draws a plot and names it for those who do not see it. */
function draw(title: string, description: string, options: Plot.PlotOptions): string {
  const { document } = parseHTML("<!doctype html><html><body></body></html>") as unknown as {
    document: SvgDocument;
  };
  const svg = Plot.plot({
    width: WIDTH,
    marginBottom: 42,
    style: { fontSize: FONT_SIZE_PX, background: "none", overflow: "visible" },
    ...options,
    document: document as unknown as NonNullable<Plot.PlotOptions["document"]>,
  }) as unknown as SvgDrawing;
  const element = (name: string, text: string) => {
    const child = document.createElementNS("http://www.w3.org/2000/svg", name);
    child.textContent = text;
    return child;
  };
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${title}. ${description}`);
  svg.prepend(element("title", title), element("desc", description));
  return svg.outerHTML;
}
