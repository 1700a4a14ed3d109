/**
 * The results of `deno task soak`: a table in the terminal, and a page with plots of every process.
 */
import { drawLines, seriesColor } from "../lib/line_chart.ts";
import { renderFacts, renderPage, renderSection, writePage } from "../lib/page.ts";
import type { Table } from "../lib/table.ts";
import { type Measure, MEASURES, nameOf, type Sample } from "./samples.ts";
import { CREEP_SHARE, MARGINS, SAMPLES_OF_RUN_MIN, type Trend, WARM_UP_SHARE } from "./trend.ts";

/** The results of a run. */
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

/** Returns the table of trends: each measure of each process, in the first and the last third. */
export function trendTable(trends: readonly Trend[]): Table {
  return {
    title: "After the warm-up: lower quartile of the first third and of the last third",
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

/** Returns the finding as one sentence. */
export function findingOf(
  { trends, violations, runs, seconds, sampleMs }: SoakReport,
): string {
  const growing = trends.filter(({ grows }) => grows);
  const jobs = Object.values(runs).reduce((sum, count) => sum + count, 0);
  const flat = trends.length === 0
    ? `the run of ${seconds.toFixed(0)} s was too short to find growth, which takes at least ` +
      `${Math.ceil(SAMPLES_OF_RUN_MIN * sampleMs / 1_000)} s at --sample-ms ${sampleMs}`
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

/** Returns the page as HTML. */
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
      `A value that rises all the time, and as fast at the end, may grow by only ${
        100 * CREEP_SHARE
      } % of that.`,
    ],
  });
  const main = `<header>
<p class="brand">Leat</p>
<h1>Resources of a cluster's processes while jobs run</h1>
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
 * Returns a line for each process that is compared. All others of the same name share a line, because
 * there may be hundreds.
 */
function linesOf(
  series: SoakReport["series"],
  trends: readonly Trend[],
): readonly { readonly name: string; readonly samples: readonly Sample[] }[] {
  const compared = new Set(trends.map(({ process }) => process));
  const lines = new Map<string, (readonly Sample[])[]>();
  for (const [incarnation, samples] of Object.entries(series)) {
    const name = compared.has(incarnation) ? incarnation : nameOf(incarnation);
    lines.set(name, [...lines.get(name) ?? [], samples]);
  }
  return [...lines].map(([name, parts]) => ({
    name: parts.length === 1 ? name : `${name}, ${parts.length} incarnations`,
    samples: parts.flat().toSorted((a, b) => a.seconds - b.seconds),
  }));
}

function thinned(samples: readonly Sample[]): readonly Sample[] {
  const every = Math.ceil(samples.length / POINTS_MAX);
  return samples.filter((_, i) => i % every === 0);
}
