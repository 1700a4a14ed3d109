/** Formats the results of `deno task scale` as tables and as a page. */
import { drawLines, type Figure, NEUTRAL_COLOR, seriesColor, toPoint } from "../lib/line_chart.ts";
import { renderFacts, renderList, renderPage, renderSection } from "../lib/page.ts";
import type { Quantity } from "../lib/quantity.ts";
import { formatNumber, inUnit, type Table } from "../lib/table.ts";
import {
  SIZE_FIGURES,
  type SizeFigure,
  sizeTable,
  timesText,
  WORSE_FROM,
  worseThanLinear,
} from "./growth.ts";
import type { ScaleReport, SizeRun, SweepRun } from "./measurements.ts";
import { SWEEP_NOTES } from "./paper_sweep.ts";
import { gapText } from "./series.ts";
import { POOL_WORKERS, RUN_MS } from "./size.ts";

const SIZE_NOTES = [
  "All actors are the production ones, and every message between them is encoded and decoded. Times of the " +
  "cluster are virtual (modelled); CPU time and memory are this machine's (measured).",
  `Workers are in pools of at most ${POOL_WORKERS}. Each pool has its own job and its share of the clients, which ` +
  "read from all workers of the pool. A worker makes a batch in one second; each batch is a split.",
  "All clients start together, and a worker gives a batch to one of the clients that wait. So chance decides " +
  "whether the last client gets its first batch after one or two batches of a worker.",
  `Load is measured for ${RUN_MS / 1_000} virtual seconds after all clients have had a batch.`,
  "Recovery lasts from the dispatcher's crash until it knows every worker's task again; it restarts after one " +
  "second. Meanwhile workers continue with batches that need no new split.",
  "“Against linear” compares a figure's growth, from the smallest cluster to the largest, with linear growth (1). " +
  "Figures of the whole cluster (load, replay, CPU and memory of all) may grow with the number of workers; those of " +
  `a message, a node or a wait may not grow. From ${WORSE_FROM} on, growth is called worse; less may be noise.`,
];

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

export function renderScaleReport(report: ScaleReport): string {
  const { startedAt, durationSeconds, commandLine, host, sizes, sweep, gaps } = report;
  const facts: [string, string][] = [
    ["Run", `${startedAt.slice(0, 16).replace("T", " ")} UTC`],
    ["Took", `${formatNumber(durationSeconds, 0)} s`],
    ["Host", host],
  ];
  const gapSection = gaps.length === 0
    ? ""
    : `<p><strong>Not all sizes are here:</strong></p>\n${
      renderList("notes", gaps.map(gapText))
    }\n`;
  const header = `<header>
<p class="brand">Leat</p>
<h1>How the service grows with its cluster</h1>
<p class="lead">The same dispatcher, worker and client as in production, in a simulated cluster.</p>
${renderFacts(facts, commandLine)}
${gapSection}</header>`;
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
  const { load, workerHeartbeat, clientHeartbeat, split } = SIZE_FIGURES;
  const { firstBatch, allBatches, recovery, replay, heap, state } = SIZE_FIGURES;
  return renderSection({
    id: "sizes",
    letter: "a",
    title: "Cluster sizes",
    finding: [beginFinding(largest), ...growthFinding(sizes)].join(" "),
    figures: [
      sizeChart("Dispatcher load", sizes, { handled: load }),
      chart("Dispatcher load per worker", "messages/s", sizes, {
        handled: ({ dispatcherMessages: all, workers }) => ({ ...all, value: all.value / workers }),
      }),
      sizeChart("CPU of the dispatcher for a message", sizes, {
        "worker heartbeat": workerHeartbeat,
        "client heartbeat": clientHeartbeat,
        split,
      }),
      sizeChart("Time to first batch", sizes, {
        "first client": firstBatch,
        "all clients": allBatches,
      }),
      sizeChart("Recovery of the dispatcher", sizes, { "until all tasks are reported": recovery }),
      sizeChart("CPU of the replay", sizes, { "CPU of the replay": replay }),
      sizeChart("Heap per node", sizes, { "heap per node": heap }),
      sizeChart("Dispatcher's state per worker", sizes, { "state per worker": state }),
    ],
    table: sizeTable(sizes),
    notes: SIZE_NOTES,
  });
}

function beginFinding({ workers, clients, dispatcherMessages, firstBatch, recovery }: SizeRun) {
  const seconds = ({ value }: Quantity) => `${formatNumber(value / 1_000)} s`;
  return `With ${formatNumber(workers, 0)} workers and ${
    formatNumber(clients, 0)
  } clients the dispatcher ` +
    `handles ${
      formatNumber(dispatcherMessages.value, 0)
    } messages a second, the first batch arrives after ` +
    `${seconds(firstBatch)}, and the dispatcher recovers from a crash in ${seconds(recovery)}.`;
}

function growthFinding(sizes: readonly SizeRun[]): string[] {
  if (sizes.length < 2) return [];
  const worse = worseThanLinear(sizes).map(({ figure, againstLinear }) =>
    `${figure.name} (${formatNumber(againstLinear!.value)} times)`
  );
  const what = worse.length === 0
    ? "no figure grows faster than linearly"
    : `these figures grow faster than linearly: ${worse.join(", ")}`;
  return [`With ${timesText(sizes)} times as many workers, ${what}.`];
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

function sizeChart(
  title: string,
  sizes: readonly SizeRun[],
  lines: Readonly<Record<string, SizeFigure>>,
): Figure {
  const { unit } = Object.values(lines)[0]!;
  const entries = Object.entries(lines).map(([name, { quantityOf }]) =>
    [name, (run: SizeRun) => inUnit(quantityOf(run), unit)] as const
  );
  return chart(title, unit, sizes, Object.fromEntries(entries));
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
    series: Object.entries(lines).map(([name, quantityOf], index) => ({
      name,
      color: seriesColor(index),
      points: runs.flatMap((run) => {
        const quantity = quantityOf(run);
        const isKnown = quantity !== undefined && Number.isFinite(quantity.value);
        return isKnown ? [toPoint(run.workers, quantity)] : [];
      }),
    })),
    references: unit === "×"
      ? [{ name: "colocated", color: NEUTRAL_COLOR, y: 1, provenance: "measured" }]
      : [],
    markers: [],
  });
}
