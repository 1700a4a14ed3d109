/** Summarizes the experiment that kills a worker. */
import { type Quantity, ratio } from "../lib/quantity.ts";
import { formatNumber } from "../lib/table.ts";
import type { WorkerFailureExperiment } from "./results.ts";
import type { Summary } from "./summary.ts";
import { countOf } from "../lib/counted.ts";

export function summarizeWorkerFailure(experiment: WorkerFailureExperiment): Summary {
  const { expected, delivered, lost, repeated } = experiment.elements;
  const before = rateAround(experiment, experiment.killedAtMs, -1);
  const after = rateAround(experiment, experiment.killedAtMs, 1);
  const provenance = experiment.timeline.every((it) => it.provenance === "measured")
    ? "measured"
    : "modelled";
  const rate = (value: number | undefined): Quantity | undefined =>
    value === undefined ? undefined : { value, unit: "batches/s", provenance };
  return {
    title: "A worker killed mid-run",
    finding: workerFailureFinding(experiment, before, after),
    headline: {
      quantity: ratio(lost, expected),
      unit: "%",
      digits: 1,
      meaning: `of an epoch lost when a worker was killed, under ${experiment.processingMode}`,
    },
    table: {
      title: `One epoch under ${experiment.processingMode}`,
      columns: [
        { heading: "killed" },
        { heading: "expected", unit: "elements", digits: 0 },
        { heading: "delivered", unit: "elements", digits: 0 },
        { heading: "lost", unit: "elements", digits: 0 },
        { heading: "repeated", unit: "elements", digits: 0 },
        { heading: "before the kill", unit: "batches/s", digits: 1 },
        { heading: "after the kill", unit: "batches/s", digits: 1 },
      ],
      rows: [[
        experiment.killedWorker,
        expected,
        delivered,
        lost,
        repeated,
        rate(before),
        rate(after),
      ]],
    },
  };
}

function workerFailureFinding(
  experiment: WorkerFailureExperiment,
  before: number | undefined,
  after: number | undefined,
): string {
  const { expected, delivered, lost, repeated } = experiment.elements;
  const seconds = formatNumber(experiment.killedAtMs / 1000, 1);
  const survivors =
    experiment.timeline.filter((it) => it.worker !== experiment.killedWorker).length;
  const rates = before === undefined || after === undefined
    ? ""
    : `: from ${formatNumber(before, 1)} to ${formatNumber(after, 1)} batches/s`;
  const replacement = experiment.restartedAtMs === undefined
    ? ""
    : ` A replacement was registered ${
      formatNumber((experiment.restartedAtMs - experiment.killedAtMs) / 1000, 1)
    } s later.`;
  return `After ${seconds} s ${experiment.killedWorker} was killed, and the other ` +
    `${countOf(survivors, "worker")} continued${rates}.${replacement} Of ${
      formatNumber(expected.value, 0)
    } elements the ` +
    `trainer got ${formatNumber(delivered.value, 0)}; ${
      formatNumber(lost.value, 0)
    } were lost with the splits that ` +
    `the worker held, and ${formatNumber(repeated.value, 0)} came twice.`;
}

/**
 * Returns the mean rate over whole intervals before (`side` -1) or after (1) a time, in batches/s. The
 * last interval, which is partial, does not count.
 */
function rateAround(
  experiment: WorkerFailureExperiment,
  timeMs: number,
  side: -1 | 1,
): number | undefined {
  const intervals = Math.max(0, ...experiment.timeline.map((it) => it.batches.length));
  const whole = intervals - 1;
  const from = side < 0 ? 0 : Math.ceil(timeMs / experiment.intervalMs);
  const to = side < 0 ? Math.min(Math.floor(timeMs / experiment.intervalMs), whole) : whole;
  if (to <= from) return undefined;
  const batches = experiment.timeline
    .flatMap((it) => it.batches.slice(from, to))
    .reduce((sum, value) => sum + value, 0);
  return batches / ((to - from) * experiment.intervalMs / 1000);
}
