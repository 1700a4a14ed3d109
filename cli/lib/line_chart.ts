/**
 * Line charts, drawn to SVG text without a browser. Colours are variables of the page's style
 * sheet, so that one drawing serves light and dark.
 */

import * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import type { Provenance, Quantity } from "./quantity.ts";
import { formatNumber } from "./table.ts";

/** A drawing with its texts. */
export interface Figure {
  title: string;
  /** A description of the plot for readers who cannot see it. */
  description: string;
  /** An `<svg>` element. */
  svg: string;
  legend: LegendEntry[];
  /** Whether it takes the whole width of the page. */
  wide: boolean;
}

/** One line of a legend. */
export interface LegendEntry {
  label: string;
  /** A CSS colour. */
  color: string;
  swatch: "line" | "broad" | "dashed" | "dotted" | "area" | Provenance | `${Provenance} bar`;
}

/** A value at a position on the x axis. */
interface ChartPoint {
  x: number;
  y: number;
  provenance: Provenance;
}

/** A line of values. */
export interface ChartSeries {
  name: string;
  color: string;
  /** Distinguishes overlapping lines: the lower one is drawn broad, the upper one dashed. */
  layer?: "broad" | "dashed";
  points: ChartPoint[];
}

/** A value that holds for every x: a dashed line across the plot. */
export interface Reference {
  name: string;
  color: string;
  y: number;
  provenance: Provenance;
}

/** A labelled position on the x axis. */
export interface Marker {
  x: number;
  text: string;
}

export interface LineChart {
  title: string;
  description: string;
  xLabel: string;
  /** Use `log` if the positions double, and `linear` to show proportions. */
  xScale: "log" | "linear";
  yLabel: string;
  /** The suffix of y in a tooltip. */
  ySuffix: string;
  wide?: boolean;
  series: ChartSeries[];
  references: Reference[];
  markers: Marker[];
}

/** Size of a plot, in px. */
export const WIDTH = 540;
export const HEIGHT = 330;
export const WIDE_WIDTH = 1104;
const MARGIN_LEFT = 50;
const MARGIN_RIGHT = 20;
const MARGIN_BOTTOM = 42;
const FONT_SIZE_PX = "13px";
/** Widths of a digit, height of a line of labels, and the gap between two labels, in px. */
const DIGIT_WIDTH_PX = 8;
const LABEL_HEIGHT_PX = 14;
const LABEL_GAP_PX = 6;
const DOT_RADIUS = 4.5;
/** With more positions than this, the x axis has ticks at round numbers, and dots are small. */
const TICKS_MAX = 16;
const SMALL_DOT_RADIUS = 1;
export const NEUTRAL_COLOR = "var(--muted)";
const SURFACE_COLOR = "var(--surface)";
export const SERIES_COLORS = [1, 2, 3, 4, 5, 6].map((index) => `var(--series-${index})`);
const SYMBOLS: Record<Provenance, Plot.SymbolType> = { measured: "circle", modelled: "diamond" };

/** The colour of series number `index`, from 0; the colours repeat. */
export function seriesColor(index: number): string {
  return SERIES_COLORS[index % SERIES_COLORS.length] ?? NEUTRAL_COLOR;
}

/** Draws lines over one x axis. */
export function drawLines(chart: LineChart): Figure {
  const xs = distinct(chart.series.flatMap((it) => it.points.map((point) => point.x)))
    .sort((a, b) => a - b);
  const xDomain = xDomainOf(chart.xScale, xs[0] ?? 1, xs.at(-1) ?? 1);
  const ys = [...chart.series.flatMap((it) => it.points), ...chart.references].map(({ y }) => y);
  const width = chart.wide ? WIDE_WIDTH : WIDTH;
  const plotWidth = width - MARGIN_LEFT - MARGIN_RIGHT;
  const toPx = pixelsOf(chart.xScale, xDomain, plotWidth);
  const labels = xs.length > TICKS_MAX ? [] : stackLabels(xs, toPx);
  const svg = draw(chart.title, chart.description, {
    width,
    height: HEIGHT,
    marginLeft: MARGIN_LEFT,
    marginRight: MARGIN_RIGHT,
    marginTop: 34,
    marginBottom: MARGIN_BOTTOM + LABEL_HEIGHT_PX * (rowsOf(labels) - 1),
    x: { label: chart.xLabel, type: chart.xScale, domain: xDomain },
    y: { label: chart.yLabel, domain: [0, Math.max(...ys) * 1.06], nice: true, ticks: 6 },
    marks: [
      Plot.gridY({ strokeOpacity: 0.12, ticks: 6 }),
      labels.length === 0
        ? Plot.axisX({ label: chart.xLabel })
        // Not `tickFormat`: on a logarithmic axis it drops labels that are no power of ten.
        : Plot.axisX(xs, { text: labels, label: chart.xLabel }),
      ...chart.references.flatMap((reference) => referenceMarks(reference, xDomain, chart.ySuffix)),
      ...chart.markers.filter(({ x }) => x >= xDomain[0] && x <= xDomain[1])
        .flatMap((marker) => markerMarks(marker, toPx(marker.x) > plotWidth / 2)),
      ...chart.series.flatMap((series) =>
        seriesMarks(series, chart, xs.length > TICKS_MAX ? SMALL_DOT_RADIUS : DOT_RADIUS)
      ),
      Plot.ruleY([0]),
    ],
  });
  const { title, description } = chart;
  return { title, description, svg, legend: lineLegend(chart), wide: chart.wide ?? false };
}

/** Adds space for the marks at either end. */
function xDomainOf(scale: LineChart["xScale"], first: number, last: number): [number, number] {
  if (scale === "log") return [first / 1.12, last * 1.12];
  const margin = Math.max((last - first) * 0.05, 0.5);
  return [first - margin, last + margin];
}

function pixelsOf(
  scale: LineChart["xScale"],
  [first, last]: [number, number],
  width: number,
): (x: number) => number {
  const scaled = scale === "log" ? Math.log : Number;
  return (x) => width * (scaled(x) - scaled(first)) / (scaled(last) - scaled(first));
}

/**
 * The label of each position; positions ascend. A label goes on a lower row if its neighbours leave
 * no space.
 */
function stackLabels(xs: readonly number[], toPx: (x: number) => number): string[] {
  const endsPx: number[] = [];
  return xs.map((x) => {
    const label = formatNumber(x, Number.isInteger(x) ? 0 : undefined);
    const halfPx = (label.length * DIGIT_WIDTH_PX + LABEL_GAP_PX) / 2;
    const free = endsPx.findIndex((endPx) => endPx <= toPx(x) - halfPx);
    const row = free < 0 ? endsPx.length : free;
    endsPx[row] = toPx(x) + halfPx;
    return "\n".repeat(row) + label;
  });
}

function rowsOf(labels: readonly string[]): number {
  return Math.max(1, ...labels.map((label) => label.split("\n").length));
}

const LINE_STYLES = {
  plain: { strokeWidth: 2 },
  dashed: { strokeWidth: 2, strokeDasharray: "7 4" },
  broad: { strokeWidth: 6, strokeOpacity: 0.4 },
};

function seriesMarks(series: ChartSeries, chart: LineChart, radius: number): Plot.Markish[] {
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
      series.layer === "broad" ? radius + 2.5 : radius,
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

/** White space around text that crosses lines. */
export const HALO = { stroke: SURFACE_COLOR, strokeWidth: 5, fill: "currentColor" };

function markerMarks({ x, text }: Marker, inRightHalf: boolean): Plot.Markish[] {
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

/** The legend for measured and modelled values. */
export function provenanceLegend(provenances: Provenance[], mark: "point" | "bar"): LegendEntry[] {
  return provenances.sort().map((provenance) => ({
    label: provenance,
    color: "currentColor",
    swatch: mark === "bar" ? `${provenance} bar` : provenance,
  }));
}

/** A quantity at a position on the x axis. */
export function toPoint(x: number, quantity: Quantity): ChartPoint {
  return { x, y: quantity.value, provenance: quantity.provenance };
}

/** A quantity that holds for every x. */
export function toReference(name: string, color: string, quantity: Quantity): Reference {
  return { name, color, y: quantity.value, provenance: quantity.provenance };
}

/** Distinct values, in the order of first occurrence. */
export function distinct<T>(values: Iterable<T>): T[] {
  return [...new Set(values)];
}

/** The part of a document that labels of a drawing need; Deno has no browser types. */
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

/** Draws a plot and labels it for screen readers. */
export function draw(title: string, description: string, options: Plot.PlotOptions): string {
  const { document } = parseHTML("<!doctype html><html><body></body></html>") as unknown as {
    document: SvgDocument;
  };
  const svg = Plot.plot({
    width: WIDTH,
    marginBottom: MARGIN_BOTTOM,
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
