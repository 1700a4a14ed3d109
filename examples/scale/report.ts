/**
 * The tables and the page of what `deno task scale` found.
 *
 * @module
 */
import { drawLines, type Figure, NEUTRAL_COLOR, seriesColor, toPoint } from "../lib/line_chart.ts";
import { renderFacts, renderPage, renderSection } from "../lib/page.ts";
import type { Quantity } from "../lib/quantity.ts";
import { formatNumber, type Table } from "../lib/table.ts";
import type { ScaleReport, SizeRun, SweepRun } from "./measurements.ts";
import { SWEEP_NOTES } from "./paper_sweep.ts";
import { POOL_WORKERS, RUN_MS } from "./size.ts";

const SIZE_NOTES = [
  "Every actor is that of production, and all messages between them are encoded and decoded. Times of the " +
  "cluster are virtual (modelled); CPU time and memory are this machine's (measured).",
  `A worker is in a pool of at most ${POOL_WORKERS}, and each pool has a job of its own, which its share of ` +
  "the clients reads from all workers of the pool. A batch takes a worker a second, and is a split.",
  "The last client to have a batch comes after the first one or two that a worker makes, as luck has it: all are " +
  "there at once, and a worker gives a batch to one of several that wait.",
  `Load is that of ${RUN_MS / 1_000} virtual seconds from when all clients have had a batch.`,
  "Recovery is from the dispatcher's crash, with one second until it is started again, until it has heard of " +
  "every worker's task; batches that are made without a new split go on meanwhile.",
];

/** The table of sizes. */
export function sizeTable(sizes: readonly SizeRun[]): Table {
  return {
    title: "Cluster sizes",
    columns: [
      { heading: "workers" },
      { heading: "clients" },
      { heading: "dispatcher load", unit: "messages/s", digits: 0 },
      { heading: "worker heartbeat", unit: "µs", digits: 0 },
      { heading: "split", unit: "µs", digits: 0 },
      { heading: "first batch", unit: "ms", digits: 0 },
      { heading: "all clients", unit: "ms", digits: 0 },
      { heading: "recovery", unit: "ms", digits: 0 },
      { heading: "replay", unit: "ms", digits: 0 },
      { heading: "heap per node", unit: "KB", digits: 0 },
      { heading: "state per worker", unit: "bytes", digits: 0 },
      { heading: "events per ms CPU", unit: "1" },
      { heading: "CPU", unit: "s", digits: 1 },
      { heading: "process", unit: "MB", digits: 0 },
    ],
    rows: sizes.map((it) => [
      it.workers,
      it.clients,
      it.dispatcherMessages,
      it.workerHeartbeat,
      it.split,
      it.firstBatch,
      it.allBatches,
      it.recovery,
      it.replay,
      it.heapPerNode,
      it.statePerWorker,
      it.eventsPerCpuMs,
      it.cpuSeconds,
      it.memory,
    ]),
  };
}

/** The table of the worker sweep. */
export function sweepTable(sweep: readonly SweepRun[]): Table {
  return {
    title: "Worker sweep of the tf.data service paper (Fig. 9)",
    columns: [
      { heading: "workers" },
      { heading: "throughput", unit: "batches/s" },
      { heading: "speedup", unit: "×" },
      { heading: "paper's speedup", unit: "×" },
      { heading: "cost saving", unit: "×" },
      { heading: "paper's cost saving", unit: "×" },
      { heading: "workers busy", unit: "%", digits: 0 },
      { heading: "trainers waiting", unit: "%", digits: 0 },
    ],
    rows: sweep.map((it) => [
      it.workers,
      it.throughput,
      it.speedup,
      it.paperSpeedup,
      it.costSaving,
      it.paperCostSaving,
      it.workerBusy,
      it.stalled,
    ]),
  };
}

/** The page. */
export function renderScaleReport(report: ScaleReport): string {
  const { startedAt, durationSeconds, commandLine, host, sizes, sweep } = report;
  const facts: [string, string][] = [
    ["Run", `${startedAt.slice(0, 16).replace("T", " ")} UTC`],
    ["Took", `${formatNumber(durationSeconds, 0)} s`],
    ["Host", host],
  ];
  const header = `<header>
<p class="brand">Leat</p>
<h1>How the service grows with its cluster</h1>
<p class="lead">The same dispatcher, worker and client as in production, in a simulated cluster.</p>
${renderFacts(facts, commandLine)}
</header>`;
  const sections = [
    ...(sizes.length === 0 ? [] : [sizeSection(sizes)]),
    ...(sweep.length === 0 ? [] : [sweepSection(sweep)]),
  ];
  return renderPage({
    title: "Leat: scale report",
    main: [header, ...sections].join("\n"),
    results: report,
  });
}

function sizeSection(sizes: readonly SizeRun[]): string {
  const largest = sizes.at(-1)!;
  return renderSection({
    id: "sizes",
    letter: "a",
    title: "Cluster sizes",
    finding: `With ${formatNumber(largest.workers, 0)} workers and ` +
      `${formatNumber(largest.clients, 0)} clients the dispatcher handles ` +
      `${
        formatNumber(largest.dispatcherMessages.value, 0)
      } messages a second, the first batch is there after ` +
      `${
        formatNumber(largest.firstBatch.value / 1_000)
      } s, and a crash of the dispatcher is over after ` +
      `${formatNumber(largest.recovery.value / 1_000)} s.`,
    figures: [
      chart("Dispatcher load", "messages/s", sizes, { handled: (it) => it.dispatcherMessages }),
      chart("CPU of the dispatcher for a message", "µs", sizes, {
        "worker heartbeat": (it) => it.workerHeartbeat,
        "client heartbeat": (it) => it.clientHeartbeat,
        split: (it) => it.split,
      }),
      chart("Time to first batch", "ms", sizes, {
        "first client": (it) => it.firstBatch,
        "all clients": (it) => it.allBatches,
      }),
      chart("Recovery of the dispatcher", "ms", sizes, {
        "until all tasks are heard of": (it) => it.recovery,
        "CPU of the replay": (it) => it.replay,
      }),
      chart("Memory", "bytes", sizes, {
        "heap per node": (it) => it.heapPerNode,
        "state per worker": (it) => it.statePerWorker,
      }),
    ],
    table: sizeTable(sizes),
    notes: SIZE_NOTES,
  });
}

function sweepSection(sweep: readonly SweepRun[]): string {
  const best = sweep.reduce((a, b) => b.speedup.value > a.speedup.value ? b : a);
  return renderSection({
    id: "sweep",
    letter: "b",
    title: "Worker sweep of the tf.data service paper (Fig. 9)",
    finding:
      `${best.workers} workers are ${
        formatNumber(best.speedup.value)
      } times as fast as colocated ` +
      `preprocessing, and cost ${formatNumber(best.costSaving.value)} times less.`,
    figures: [
      chart("Job-time speedup", "×", sweep, {
        simulated: (it) => it.speedup,
        "the paper's text": (it) => it.paperSpeedup,
      }),
      chart("Job cost saving", "×", sweep, {
        simulated: (it) => it.costSaving,
        "the paper's text": (it) => it.paperCostSaving,
      }),
    ],
    table: sweepTable(sweep),
    notes: [...SWEEP_NOTES],
  });
}

function chart<R extends { readonly workers: number }>(
  title: string,
  unit: string,
  runs: readonly R[],
  lines: Readonly<Record<string, (run: R) => Quantity | undefined>>,
): Figure {
  return drawLines({
    title,
    description: `${title} by number of workers, in ${unit}.`,
    xLabel: "workers",
    xScale: "log",
    yLabel: unit,
    ySuffix: ` ${unit}`,
    series: Object.entries(lines).map(([name, of], index) => ({
      name,
      color: seriesColor(index),
      points: runs.flatMap((run) => {
        const quantity = of(run);
        return quantity === undefined ? [] : [toPoint(run.workers, quantity)];
      }),
    })),
    references: unit === "×"
      ? [{ name: "colocated", color: NEUTRAL_COLOR, y: 1, provenance: "measured" }]
      : [],
    markers: [],
  });
}
