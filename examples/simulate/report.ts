/**
 * The report of the main job: one HTML page that needs nothing but itself.
 *
 * @module
 */

import { PAPER_TRAINER_MACHINE, PAPER_WORKER_MACHINE } from "../../mod.ts";
import { type Figure, figuresOf, type LegendEntry } from "./charts.ts";
import { REPORT_STYLE } from "./report_style.ts";
import type { Experiment, RunDescription, SimulationReport } from "./results.ts";
import { type Headline, summarize, type Summary } from "./summary.ts";
import {
  cellText,
  displayValue,
  formatNumber,
  headingOf,
  isModelled,
  isTextColumn,
  MODELLED_LEGEND,
  MODELLED_MARK,
  type Table,
} from "./table.ts";

/**
 * Writes the report to a file, which is there whole or not at all.
 *
 * @param report What the experiments found.
 * @param path The file to write; one that is there is replaced.
 *
 * @example
 * ```ts
 * import { writeReport } from "./report.ts";
 * import type { SimulationReport } from "./results.ts";
 *
 * async function save(report: SimulationReport) {
 *   await writeReport(report, "report.html");
 * }
 * ```
 */
export async function writeReport(report: SimulationReport, path: string): Promise<void> {
  const temporary = `${path}.${Deno.pid}.tmp`;
  await Deno.writeTextFile(temporary, renderReport(report));
  await Deno.rename(temporary, path);
}

/** The report as an HTML page: no script, no link, no picture from elsewhere. */
export function renderReport(report: SimulationReport): string {
  const sections = report.experiments.map((experiment) => ({
    id: experiment.kind.replace("_", "-"),
    letter: LETTERS[experiment.kind],
    summary: summarize(experiment),
    figures: figuresOf(experiment),
    notes: experiment.notes,
  }));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Leat: simulation report</title>
<style>${REPORT_STYLE}</style>
</head>
<body>
<main>
${renderHeader(report.run)}
${renderHeadlines(sections)}
${sections.map(renderSection).join("\n")}
${renderFooter()}
</main>
<script type="application/json" id="results">${embeddedJson(report)}</script>
</body>
</html>
`;
}

/** What each experiment is called for short, whichever others ran. */
const LETTERS: Record<Experiment["kind"], string> = {
  scale_out: "a",
  sharing: "b",
  coordinated_reads: "c",
  worker_failure: "d",
};

interface Section {
  id: string;
  letter: string;
  summary: Summary;
  figures: Figure[];
  notes: string[];
}

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
<h1>What preprocessing on workers, sharing and coordinated reads bought</h1>
<p class="lead">Files were read, decoded, augmented and batched for real, by real actors; of the training, only the
accelerator's step time is simulated.</p>
<dl class="facts">
${facts.map(([name, value]) => `<div><dt>${name}</dt><dd>${escape(value)}</dd></div>`).join("\n")}
<div class="command"><dt>Command</dt><dd><code>${escape(run.commandLine)}</code></dd></div>
</dl>
${renderList("corpus", run.corpus)}
</header>`;
}

function renderHeadlines(sections: Section[]): string {
  const tiles = sections.flatMap(({ id, letter, summary }) =>
    summary.headline === undefined ? [] : [renderTile(id, letter, summary.headline)]
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

function renderSection(section: Section): string {
  const { id, letter, summary, figures, notes } = section;
  return `<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title"><span class="letter">(${letter})</span> ${escape(summary.title)}</h2>
<p class="finding">${escape(summary.finding)}</p>
<div class="figures">
${figures.map(renderFigure).join("\n")}
</div>
${renderTable(summary.table)}
${renderList("notes", notes)}
</section>`;
}

function renderFigure(figure: Figure): string {
  return `<figure${figure.wide ? ' class="wide"' : ""}>
<figcaption>${escape(figure.title)}</figcaption>
<ul class="legend">${figure.legend.map(renderLegendEntry).join("")}</ul>
<div class="plot"${figure.wide ? ' tabindex="0"' : ""}>${figure.svg}</div>
</figure>`;
}

function renderLegendEntry({ label, color, swatch }: LegendEntry): string {
  const shape = {
    line: `<path d="M1 7H23" stroke-width="2.5"></path>`,
    broad: `<path d="M1 7H23" stroke-width="6" stroke-opacity="0.4"></path>`,
    dashed: `<path d="M1 7H23" stroke-width="2" stroke-dasharray="7 4"></path>`,
    dotted: `<path d="M1 7H23" stroke-width="1.5" stroke-dasharray="3 4"></path>`,
    area: `<path d="M5 1H19V13H5Z" fill="${color}" stroke="none"></path>`,
    "measured bar": `<path d="M3 2H21V12H3Z" fill="${color}" stroke="none"></path>`,
    "modelled bar":
      `<path d="M3 2H21V12H3Z" fill="${color}" fill-opacity="0.3" stroke-dasharray="4 2"></path>`,
    measured: `<circle cx="12" cy="7" r="4.5" fill="${color}"></circle>`,
    modelled: `<path d="M12 1L18 7L12 13L6 7Z" stroke-width="1.8"></path>`,
  }[swatch];
  return `<li><svg width="24" height="14" viewBox="0 0 24 14" fill="none" stroke="${color}" ` +
    `aria-hidden="true">${shape}</svg>${escape(label)}</li>`;
}

function renderTable(table: Table): string {
  const className = table.columns.map((_, index) => isTextColumn(table, index) ? "text" : "number");
  const head = table.columns
    .map((column, index) =>
      `<th scope="col" class="${className[index]}">${escape(headingOf(column))}</th>`
    )
    .join("");
  const rows = table.rows.map((row) => {
    const cells = table.columns.map((column, index) => {
      const cell = row[index];
      const modelled = isModelled(cell);
      const text = escape(cellText(cell, column)).replace(` ${MODELLED_MARK}`, "");
      const mark = modelled ? `<abbr title="modelled">${MODELLED_MARK}</abbr>` : "";
      return `<td class="${className[index]}${modelled ? " modelled" : ""}">${text}${mark}</td>`;
    });
    return `<tr>${cells.join("")}</tr>`;
  });
  const legend = table.rows.some((row) => row.some(isModelled))
    ? `<p class="table-legend">${escape(MODELLED_LEGEND)}</p>`
    : "";
  return `<details open>
<summary>${escape(table.title)}</summary>
<div class="scroll" tabindex="0" role="region" aria-label="${escape(table.title)}"><table>
<thead><tr>${head}</tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table></div>${legend}
</details>`;
}

function renderList(className: string, lines: string[]): string {
  if (lines.length === 0) return "";
  return `<ul class="${className}">${
    lines.map((line) => `<li>${escape(line)}</li>`).join("")
  }</ul>`;
}

function renderFooter(): string {
  const { cores, memoryGB, dollarsPerHour } = PAPER_WORKER_MACHINE;
  return `<footer>
<h2>How to read this</h2>
<p><strong>Measured</strong> numbers (filled marks, plain digits) were read off a run on the host named above.
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

/** JSON that cannot end the element it stands in. */
function embeddedJson(report: SimulationReport): string {
  return JSON.stringify(report).replaceAll("<", "\\u003c");
}

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
