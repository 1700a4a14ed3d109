/** Renders the report of the main job as one self-contained HTML page. */

import { PAPER_TRAINER_MACHINE, PAPER_WORKER_MACHINE } from "../../mod.ts";
import { figuresOf } from "./charts.ts";
import {
  escape,
  type PageSection,
  renderFacts,
  renderList,
  renderPage,
  renderSection,
  writePage,
} from "../lib/page.ts";
import type { Experiment, RunDescription, SimulationReport } from "./results.ts";
import { type Headline, summarize, type Summary } from "./summary.ts";
import { displayValue, formatNumber, MODELLED_MARK } from "../lib/table.ts";

/**
 * Writes the report to a file, completely or not at all.
 * @param report The results of the experiments.
 * @param path The file to write. An existing file is replaced.
 */
export function writeReport(report: SimulationReport, path: string): void {
  writePage(renderReport(report), path);
}

/** Returns the report as an HTML page, without scripts, links or pictures from other files. */
export function renderReport(report: SimulationReport): string {
  const sections = report.experiments.map((experiment) => ({
    ...summarize(experiment),
    id: experiment.kind.replace("_", "-"),
    letter: LETTERS[experiment.kind],
    figures: figuresOf(experiment),
    notes: experiment.notes,
  }));
  const main = [
    renderHeader(report.run),
    renderHeadlines(sections),
    ...sections.map(renderSection),
    renderFooter(),
  ];
  return renderPage({
    title: "Leat: simulation report",
    main: main.join("\n"),
    results: report,
  });
}

/** The short name of each experiment. It does not depend on which experiments ran. */
const LETTERS: Record<Experiment["kind"], string> = {
  scale_out: "a",
  sharing: "b",
  coordinated_reads: "c",
  worker_failure: "d",
};

function renderHeader(run: RunDescription): string {
  const versions = Object.entries(run.versions).map(([name, version]) => `${name} ${version}`);
  const facts: [string, string][] = [
    ["Run", `${run.startedAt.slice(0, 16).replace("T", " ")} UTC`],
    ["Took", `${formatNumber(run.durationSeconds, 0)} s${run.quick ? " (quick)" : ""}`],
    ["Host", `${run.hostCores} cores, ${run.platform}`],
    ["Versions", versions.join(", ")],
  ];
  return `<header>
<p class="brand">Leat</p>
<h1>What preprocessing on workers, sharing and coordinated reads gain</h1>
<p class="lead">Files were read, decoded, augmented and batched for real, by real actors; of the training, only the
accelerator's step time is simulated.</p>
${renderFacts(facts, run.commandLine)}
${renderList("corpus", run.corpus)}
</header>`;
}

function renderHeadlines(
  sections: readonly (PageSection & Pick<Summary, "headline">)[],
): string {
  const tiles = sections.flatMap(({ id, letter, headline }) =>
    headline === undefined ? [] : [renderTile(id, letter, headline)]
  );
  if (tiles.length === 0) return "";
  return `<nav class="tiles" aria-label="Experiments">\n${tiles.join("\n")}\n</nav>`;
}

function renderTile(id: string, letter: string, headline: Headline): string {
  const { quantity, unit, digits, meaning } = headline;
  const space = unit === "×" ? "" : " ";
  const number = `${formatNumber(displayValue(quantity, unit), digits)}${space}${unit}`;
  return `<a class="tile" href="#${id}"><span class="letter">(${letter})</span>
<strong>${escape(number)}</strong>
<span>${escape(meaning)} <em>${quantity.provenance}</em></span></a>`;
}

function renderFooter(): string {
  const { cores, memoryGB, dollarsPerHour } = PAPER_WORKER_MACHINE;
  return `<footer>
<h2>How to read this</h2>
<p><strong>Measured</strong> numbers (filled marks, plain digits) come from a run on the host named above.
<strong>Modelled</strong> ones (hollow marks, ${MODELLED_MARK}) were computed from a model: a price, or the simulated
accelerator's step time.</p>
<p>Cost is equation 1 of Audibert et al., “tf.data service: A Case for Disaggregating ML Input Data
Processing” (SoCC 2023), at the prices given there: ${
    formatNumber(dollarsPerHour, 2)
  } USD an hour for a worker machine of
${cores} cores and ${memoryGB} GB, of which the used share is paid, and
${
    formatNumber(PAPER_TRAINER_MACHINE.dollarsPerHour, 2)
  } USD an hour for a trainer with its accelerator, paid whole.</p>
</footer>`;
}
