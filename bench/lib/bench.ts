/**
 * Compares Leat with a bare primitive in one run. Both are opened, warmed up, and measured in
 * alternating windows, so that other load on the machine affects both. Only the ratio matters.
 */

import { type Load, median } from "../bare/load.ts";

/** A pair of loads, and the ratio that Leat must reach. */
export interface Bench {
  /** A short, unique name for `--filter` and the table. */
  readonly name: string;
  /** The unit of the table: what both loads count per second, times `scale`. */
  readonly unit: string;
  /**
   * Shows the duration of one unit instead of the rate; `unit` must be `"ms"`. Ratios are always those
   * of rates.
   */
  readonly isDuration?: boolean;
  /** The lowest accepted ratio of Leat to bare. */
  readonly floor: number;
  /** Table units per unit of the loads. Default: 1. */
  readonly scale?: number;
  /** The load without Leat. */
  bare(): Load | Promise<Load>;
  /** The same work through Leat. */
  leat(): Load | Promise<Load>;
}

/** Options of running a bench. */
export interface RatioOptions {
  /** Windows of each load. Default: 7. */
  readonly rounds?: number;
  /** Length of a window in milliseconds. Default: 300. */
  readonly windowMs?: number;
  /** How long each load runs before the first window, in milliseconds. Default: 600. */
  readonly warmUpMs?: number;
}

/** The result of a bench. */
export interface RatioResult {
  readonly name: string;
  readonly unit: string;
  /** Medians of the rates, or durations of one unit. */
  readonly bare: number;
  readonly leat: number;
  /** The median of the rounds' ratios. Each is the ratio of two adjacent windows. */
  readonly ratio: number;
  readonly floor: number;
  readonly passed: boolean;
  readonly rounds: readonly { readonly bare: number; readonly leat: number }[];
}

/** Runs one bench. */
export async function runRatio(bench: Bench, options: RatioOptions = {}): Promise<RatioResult> {
  const { rounds: count = 7, windowMs = 300, warmUpMs = 600 } = options;
  const scale = bench.scale ?? 1;
  await using bare = await bench.bare();
  await using leat = await bench.leat();
  await bare.window(warmUpMs);
  await leat.window(warmUpMs);
  const rounds: { bare: number; leat: number }[] = [];
  while (rounds.length < count) {
    rounds.push({
      bare: scale * await bare.window(windowMs),
      leat: scale * await leat.window(windowMs),
    });
  }
  const shown = (rate: number) => bench.isDuration === true ? 1000 / rate : rate;
  const ratio = median(rounds.map((round) => round.leat / round.bare));
  return {
    name: bench.name,
    unit: bench.unit,
    bare: shown(median(rounds.map((round) => round.bare))),
    leat: shown(median(rounds.map((round) => round.leat))),
    ratio,
    floor: bench.floor,
    passed: ratio >= bench.floor,
    rounds,
  };
}

const HEADER = ["bench", "unit", "bare", "Leat", "ratio", "floor", ""];

/** Formats results as a table in plain text. */
export function resultTable(results: readonly RatioResult[]): string {
  const rows = results.map((result) => [
    result.name,
    result.unit,
    figureText(result.bare),
    figureText(result.leat),
    result.ratio.toFixed(2),
    result.floor.toFixed(2),
    result.passed ? "" : "below",
  ]);
  const widths = HEADER.map((head, i) =>
    Math.max(head.length, ...rows.map((row) => row[i]?.length ?? 0))
  );
  const line = (cells: readonly string[]) =>
    cells.map((cell, i) => i < 2 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))
      .join("  ").trimEnd();
  const rule = widths.map((width) => "─".repeat(width)).join("  ").trimEnd();
  return [line(HEADER), rule, ...rows.map(line)].join("\n");
}

/** Formats a number with thousands separators: 3 decimals below 10, 1 below 1,000, else none. */
function figureText(value: number): string {
  const digits = value >= 1000 ? 0 : value >= 10 ? 1 : 3;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}
