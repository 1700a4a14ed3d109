/**
 * The results of `deno task soak`: a table in the terminal, and a page with plots of every process.
 */
import { drawLines, seriesColor } from "../lib/line_chart.ts";
import { renderFacts, renderPage, renderSection, writePage } from "../lib/page.ts";
import type { Table } from "../lib/table.ts";
import { type Measure, MEASURES, nameOf, type Sample } from "./samples.ts";
import { CREEP_SHARE, LOOKS_MIN, MARGINS, type Trend, WARM_UP_SHARE } from "./trend.ts";

/** A whole run. */
export interface SoakReport {
  readonly startedAt: string;
  readonly commandLine: string;
  readonly seconds: number;
  /** The time between two samples, in ms. */
  readonly sampleMs: number;
  readonly faults: number;
  /** Jobs by mode. */
  readonly runs: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
  readonly series: Readonly<Record<string, readonly Sample[]>>;
  readonly trends: readonly Trend[];
}

const TITLES: Readonly<Record<Measure, string>> = {
  rss: "Resident memory",
  heap: "V8's heap",
  threads: "Threads",
  files: "File handles",
};
/** Limit of the points of a line: more cannot be seen. */
const POINTS_MAX = 120;

/** The table of trends: each measure of each process, in the first and the last third. */
export function trendTable(trends: readonly Trend[]): Table {
  return {
    title: "What stands after the warm-up: first third against last third, lower quartile of each",
    columns: [
      { heading: "process" },
      { heading: "measure" },
      { heading: "first third", digits: 1 },
      { heading: "last third", digits: 1 },
      { heading: "limit", digits: 1 },
      { heading: "verdict" },
    ],
    rows: trends.map(({ process, measure, first, last, limit, grows }) => [
      ...[process, `${measure} (${MARGINS[measure].unit})`],
      ...[first, last, limit, grows ? "GROWS" : "flat"],
    ]),
  };
}

/** The finding in one sentence. */
export function findingOf(
  { trends, violations, runs, seconds, sampleMs }: SoakReport,
): string {
  const growing = trends.filter(({ grows }) => grows);
  const jobs = Object.values(runs).reduce((sum, count) => sum + count, 0);
  const flat = trends.length === 0
    ? `too short a run to compare its end with its beginning: ${seconds.toFixed(0)} s, and at ` +
      `--sample-ms ${sampleMs} that takes ${Math.ceil(LOOKS_MIN * sampleMs / 1_000)} s or more`
    : growing.length === 0
    ? "nothing grew"
    : `what grew: ${growing.map(({ process, measure }) => `${measure} of ${process}`).join(", ")}`;
  const broken = violations.length === 0 ? "" : `; promises BROKEN: ${violations.join("; ")}`;
  return `${jobs} jobs, and ${flat}${broken}`;
}

/** Writes the page. */
export function writeSoakReport(report: SoakReport, path: string): void {
  writePage(renderSoakReport(report), path);
}

/** The page as HTML. */
export function renderSoakReport(report: SoakReport): string {
  const { seconds, runs, faults, startedAt, commandLine } = report;
  const facts = renderFacts([
    ["Run", `${startedAt.slice(0, 16).replace("T", " ")} UTC`],
    ["Took", `${seconds.toFixed(0)} s`],
    ["Jobs", Object.entries(runs).map(([mode, count]) => `${mode} ${count}`).join(", ")],
    ["Faults", `${faults}`],
  ], commandLine);
  const section = renderSection({
    id: "soak",
    letter: "soak",
    title: "Memory, threads and file handles",
    finding: `${findingOf(report)}.`,
    figures: MEASURES.filter((measure) =>
      Object.values(report.series).flat().some((sample) => sample[measure] !== undefined)
    ).map((measure) => figureOf(measure, report)),
    ...(report.trends.length === 0 ? {} : { table: trendTable(report.trends) }),
    notes: [
      `The first ${100 * WARM_UP_SHARE} % of the run are warm-up and not compared.`,
      ...MEASURES.map((measure) => {
        const { more, percent, unit } = MARGINS[measure];
        return `${
          TITLES[measure]
        } may grow by ${percent} %, or by ${more} ${unit} if that is more.`;
      }),
      `What rises all the way, and no slower at the end, may grow by ${
        100 * CREEP_SHARE
      } % of that.`,
    ],
  });
  const main = `<header>
<p class="brand">Leat</p>
<h1>What a cluster of processes takes while jobs run through it</h1>
${facts}
</header>
${section}`;
  return renderPage({ title: "Leat: soak report", main, results: report });
}

function figureOf(measure: Measure, { series, trends }: SoakReport) {
  const { unit } = MARGINS[measure];
  return drawLines({
    title: TITLES[measure],
    description: `${TITLES[measure]} of each process over the run.`,
    xLabel: "seconds",
    xScale: "linear",
    yLabel: unit,
    ySuffix: ` ${unit}`,
    references: [],
    markers: [],
    series: linesOf(series, trends).map(({ name, samples }, index) => ({
      name,
      color: seriesColor(index),
      points: thinned(samples).flatMap(({ seconds, [measure]: y }) =>
        y === undefined ? [] : [{ x: Math.round(seconds), y, provenance: "measured" as const }]
      ),
    })),
  });
}

/**
 * A line for each process that is compared, and one for all others of the same name: there may be
 * hundreds.
 */
function linesOf(
  series: SoakReport["series"],
  trends: readonly Trend[],
): readonly { readonly name: string; readonly samples: readonly Sample[] }[] {
  const compared = new Set(trends.map(({ process }) => process));
  const lines = new Map<string, (readonly Sample[])[]>();
  for (const [life, samples] of Object.entries(series)) {
    const name = compared.has(life) ? life : nameOf(life);
    lines.set(name, [...lines.get(name) ?? [], samples]);
  }
  return [...lines].map(([name, lives]) => ({
    name: lives.length === 1 ? name : `${name}, ${lives.length} lives`,
    samples: lives.flat().toSorted((a, b) => a.seconds - b.seconds),
  }));
}

function thinned(samples: readonly Sample[]): readonly Sample[] {
  const every = Math.ceil(samples.length / POINTS_MAX);
  return samples.filter((_, i) => i % every === 0);
}
