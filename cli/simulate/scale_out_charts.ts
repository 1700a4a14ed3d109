/** Draws the plots of the scale-out experiment. */
import {
  drawLines,
  type Figure,
  type LineChart,
  type Marker,
  NEUTRAL_COLOR,
  type Reference,
  seriesColor,
  toPoint,
  toReference,
} from "../lib/line_chart.ts";
import { type Quantity, ratio } from "../lib/quantity.ts";
import type { ScaleOutCurve, ScaleOutExperiment } from "./results.ts";
import { curveName } from "./summary.ts";

/**
 * Ideals that differ by no more than this share are drawn as one line, because an infinitely fast
 * pipeline does not depend on storage.
 */
const SAME_REFERENCE_SHARE = 0.02;

export function scaleOutFigures(experiment: ScaleOutExperiment): Figure[] {
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
  const baseline: Reference = {
    name: "colocated",
    color: NEUTRAL_COLOR,
    y: 1,
    provenance: "measured",
  };
  return [
    chart(
      {
        title: "Throughput",
        description: "Batches per second by number of workers, with colocated and ideal.",
        yLabel: "throughput (batches/s)",
        ySuffix: " batches/s",
        wide: true,
      },
      (_, run) => run.throughput,
      [
        ...withCurveNames(
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
        baseline,
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
      [{ ...baseline, provenance: "modelled" }],
    ),
  ];
}

/** Removes references that nearly equal an earlier one of the same name. */
function mergeEqual(references: Reference[]): Reference[] {
  return references.filter((reference, index) =>
    !references.slice(0, index).some((earlier) =>
      earlier.name === reference.name &&
      Math.abs(earlier.y - reference.y) <= SAME_REFERENCE_SHARE * earlier.y
    )
  );
}

/** If ideals differ, adds to each the name of its curve. */
function withCurveNames(ideals: Reference[], curves: ScaleOutCurve[]): Reference[] {
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
