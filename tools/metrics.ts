/**
 * Writes docs/reference/metrics.md, the reference of all metrics, from their table:
 *
 *     deno task metrics
 */
import type { Metric } from "../actors/dispatcher/metric.ts";
import { type MetricGroup, METRICS, metricsOf } from "../actors/dispatcher/protocol_metrics.ts";
import { runProgram } from "../cli/lib/args.ts";
import type { Program } from "../cli/lib/help.ts";
import { METRIC_LABELS } from "../server/pages/dispatcher_metrics.ts";

const FILE = new URL("../docs/reference/metrics.md", import.meta.url);

const INTRODUCTION = `# Metrics

A metric is declared once, in \`actors/dispatcher/protocol_metrics.ts\`. Heartbeats report it, and the
dispatcher shows it: in \`/state\` and \`describe()\` under its field unless its row says otherwise, in
\`/metrics\` (Prometheus) under its name, and as a column of the live page and of \`deno task status\`
if it has a heading. \`deno task metrics\` writes this page.

Names of counters end in \`_total\`. \`/metrics\` has times in seconds. Rates, shares and means cover
about the last ten seconds. Labels: \`worker\` is the worker's name, \`job\` the job's, \`iteration\` the
number of the iteration within the job (its repetition), \`client\` the client's number, \`source\` the
number of a source in the pipeline.
`;

/** The title of each group, and where its fields are in \`/state\`. */
const GROUPS: { readonly [G in MetricGroup]: string } = {
  states: "Workers, by state: `working`, `idle`, `starting`, `silent` or `gone`",
  cluster: "The cluster",
  scaling: "Scaling: `scaling.jobs[]`",
  worker: "A worker",
  process: "A worker's process: `workers[].figures.process`, reported by the worker",
  task: "A task: `tasks[].figures`, reported by its worker; summed in `workers[].figures`",
  compression: "A task's compression: `tasks[].figures.compression`, reported by its worker",
  sharing: "A sharing window: `tasks[].figures.sharing`, reported by its worker",
  client: "A client: `readers[].figures`, reported by the client",
  order: "A DETERMINISTIC client: `readers[].figures`, reported by the client",
  read: "A client's reads of one task: `readers[].figures.reads[]`, reported by the client",
  splits: "Splits of a source: `iterations[].splits[]`",
  job: "What a job has used: `jobs[].usage`",
};

/** What `/state` has instead of a field of this name. */
const ELSEWHERE: { readonly [G in MetricGroup]?: Readonly<Record<string, string>> } = {
  states: { workers: "the `workers[]` whose `activity.state` is the label" },
  cluster: {
    unreachableWorkers: "the `workers[]` that are `alive` and have `unreachable`",
    jobs: "the length of `jobs[]`",
    clients: "the sum of `jobs[].iterations[].clients`",
    optimalWorkers: "the largest `jobs[].iterations[].optimalWorkers`",
    journalWaits: "whether `journal` is there",
    wantedWorkers: "`scaling.wanted`",
  },
  worker: {
    up: "`workers[].alive`",
    tasks: "`workers[].tasks`",
    busyShare: "`workers[].figures.busyShare`",
  },
  compression: { compressing: 'whether `compression.active` differs from `"none"`' },
};

const PROGRAM: Program<Record<never, never>> = {
  usage: "deno task metrics",
  summary: "Writes docs/reference/metrics.md, the reference of all metrics, from their table.",
  options: {},
};

/** Returns the text of the page. */
export function metricsPage(): string {
  const groups = Object.keys(METRICS) as MetricGroup[];
  return [INTRODUCTION, ...groups.map(section)].join("\n");
}

function section(group: MetricGroup): string {
  const labels = METRIC_LABELS[group];
  const rows = metricsOf(group).map(([key, metric]) => [
    `\`${key}\``,
    metric.name === null ? "" : `\`${metric.name}\``,
    metric.unit,
    metric.heading ?? "",
    sentences(metric.help, derivation(group, metric), elsewhere(group, key)),
  ]);
  const table = aligned([["field", "in `/metrics`", "unit", "column", "what it is"], ...rows]);
  const labelled = labels.length === 0 ? "" : `Labels: ${labels.join(", ")}.\n\n`;
  return `## ${GROUPS[group]}\n\n${labelled}${table}\n`;
}

function sentences(...texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join(" ");
}

function elsewhere(group: MetricGroup, key: string): string {
  const what = ELSEWHERE[group]?.[key];
  return what === undefined ? "" : `In \`/state\`: ${what}.`;
}

function derivation(group: MetricGroup, { origin }: Metric): string {
  if (origin === "optional") return "May be missing.";
  if (typeof origin === "string") return "";
  if ("rate" in origin) {
    const sum = group === "task" ? "; over tasks, the sum" : "";
    return `The growth of \`${origin.rate}\` per second${sum}.`;
  }
  if ("share" in origin) {
    return origin.of === "time"
      ? `The growth of \`${origin.share}\` divided by the time; over tasks, the largest.`
      : `The growth of \`${origin.share}\`, divided by that of \`${origin.of.join("` + `")}\`.`;
  }
  return "mean" in origin
    ? `The growth of \`${origin.mean}\`, divided by that of \`${origin.per}\`.`
    : `\`${origin.quotient}\` by \`${origin.per}\`.`;
}

/** Formats a table in Markdown, as `deno fmt` aligns it. */
function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  const [head, ...others] = rows.map(line);
  return [head, rule, ...others].join("\n");
}

if (import.meta.main) await runProgram(PROGRAM, () => Deno.writeTextFile(FILE, metricsPage()));
