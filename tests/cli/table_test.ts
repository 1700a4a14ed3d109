/** Tables as text: alignment, units, and marks. */

import { LeatError } from "../../core/error.ts";
import { measured, modelled } from "../../cli/lib/quantity.ts";
import {
  cellText,
  formatNumber,
  MODELLED_LEGEND,
  renderTable,
  type Table,
} from "../../cli/lib/table.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../assert.ts";

const TABLE: Table = {
  title: "Scale-out",
  columns: [
    { heading: "storage" },
    { heading: "workers" },
    { heading: "throughput", unit: "batches/s", digits: 1 },
    { heading: "cost of a thousand batches", unit: "USD", digits: 3 },
    { heading: "stall", unit: "%", digits: 0 },
  ],
  rows: [
    ["local", 1, measured(3.24, "batches/s"), modelled(1.2345, "USD"), measured(0.404, "1")],
    ["slow", 16, measured(1133.2, "batches/s"), measured(11.2, "USD"), undefined],
  ],
};

/** The cells of non-empty lines, with the blanks around them. */
function cells(text: string): string[][] {
  return text.split("\n").filter((line) => line.startsWith("│"))
    .map((line) => line.split("│").slice(1, -1));
}

Deno.test("renderTable makes every line equally wide", () => {
  const frame = renderTable(TABLE).split("\n").filter((line) => /^[┌├└│]/.test(line));
  assertEquals(new Set(frame.map((line) => line.length)).size, 1);
});

Deno.test("renderTable aligns text left, numbers right, and points", () => {
  const [local, slow] = cells(renderTable(TABLE)).slice(-2);
  assert(local && slow);
  assertEquals(local[0]?.trimEnd(), " local");
  assertEquals([local[1]?.trimStart(), slow[1]?.trimStart()], ["1 ", "16 "]);
  for (const column of [2, 3]) {
    const points = [local, slow].map((row) => row[column]?.indexOf("."));
    assertEquals(points[0], points[1], `column ${column}`);
    assert((points[0] ?? -1) > 0);
  }
});

Deno.test("renderTable shows units in headings, and wraps long ones", () => {
  const text = renderTable(TABLE);
  const headings = cells(text).slice(0, -2);
  const heading = (column: number) => headings.map((line) => line[column]?.trim()).join(" ").trim();
  assertEquals(heading(1), "workers");
  assertEquals(heading(2), "throughput (batches/s)");
  assertEquals(heading(3), "cost of a thousand batches (USD)");
  assertEquals(heading(4), "stall (%)");
  assert(headings.length > 1);
});

Deno.test("renderTable marks modelled numbers and explains the mark, and only then", () => {
  assertStringIncludes(renderTable(TABLE), "1.235 ◇");
  assertStringIncludes(renderTable(TABLE), MODELLED_LEGEND);
  const allMeasured = { ...TABLE, rows: TABLE.rows.slice(1) };
  assert(!renderTable(allMeasured).includes("◇"));
});

Deno.test("cellText converts to the column's unit and refuses other units", () => {
  assertEquals(
    cellText(measured(2_500_000, "bytes"), { heading: "", unit: "MB", digits: 1 }),
    "2.5",
  );
  assertEquals(cellText(measured(0.5, "1"), { heading: "", unit: "%", digits: 0 }), "50");
  assertEquals(cellText(undefined, { heading: "" }), "–");
  assertThrows(
    () => cellText(measured(1, "s"), { heading: "", unit: "bytes" }),
    LeatError,
    "a number in s cannot be shown in bytes",
  );
});

Deno.test("formatNumber keeps three significant digits by default", () => {
  assertEquals(formatNumber(0.012345), "0.0123");
  assertEquals(formatNumber(1.5), "1.50");
  assertEquals(formatNumber(123_456.7), "123,457");
  assertEquals(formatNumber(123_456.7, 1), "123,456.7");
  assertEquals(formatNumber(0), "0.00");
  assertEquals(formatNumber(Number.NaN), "–");
});
