/**
 * Formats the results of a comparison: a table for the terminal, and a page with a plot of ratios for
 * each part.
 */
import * as Plot from "@observablehq/plot";
import {
  draw,
  type Figure,
  NEUTRAL_COLOR,
  SERIES_COLORS,
  WIDTH,
} from "../../cli/lib/line_chart.ts";
import { renderFacts, renderPage, renderSection } from "../../cli/lib/page.ts";
import { formatNumber, type Table } from "../../cli/lib/table.ts";
import { type Part, PARTS, PEERS } from "./cases.ts";
import { type CaseResult, LEAT } from "./measure.ts";

/** The results of a run. */
export interface PeerReport {
  readonly startedAt: string;
  readonly commandLine: string;
  /** Facts about the machine: cores, system, Deno. */
  readonly machine: Readonly<Record<string, string>>;
  /** The versions of the peers' packages. */
  readonly versions: Readonly<Record<string, string>>;
  /** Peers that were left out, and why. */
  readonly missing: Readonly<Record<string, string>>;
  readonly results: readonly CaseResult[];
}

const ROW_HEIGHT_PX = 16;
const MARGIN_LEFT_PX = 190;

/** Returns a table with a row for each side of each case. */
export function resultTable(results: readonly CaseResult[], title: string): Table {
  return {
    title,
    columns: [
      { heading: "case" },
      { heading: "side" },
      { heading: "median" },
      { heading: "per second" },
      { heading: "spread in %", digits: 0 },
      { heading: "Leat ÷ side", digits: 2 },
      { heading: "also measured" },
    ],
    rows: results.flatMap(({ name, unit, sides, failed }) => [
      ...sides.map(({ side, median, spread, leatRatio, also = {} }) => [
        ...[name, side, formatNumber(median), unit.replace("/s", "")],
        100 * spread,
        side === LEAT ? undefined : leatRatio,
        moreText(also),
      ]),
      ...Object.keys(failed).map((side) => [name, side, "failed"]),
    ]),
  };
}

/** Formats other measurements. */
export function moreText(also: Readonly<Record<string, number>>): string {
  return Object.entries(also).map(([what, value]) => `${formatNumber(value)} ${what}`).join(", ");
}

/** Returns the page as HTML. */
export function renderReport(report: PeerReport): string {
  const { results, startedAt, machine, versions, missing, commandLine } = report;
  const facts = renderFacts([
    ["Run", `${startedAt.slice(0, 16).replace("T", " ")} UTC`],
    ...Object.entries({ ...machine, ...versions }),
    ...Object.entries(missing).map(([peer, why]): [string, string] => [`No ${peer}`, why]),
  ], commandLine);
  const parts = [...new Set(results.map(({ part }) => part))];
  const sections = parts.map((part) =>
    sectionOf(part, results.filter((result) => result.part === part))
  );
  return renderPage({
    title: "Leat and its peers",
    main: `<header>
<p class="brand">Leat</p>
<h1>The same pipelines by Leat and by its peers</h1>
${facts}
</header>
${sections.join("\n")}`,
    results: report,
  });
}

function sectionOf(part: Part, results: readonly CaseResult[]): string {
  return renderSection({
    id: part,
    letter: letterOf(part),
    title: PARTS[part],
    finding: findingOf(results),
    figures: [ratioFigure(part, results)],
    table: resultTable(results, "Medians of all windows"),
    notes: [
      "A ratio is the median over the rounds, each of which compares neighbouring windows.",
      "Only ratios carry over to another machine.",
      ...(part === "coordinated" ? [coordinationGains(results)] : []),
      ...results.flatMap(({ name, failed }) =>
        Object.entries(failed).map(([side, why]) => `${name}, ${side} failed: ${why}`)
      ),
    ],
  });
}

/** Returns the letter of a part, which is the same in every run. */
function letterOf(part: Part): string {
  return String.fromCharCode("a".charCodeAt(0) + Object.keys(PARTS).indexOf(part));
}

/** Describes the speedup of each side by coordinated reads, as in Fig. 11 of the paper. */
export function coordinationGains(results: readonly CaseResult[]): string {
  const rate = (name: string, wanted: string) =>
    results.find((result) => result.name === name)?.sides
      .find(({ side }) => side === wanted)?.median;
  const gains = [4, 16].flatMap((consumers) =>
    [LEAT, ...PEERS].flatMap((side) => {
      const padded = rate(`padded-${consumers}`, side);
      const coordinated = rate(`coordinated-${consumers}`, side);
      if (padded === undefined || coordinated === undefined) return [];
      return [`${formatNumber(coordinated / padded)} (${consumers} trainers, ${side})`];
    })
  );
  return gains.length === 0
    ? ""
    : `Coordinated ÷ padded: ${gains.join(", ")}. The paper has 1.5 to 3.5.`;
}

function findingOf(results: readonly CaseResult[]): string {
  return results.flatMap(({ name, sides }) => {
    const others = sides.filter(({ side }) => side !== LEAT);
    if (others.length === 0) return [];
    const fastest = others.reduce((low, side) => side.leatRatio < low.leatRatio ? side : low);
    return [`${name}: ${formatNumber(fastest.leatRatio)} × ${fastest.side}`];
  }).join("; ");
}

function ratioFigure(part: Part, results: readonly CaseResult[]): Figure {
  const bars = results.flatMap(({ name, sides }) =>
    sides.filter(({ side }) => side !== LEAT).map(({ side, leatRatio }) => ({
      label: `${name}, ${side}`,
      color: colorOf(side),
      ratio: leatRatio,
    }))
  );
  const title = "Leat's rate as a multiple of each peer's";
  const description = bars.map(({ label, ratio }) => `${label}: ${formatNumber(ratio)}`).join("; ");
  const svg = draw(title, description, {
    width: WIDTH,
    height: 60 + ROW_HEIGHT_PX * bars.length,
    marginLeft: MARGIN_LEFT_PX,
    x: { type: "log", label: "ratio", tickFormat: "~s" },
    y: { label: null, domain: bars.map(({ label }) => label) },
    marks: [
      Plot.gridX({ strokeOpacity: 0.12 }),
      Plot.ruleX([1], { stroke: NEUTRAL_COLOR }),
      Plot.barX(bars, { x1: 1, x2: "ratio", y: "label", fill: "color" }),
    ],
  });
  const shown = PEERS.filter((peer) => results.some(({ sides }) => sides.some(isOf(peer))));
  const legend = shown.map((peer) => ({
    ...{ label: peer, color: colorOf(peer) },
    swatch: "measured bar" as const,
  }));
  return { title: `${title}: ${part}`, description, svg, legend, wide: false };
}

function isOf(peer: string): (result: { readonly side: string }) => boolean {
  return ({ side }) => side === peer;
}

function colorOf(side: string): string {
  return SERIES_COLORS[PEERS.findIndex((peer) => peer === side)] ?? NEUTRAL_COLOR;
}
