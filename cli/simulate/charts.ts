/**
 * Draws the plots of the report as SVG text, without a browser. Colours are variables of the page's
 * style sheet, so that a drawing fits light and dark pages.
 */

import * as Plot from "@observablehq/plot";
import {
  distinct,
  draw,
  drawLines,
  type Figure,
  HALO,
  HEIGHT,
  type LegendEntry,
  NEUTRAL_COLOR,
  provenanceLegend,
  SERIES_COLORS,
  seriesColor,
  toPoint,
  WIDE_WIDTH,
} from "../lib/line_chart.ts";
import { type Provenance, type Quantity, ratio } from "../lib/quantity.ts";
import { formatNumber } from "../lib/table.ts";
import {
  type CoordinatedReadsExperiment,
  type Experiment,
  type ReadsRun,
  SHARING_MODES,
  type SharingExperiment,
  type SharingMode,
  type SharingRun,
  type WorkerFailureExperiment,
} from "./results.ts";
import { scaleOutFigures } from "./scale_out_charts.ts";
import { sharingBaseline } from "./summary.ts";
import { mean } from "../lib/statistics.ts";

const DANGER_COLOR = "var(--danger)";

/** Colours that cannot be confused with {@linkcode DANGER_COLOR}. */
const SURVIVOR_COLORS = SERIES_COLORS.filter((_, index) => index !== 1);

const HISTOGRAM_BINS = 40;

/** Returns the plots of an experiment, in reading order. */
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

/** Returns the runs of experiment (c) with their names. */
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
      // Each label is outside the interval between the events, so labels never overlap.
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

const MODELLED_FILL_OPACITY = 0.3;

/** Fills the bars of measured numbers; outlines those of modelled numbers over a faint fill. */
function barStyle(provenance: Provenance, series: string): Plot.MarkOptions {
  return provenance === "measured" ? { fill: series, className: provenance } : {
    fill: series,
    fillOpacity: MODELLED_FILL_OPACITY,
    stroke: series,
    strokeDasharray: "4 2",
    className: provenance,
  };
}
