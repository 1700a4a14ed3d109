/**
 * Summarizes each experiment: its name, one to three sentences computed from its numbers, and a
 * table. The terminal and the report show the same.
 */

import { countOf } from "../lib/counted.ts";
import { type Quantity, ratio } from "../lib/quantity.ts";
import { mean, quantile } from "../lib/statistics.ts";
import { type Cell, type DisplayUnit, formatNumber, type Table } from "../lib/table.ts";
import {
  type CoordinatedReadsExperiment,
  type Experiment,
  type ReadsRun,
  type ScaleOutCurve,
  type ScaleOutExperiment,
  type ScaleOutRun,
  SHARING_MODES,
  type SharingExperiment,
  type SharingMode,
  type SharingRun,
} from "./results.ts";
import { summarizeWorkerFailure } from "./worker_failure_summary.ts";

/** An experiment as sentences and a table. */
export interface Summary {
  title: string;
  /** The finding, in plain words. */
  finding: string;
  /** The one number to remember; absent if the runs do not give it. */
  headline?: Headline;
  table: Table;
}

/** A number and its meaning. */
export interface Headline {
  quantity: Quantity;
  unit: DisplayUnit;
  digits: number;
  meaning: string;
}

export function summarize(experiment: Experiment): Summary {
  switch (experiment.kind) {
    case "scale_out":
      return summarizeScaleOut(experiment);
    case "sharing":
      return summarizeSharing(experiment);
    case "coordinated_reads":
      return summarizeCoordinatedReads(experiment);
    case "worker_failure":
      return summarizeWorkerFailure(experiment);
  }
}

/** Returns the run of a curve with the highest throughput; undefined if no worker ran. */
function fastestRun(curve: ScaleOutCurve): ScaleOutRun | undefined {
  return curve.runs.reduce<ScaleOutRun | undefined>(
    (best, run) => best && best.throughput.value >= run.throughput.value ? best : run,
    undefined,
  );
}

export function curveName(curve: ScaleOutCurve): string {
  return curve.storageLatencyMs === 0
    ? "local files"
    : `storage latency ${formatNumber(curve.storageLatencyMs, 0)} ms`;
}

/** Returns the run that others are compared with: one trainer with its own deployment (Fig. 10). */
export function sharingBaseline(experiment: SharingExperiment): SharingRun | undefined {
  const ofOneTrainer = experiment.runs.filter((run) => run.trainers === 1);
  return ofOneTrainer.find((run) => run.mode === "C") ?? ofOneTrainer[0];
}

function summarizeScaleOut(experiment: ScaleOutExperiment): Summary {
  const rows: Cell[][] = experiment.curves.flatMap((curve) => {
    const row = (name: string | number, run: ScaleOutRun): Cell[] => [
      curveName(curve),
      String(name),
      run.throughput,
      ratio(run.throughput, curve.colocated.throughput),
      run.stallShare,
      run.cpu,
      run.costPerThousandBatches,
      ratio(curve.colocated.costPerThousandBatches, run.costPerThousandBatches),
    ];
    return [
      row("colocated", curve.colocated),
      ...curve.runs.map((run) => row(countOf(run.workers, "worker"), run)),
      [
        curveName(curve),
        "ideal",
        curve.ideal,
        ratio(curve.ideal, curve.colocated.throughput),
        undefined,
        undefined,
        undefined,
        undefined,
      ],
    ];
  });
  return {
    title: "Scale-out: preprocessing moved to workers",
    finding: experiment.curves.map((curve) => scaleOutFinding(experiment, curve)).join(" "),
    ...scaleOutHeadline(experiment),
    table: {
      title: "Throughput and cost by number of workers",
      columns: [
        { heading: "storage" },
        { heading: "preprocessing" },
        { heading: "throughput", unit: "batches/s", digits: 2 },
        { heading: "speedup", unit: "×", digits: 2 },
        { heading: "waiting for data", unit: "%", digits: 0 },
        { heading: "CPU in use", unit: "cores", digits: 2 },
        { heading: "cost of 1,000 batches", unit: "USD", digits: 4 },
        { heading: "cost saving", unit: "×", digits: 2 },
      ],
      rows,
    },
  };
}

function scaleOutHeadline(experiment: ScaleOutExperiment): { headline?: Headline } {
  const best = experiment.curves
    .flatMap((curve) => {
      const run = fastestRun(curve);
      return run === undefined
        ? []
        : [{ curve, run, speedup: ratio(run.throughput, curve.colocated.throughput) }];
    })
    .reduce<{ curve: ScaleOutCurve; run: ScaleOutRun; speedup: Quantity } | undefined>(
      (a, b) => a && a.speedup.value >= b.speedup.value ? a : b,
      undefined,
    );
  if (best === undefined) return {};
  const meaning = `throughput of colocated preprocessing, with ${
    countOf(best.run.workers, "worker")
  } and ${curveName(best.curve)}`;
  return { headline: { quantity: best.speedup, unit: "×", digits: 1, meaning } };
}

function scaleOutFinding(experiment: ScaleOutExperiment, curve: ScaleOutCurve): string {
  const { colocated, ideal } = curve;
  const condition = curve.storageLatencyMs === 0 ? "With local files" : `With ${curveName(curve)}`;
  const share = ratio(colocated.throughput, ideal);
  const start = `${condition}, preprocessing within the trainer reaches ` +
    `${figure(colocated.throughput)} batches/s, ${percent(share)} of the ${figure(ideal)} that ` +
    `an infinitely fast pipeline allows`;
  const best = fastestRun(curve);
  if (best === undefined) return `${start}.`;
  const speedup = ratio(best.throughput, colocated.throughput);
  const saving = ratio(colocated.costPerThousandBatches, best.costPerThousandBatches);
  const cost = saving.value >= 1
    ? `a batch then costs ${figure(saving)} times less`
    : `a batch then costs ${
      figure(ratio(best.costPerThousandBatches, colocated.costPerThousandBatches))
    } times as much`;
  const reach = `${start}; ${countOf(best.workers, "worker")} ${
    best.workers === 1 ? "reaches" : "reach"
  } ${figure(best.throughput)}${
    best.throughput.provenance === "modelled" ? " by the model" : ""
  } (${figure(speedup)}×, ${percent(ratio(best.throughput, ideal))} of the ideal), and ${cost}.`;
  if (curve.coresEndAtWorkers === undefined) return reach;
  return `${reach} From ${countOf(curve.coresEndAtWorkers, "worker")} on, this host's ` +
    `${countOf(experiment.hostCores, "core")} bound the curve, not the number of workers.`;
}

function summarizeSharing(experiment: SharingExperiment): Summary {
  const baseline = sharingBaseline(experiment);
  const rows = experiment.runs.map((run): Cell[] => [
    run.mode,
    run.trainers,
    run.batchesProduced,
    run.bytesRead,
    run.cpuTime,
    baseline && ratio(run.cpuTime, baseline.cpuTime),
    run.jobTime,
    baseline && ratio(run.jobTime, baseline.jobTime),
    run.batchesSkipped,
  ]);
  return {
    title: "Sharing: several trainers on one pipeline",
    finding: sharingFinding(experiment),
    ...sharingHeadline(experiment),
    table: {
      title: "Preprocessing and job time by number of trainers. " +
        Object.entries(SHARING_MODES).map(([mode, name]) => `${mode}: ${name}`).join("; "),
      columns: [
        { heading: "mode" },
        { heading: "trainers" },
        { heading: "produced", unit: "batches", digits: 0 },
        { heading: "read", unit: "MB", digits: 1 },
        { heading: "CPU time", unit: "s", digits: 2 },
        { heading: "CPU time against one trainer", unit: "×", digits: 2 },
        { heading: "job time", unit: "s", digits: 2 },
        { heading: "job time against one trainer", unit: "×", digits: 2 },
        { heading: "skipped", unit: "batches", digits: 0 },
      ],
      rows,
    },
  };
}

/** Returns the run of a mode with the most trainers; undefined if no run had more than one. */
function largestRun(experiment: SharingExperiment, mode: SharingMode): SharingRun | undefined {
  return experiment.runs.filter((run) => run.mode === mode && run.trainers > 1)
    .reduce<SharingRun | undefined>((a, b) => a && a.trainers > b.trainers ? a : b, undefined);
}

function sharingHeadline(experiment: SharingExperiment): { headline?: Headline } {
  const baseline = sharingBaseline(experiment);
  const most = largestRun(experiment, "A");
  if (baseline === undefined || most === undefined) return {};
  const quantity = ratio(most.cpuTime, baseline.cpuTime);
  const meaning = `the CPU time of one trainer feeds ${most.trainers} that share`;
  return { headline: { quantity, unit: "×", digits: 1, meaning } };
}

function sharingFinding(experiment: SharingExperiment): string {
  const baseline = sharingBaseline(experiment);
  if (baseline === undefined) {
    return "No run had a single trainer, so there is no baseline for the others.";
  }
  const sentences = (["A", "B", "C"] as SharingMode[]).flatMap((mode) => {
    const most = largestRun(experiment, mode);
    if (most === undefined) return [];
    const times = (quantity: (run: SharingRun) => Quantity) =>
      `${figure(ratio(quantity(most), quantity(baseline)))}×`;
    return [
      `With ${SHARING_MODES[mode]} (${mode}), ${most.trainers} trainers took ` +
      `${times((run) => run.batchesProduced)} the batches, ${
        times((run) => run.bytesRead)
      } the bytes read and ` +
      `${times((run) => run.cpuTime)} the CPU time that one alone takes, and a job ` +
      `${times((run) => run.jobTime)} its time.`,
    ];
  });
  return sentences.join(" ");
}

function summarizeCoordinatedReads(experiment: CoordinatedReadsExperiment): Summary {
  const { uncoordinated, bucketed, coordinated } = experiment;
  const row = (name: string, run: ReadsRun): Cell[] => {
    const time = (value: number): Quantity => ({
      value,
      unit: "ms",
      provenance: run.stepTimesProvenance,
    });
    return [
      name,
      run.paddingShare,
      run.idleShare,
      time(mean(run.stepTimesMs)),
      time(quantile(run.stepTimesMs, 0.5)),
      time(quantile(run.stepTimesMs, 0.95)),
      run.throughput,
    ];
  };
  return {
    title: "Coordinated reads: text of uneven length",
    finding: coordinatedReadsFinding(experiment),
    headline: {
      quantity: ratio(coordinated.throughput, uncoordinated.throughput),
      unit: "×",
      digits: 2,
      meaning: "tokens of data per second, reads coordinated over uncoordinated",
    },
    table: {
      title: `Padding and step time, ${countOf(experiment.trainers, "trainer")} in step`,
      columns: [
        { heading: "reads" },
        { heading: "padding", unit: "%", digits: 1 },
        { heading: "waiting for the slowest", unit: "%", digits: 1 },
        { heading: "step, mean", unit: "ms", digits: 1 },
        { heading: "step, median", unit: "ms", digits: 1 },
        { heading: "step, 95th percentile", unit: "ms", digits: 1 },
        { heading: "throughput without padding", unit: "tokens/s", digits: 0 },
      ],
      rows: [
        row("uncoordinated", uncoordinated),
        ...(bucketed === undefined ? [] : [row("bucketed", bucketed)]),
        row("coordinated", coordinated),
      ],
    },
  };
}

function coordinatedReadsFinding(experiment: CoordinatedReadsExperiment): string {
  const { uncoordinated, bucketed, coordinated, trainers } = experiment;
  const speedup = ratio(coordinated.throughput, uncoordinated.throughput);
  const withoutCoordination = bucketed === undefined
    ? ""
    : ` Buckets without coordination, where each trainer gets any bucket, make it ${
      formatNumber(ratio(bucketed.throughput, uncoordinated.throughput).value, 2)
    } times as fast.`;
  return `When ${trainers} trainers in step get batches of one bucket from one worker, padding goes from ` +
    `${percent(uncoordinated.paddingShare)} to ${
      percent(coordinated.paddingShare)
    } of all tokens and the time ` +
    `spent waiting for the slowest from ${percent(uncoordinated.idleShare)} to ` +
    `${percent(coordinated.idleShare)}. Training goes ${
      formatNumber(speedup.value, 2)
    } times as fast, counted in ` +
    `tokens of data.${withoutCoordination}`;
}

function figure(quantity: Quantity): string {
  return formatNumber(quantity.value);
}

function percent(share: Quantity): string {
  // A non-breaking space keeps the sign with its number.
  return `${formatNumber(share.value * 100, 0)}\u00a0%`;
}
