/**
 * Tables as plain data, and as aligned text for a terminal. The report renders the same tables in
 * HTML.
 */

import TextTable from "cli-table3";
import { LeatError } from "../../core/error.ts";
import type { Quantity, Unit } from "./quantity.ts";
import { wrap } from "./text.ts";

/** A cell: text, a count, or a number with unit and provenance. */
export type Cell = string | number | Quantity | undefined;

export interface Column {
  /** The heading; the unit goes into `unit`. */
  heading: string;
  /** The unit of all numbers of the column; quantities are converted to it. */
  unit?: DisplayUnit;
  /**
   * Digits after the point; default 0 for text and counts, otherwise enough for three significant
   * digits.
   */
  digits?: number;
}

/** A table with a row of headings. Every row has as many cells as there are columns. */
export interface Table {
  title: string;
  columns: Column[];
  rows: Cell[][];
}

/** A unit to display a number in: the unit of the number, or a more convenient one. */
export type DisplayUnit = Unit | "%" | "×";

/** The mark after a number from a model. */
export const MODELLED_MARK = "◇";

/** The sentence that explains {@linkcode MODELLED_MARK}. */
export const MODELLED_LEGEND = `${MODELLED_MARK} modelled; every other number was measured`;

/** Headings of text tables wrap at this many characters. */
const HEADING_WIDTH = 13;

const CONVERSIONS: Partial<Record<DisplayUnit, { from: Unit; factor: number }>> = {
  "%": { from: "1", factor: 100 },
  "×": { from: "1", factor: 1 },
  MB: { from: "bytes", factor: 1e-6 },
  KB: { from: "bytes", factor: 1e-3 },
};

/** The heading of a column with its unit, for example `time (s)`. */
export function headingOf(column: Column): string {
  return column.unit === undefined || column.unit === "1"
    ? column.heading
    : `${column.heading} (${column.unit})`;
}

/**
 * Formats a cell: a quantity in its column's unit, with {@linkcode MODELLED_MARK} if it is modelled,
 * and an absent value as a dash.
 * @throws {LeatError} `invalid_argument` when the cell's unit cannot be converted to the column's.
 */
export function cellText(cell: Cell, column: Column): string {
  if (cell === undefined) return "–";
  if (typeof cell === "string") return cell;
  if (typeof cell === "number") return formatNumber(cell, column.digits ?? 0);
  const shown = formatNumber(displayValue(cell, column.unit ?? cell.unit), column.digits);
  return cell.provenance === "modelled" ? `${shown} ${MODELLED_MARK}` : shown;
}

/** Converts the value of a quantity to a display unit. */
export function displayValue(quantity: Quantity, unit: DisplayUnit): number {
  if (quantity.unit === unit) return quantity.value;
  const conversion = CONVERSIONS[unit];
  if (conversion?.from !== quantity.unit) {
    throw new LeatError(
      "invalid_argument",
      `a number in ${quantity.unit} cannot be shown in ${unit}`,
    );
  }
  return quantity.value * conversion.factor;
}

export function inUnit(quantity: Quantity, unit: Unit): Quantity {
  return { ...quantity, value: displayValue(quantity, unit), unit };
}

/**
 * Formats a number with thousands separators, and with `digits` digits after the point or else with
 * three significant digits.
 */
export function formatNumber(value: number, digits?: number): string {
  if (!Number.isFinite(value)) return "–";
  const magnitude = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  const decimals = digits ?? Math.min(Math.max(2 - magnitude, 0), 6);
  return value.toLocaleString("en", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
}

/** Formats a share with one digit after the point: `12.5 %`. */
export function percent(share: number): string {
  return `${formatNumber(100 * share, 1)} %`;
}

/** Whether a column holds text, which is aligned left; numbers are aligned right. */
export function isTextColumn(table: Table, index: number): boolean {
  return table.rows.some((row) => typeof row[index] === "string");
}

/**
 * Renders a table as lines of text: headings with units, text left, numbers right with aligned points, and
 * the legend of the mark if a number is modelled.
 */
export function renderTable(table: Table): string {
  const text = new TextTable({
    head: table.columns.map((column) => wrap(headingOf(column), HEADING_WIDTH).join("\n")),
    colAligns: table.columns.map((_, index) => isTextColumn(table, index) ? "left" : "right"),
    style: { head: [], border: [], compact: true },
  });
  const hasModelled = table.columns.map((_, index) =>
    table.rows.some((row) => isModelled(row[index]))
  );
  for (const row of table.rows) {
    text.push(table.columns.map((column, index) => {
      const cell = row[index];
      const shown = cellText(cell, column);
      // A measured number above a modelled one leaves space for the mark, so that points align.
      return hasModelled[index] && !isModelled(cell) ? `${shown}  ` : shown;
    }));
  }
  const legend = hasModelled.includes(true) ? `\n${MODELLED_LEGEND}` : "";
  return `${table.title}\n${text.toString()}${legend}`;
}

/** Whether a cell holds a modelled number. */
export function isModelled(cell: Cell): boolean {
  return typeof cell === "object" && cell.provenance === "modelled";
}
