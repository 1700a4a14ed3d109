/** The parts of a report: one self-contained HTML page, with sections of plots and a table. */

import { LeatError } from "../../core/error.ts";
import { UsageError } from "./args.ts";
import type { Figure, LegendEntry } from "./line_chart.ts";
import { REPORT_STYLE } from "./report_style.ts";
import {
  cellText,
  headingOf,
  isModelled,
  isTextColumn,
  MODELLED_LEGEND,
  MODELLED_MARK,
  type Table,
} from "./table.ts";

interface Page {
  readonly title: string;
  /** The content as HTML. */
  readonly main: string;
  /** The content as plain data, for programs. */
  readonly results: unknown;
}

export interface PageSection {
  readonly id: string;
  readonly letter: string;
  readonly title: string;
  readonly finding: string;
  readonly figures: readonly Figure[];
  /** Default: none. */
  readonly table?: Table;
  readonly notes: string[];
}

/**
 * Checks that a report can be written to `path`.
 * @throws {UsageError} naming the path, the reason and the option.
 */
export function requireWritable(path: string, option: string): void {
  const probe = temporaryOf(path);
  try {
    if (isFolder(path)) throw new LeatError("invalid_argument", "it is a folder");
    Deno.writeTextFileSync(probe, "");
    Deno.removeSync(probe);
  } catch (cause) {
    const { message } = LeatError.from(cause);
    throw new UsageError(
      `Cannot write the report '${path}': ${message}. Name another file with ${option}`,
      { cause },
    );
  }
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

/**
 * Writes a page to a file, or replaces the file. It renames a temporary file, so that an interrupted program
 * leaves no partial page. If that fails, it removes the temporary file.
 */
export function writePage(html: string, path: string): void {
  const temporary = temporaryOf(path);
  try {
    Deno.writeTextFileSync(temporary, html);
    Deno.renameSync(temporary, path);
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  }
}

/** Removes a file. An error of it would hide the one that matters. */
function removeQuietly(path: string): void {
  try {
    Deno.removeSync(path);
  } catch {
    // The file was never made, or the folder can no longer be written.
  }
}

function temporaryOf(path: string): string {
  return `${path}.${Deno.pid}.tmp`;
}

/** Renders a page as HTML. It loads no script, style or picture from elsewhere. */
export function renderPage({ title, main, results }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)}</title>
<style>${REPORT_STYLE}</style>
</head>
<body>
<main>
${main}
</main>
<script type="application/json" id="results">${embeddedJson(results)}</script>
</body>
</html>
`;
}

/** Renders a section as HTML. */
export function renderSection(section: PageSection): string {
  const { id, letter, title, finding, figures, table, notes } = section;
  return `<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title"><span class="letter">(${letter})</span> ${escape(title)}</h2>
<p class="finding">${escape(finding)}</p>
<div class="figures">
${figures.map(renderFigure).join("\n")}
</div>
${table === undefined ? "" : renderTable(table)}
${renderList("notes", notes)}
</section>`;
}

/** Renders terms and descriptions as HTML; `command` gets a line of its own. */
export function renderFacts(
  facts: readonly (readonly [string, string])[],
  command: string,
): string {
  return `<dl class="facts">
${facts.map(([name, value]) => `<div><dt>${name}</dt><dd>${escape(value)}</dd></div>`).join("\n")}
<div class="command"><dt>Command</dt><dd><code>${escape(command)}</code></dd></div>
</dl>`;
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

/** Renders lines as an HTML list; an empty text if there are none. */
export function renderList(className: string, lines: string[]): string {
  if (lines.length === 0) return "";
  return `<ul class="${className}">${
    lines.map((line) => `<li>${escape(line)}</li>`).join("")
  }</ul>`;
}

/** JSON that cannot end its enclosing element. */
function embeddedJson(results: unknown): string {
  return JSON.stringify(results).replaceAll("<", "\\u003c");
}

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** Text as HTML. */
export function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
