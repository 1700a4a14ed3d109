/**
 * Measures one case. All sides are started and warmed up. In each round every side runs for one window,
 * one after the other, so that other load on the machine affects all of them. Each round begins with
 * another side. A window begins when the side before it has refilled its buffers.
 */
import { median } from "../bare/load.ts";
import type { PeerCase } from "./cases.ts";
import { untilIdle } from "./idle.ts";
import { Side, type SideCommand, type Window } from "./side.ts";

/** Options of measuring. */
interface MeasureOptions {
  readonly rounds: number;
  readonly windowMs: number;
  /** Waits until a side's processes are idle. Default: as their CPU time tells. */
  readonly untilIdle?: (pid: number) => Promise<unknown>;
}

/** The result of one side. */
interface SideResult {
  readonly side: string;
  /** Units per second, of each window. */
  readonly rates: readonly number[];
  /** The median of the rates. */
  readonly median: number;
  /** (highest − lowest) / median. */
  readonly spread: number;
  /** The median over the rounds of Leat's rate ÷ this side's; 1 for Leat. */
  readonly leatRatio: number;
  /** The spread of these ratios. */
  readonly ratioSpread: number;
  /** Other measurements, by name. */
  readonly also?: Window["also"];
}

/** The result of a case. */
export interface CaseResult {
  readonly name: string;
  readonly part: PeerCase["part"];
  readonly unit: string;
  readonly sides: readonly SideResult[];
  /** Sides that failed, and why. */
  readonly failed: Readonly<Record<string, string>>;
}

/** The name of Leat's own side. */
export const LEAT = "leat";

/** Runs the sides of a case. `commands` has the sides by name. */
export async function measureCase(
  { name, part, unit }: PeerCase,
  commands: ReadonlyMap<string, SideCommand>,
  { rounds, windowMs, untilIdle: idle = untilIdle }: MeasureOptions,
): Promise<CaseResult> {
  const failed: Record<string, string> = {};
  const windows = new Map<string, { rates: number[]; also?: Window["also"] }>();
  await using stack = new AsyncDisposableStack();
  const sides = new Map<string, Side>();
  for (const [side, command] of commands) {
    sides.set(side, stack.use(new Side(command)));
    windows.set(side, { rates: [] });
  }
  const runAll = async (ms: number, first: number, isCounted: boolean) => {
    const order = [...sides];
    for (const [side, process] of [...order.slice(first), ...order.slice(0, first)]) {
      try {
        const { rate, also } = await process.window(ms);
        await idle(process.pid);
        const recorded = windows.get(side)!;
        if (isCounted) recorded.rates.push(rate);
        if (also !== undefined) recorded.also = also;
      } catch (error) {
        failed[side] = error instanceof Error ? error.message : String(error);
        sides.delete(side);
        windows.delete(side);
      }
    }
  };
  await runAll(windowMs, 0, false);
  for (let round = 0; round < rounds; round++) await runAll(windowMs, round % sides.size, true);
  const leat = windows.get(LEAT)?.rates ?? [];
  return {
    ...{ name, part, unit, failed },
    sides: [...windows].map(([side, { rates, also }]) => {
      const ratios = rates.map((rate, round) => (leat[round] ?? NaN) / rate);
      return {
        ...{ side, rates, median: median(rates), spread: spreadOf(rates) },
        ...{ leatRatio: median(ratios), ratioSpread: spreadOf(ratios) },
        ...(also === undefined ? {} : { also }),
      };
    }),
  };
}

function spreadOf(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values);
}
