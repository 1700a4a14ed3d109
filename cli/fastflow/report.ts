/** Writes the page of plots and tables. */
import * as Plot from "@observablehq/plot";
import {
  draw,
  drawLines,
  type Figure,
  HEIGHT,
  provenanceLegend,
  seriesColor,
  WIDE_WIDTH,
} from "../lib/line_chart.ts";
import {
  escape,
  renderFacts,
  renderList,
  renderPage,
  renderSection,
  writePage,
} from "../lib/page.ts";
import type { Outcome } from "./modelled.ts";
import { type Results, tablesOf } from "./tables.ts";

/** Names and values of facts about the run. */
export type Facts = readonly (readonly [string, string])[];

const SYSTEMS = [
  ["local", "local only"],
  ["allRemote", "all remote"],
  ["half", "half remote"],
  ["decided", "Leat's decision"],
  ["corrected", "corrected"],
] as const;
/** Longer bars are cut off, so that differences between the others can be seen. */
const TIME_MAX = 2.5;
/** The environments that the plot of a workload's ratios shows. */
const SWEPT = ["1:1", "1:3", "1:4, 1 Gb/s", "1:1, processes", "1:1, processes, 1 Gb/s"];

const NOTES: string[] = [
  "Modelled: cores, network and disk are queues in virtual time, with the costs below as service " +
  "times. The profiler and the decision are Leat's own code. Measured: one worker runs in separate " +
  "processes. Trainer and worker share this host's cores, so other programs disturb them. They are " +
  "connected by this host's loopback, or by a cable to a network namespace that tc slows down. A " +
  "slow disk adds 40 ms to each open and read.",
  "One core stands for 7 vCPUs of the paper's containers, so network and disk have a seventh of " +
  "their speed. The step time of each accelerator is chosen so that its pipeline needs as many cores " +
  "as in the paper.",
  "In the model a worker needs as much CPU time for a batch as this host, the network carries " +
  "batches without compression, and messages cost nothing.",
];

function notesOf({ whyNoHosts }: Results): string[] {
  if (whyNoHosts === undefined) return NOTES;
  const why =
    `Slow networks and slow disks are only modelled: no network namespace could be made ` +
    `here (${whyNoHosts}).`;
  return [...NOTES, why];
}

/** Writes the page. */
export function writeReport(results: Results, facts: Facts, command: string, path: string): void {
  const figures: Record<string, Figure[]> = {
    "fig-6": grouped(results.outcomes).map(barsOf),
    "fig-10": grouped(results.outcomes).map(sweepOf),
  };
  const sections = tablesOf(results).map((found, i) =>
    renderSection({
      ...found,
      letter: "abcdefgh"[i]!,
      figures: figures[found.id] ?? [],
      notes: [],
    })
  );
  const header = `<header>
<p class="brand">Leat</p>
<h1>Offloading: the experiments of the FastFlow paper</h1>
<p class="lead">Seven pipelines on small generated data, with simulated accelerators.</p>
${renderFacts(facts, escape(command))}
${renderList("notes", notesOf(results))}
</header>`;
  const main = [header, ...sections].join("\n");
  writePage(renderPage({ title: "Leat: offloading", main, results }), path);
}

function grouped(outcomes: readonly Outcome[]): Outcome[][] {
  return [...Map.groupBy(outcomes, ({ workload }) => workload.letter).values()];
}

/** Fig. 6: a group of bars for each environment. */
function barsOf(outcomes: readonly Outcome[]): Figure {
  const { letter, name } = outcomes[0]!.workload;
  const bars = outcomes.flatMap(({ environment, times, provenance }) =>
    SYSTEMS.map(([key, system], i) => ({
      ...{ environment, system, provenance },
      time: times[key] / times.local,
      color: seriesColor(i),
    }))
  );
  const title = `${letter} ${name}`;
  const description = "Epoch time by environment and by who prepares the data; local only is 1. " +
    `Bars above ${TIME_MAX} are cut off and carry their number.`;
  const environments = outcomes.map(({ environment }) => environment);
  const systems = SYSTEMS.map(([, system]) => system);
  return {
    ...{ title, description, wide: true },
    svg: draw(title, description, {
      ...{ width: WIDE_WIDTH, height: HEIGHT, marginLeft: 50 },
      fx: { domain: environments, label: "cores here : of workers" },
      x: { domain: systems, axis: null },
      y: { label: "epoch time (local only = 1)", domain: [0, TIME_MAX], ticks: 6, grid: true },
      marks: [
        Plot.barY(bars, {
          ...{ fx: "environment", x: "system", y: (bar) => Math.min(TIME_MAX, bar.time) },
          fill: (bar) => bar.color,
          stroke: (bar) => bar.color,
          fillOpacity: (bar) => bar.provenance === "measured" ? 1 : 0.3,
          title: (bar) => `${bar.system}, ${bar.environment}: ${bar.time.toFixed(2)}`,
        }),
        // A bar that is cut off shows its value as a number.
        Plot.text(bars.filter(({ time }) => time > TIME_MAX), {
          ...{ fx: "environment", x: "system", y: TIME_MAX, dy: 8, fill: "white" },
          ...{ stroke: "black", strokeWidth: 2, text: (bar) => bar.time.toFixed(0) },
        }),
        Plot.ruleY([0, 1]),
      ],
    }),
    legend: [
      ...systems.map((label, i) => ({ label, color: seriesColor(i), swatch: "area" as const })),
      ...provenanceLegend([...new Set(outcomes.map(({ provenance }) => provenance))], "bar"),
    ],
  };
}

/** The time of a step by ratio, and the decision as a large mark. */
function sweepOf(outcomes: readonly Outcome[]): Figure {
  const { letter, name } = outcomes[0]!.workload;
  const shown = outcomes.filter(({ environment }) => SWEPT.includes(environment));
  return drawLines({
    title: `${letter} ${name}: ratios`,
    description: "Time of a step by the share of data that workers prepare.",
    ...{ xLabel: "offloading ratio (%)", xScale: "linear", yLabel: "step (ms)", ySuffix: " ms" },
    ...{ references: [], markers: [] },
    series: shown.flatMap((outcome, i) => {
      const { environment, provenance, decision, sweeps, times } = outcome;
      const candidate = decision.candidate ?? "p'2";
      const color = seriesColor(i);
      const points = (sweeps[candidate] ?? []).map(([ratio, y]) => ({
        ...{ x: 100 * ratio, y, provenance },
      }));
      return [
        { name: `${environment}, ${candidate}`, color, points },
        {
          ...{ name: `${environment}, decision`, color, layer: "broad" as const },
          points: [{ x: Math.round(100 * decision.ratio), y: times.decided, provenance }],
        },
      ];
    }),
  });
}
