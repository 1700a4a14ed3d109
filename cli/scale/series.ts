/** Measures one size after the other. If a size fails, the others are still measured. */
import { LeatError } from "../../core/error.ts";
import type { Gap, ScaleResults, Series, SizeRun, SweepRun } from "./measurements.ts";

/** The sizes to measure, in this order. */
export interface Wanted {
  readonly sizes: readonly number[];
  readonly sweep: readonly number[];
}

/** Measures a size of each series. */
interface Measure {
  size(workers: number): Promise<SizeRun>;
  sweep(workers: number): Promise<SweepRun>;
}

/** The reason of a gap whose size was not tried yet. */
const NOT_TRIED = "not measured yet when this was written";

/** Whether a gap's size was not tried yet. */
export function isToCome({ reason }: Gap): boolean {
  return reason === NOT_TRIED;
}

/**
 * Measures all sizes.
 * @param onDone Called after each size with the results so far, in which untried sizes are gaps. So no
 * measured size is lost if this process dies, for example because it runs out of memory.
 */
export async function measureAll(
  wanted: Wanted,
  measure: Measure,
  onDone: (results: ScaleResults) => void,
): Promise<ScaleResults> {
  const gap = (series: Series) => (workers: number) => ({ series, workers, reason: NOT_TRIED });
  const toCome: Gap[] = [
    ...wanted.sizes.map(gap("cluster sizes")),
    ...wanted.sweep.map(gap("worker sweep of the paper")),
  ];
  const sizes: SizeRun[] = [];
  const sweep: SweepRun[] = [];
  const failed: Gap[] = [];
  for (let next; (next = toCome.shift()) !== undefined;) {
    const { series, workers } = next;
    try {
      if (series === "cluster sizes") sizes.push(await measure.size(workers));
      else sweep.push(await measure.sweep(workers));
    } catch (error) {
      failed.push({ series, workers, reason: LeatError.from(error).message });
    }
    onDone({ sizes, sweep, gaps: [...failed, ...toCome] });
  }
  return { sizes, sweep, gaps: failed };
}

/**
 * Adds a warm-up before the first size that `measure` gets. If the warm-up fails, this size fails, and
 * the next size warms up again.
 */
export function afterWarmUp<R>(
  warmUp: () => Promise<unknown>,
  measure: (workers: number) => Promise<R>,
): (workers: number) => Promise<R> {
  let isWarm = false;
  return async (workers) => {
    if (!isWarm) await warmUp();
    isWarm = true;
    return await measure(workers);
  };
}

/** @throws {LeatError} `unavailable` naming each size that could not be measured, and why. */
export function requireAll({ sizes, sweep, gaps }: ScaleResults): void {
  if (gaps.length === 0) return;
  const all = sizes.length + sweep.length + gaps.length;
  throw new LeatError(
    "unavailable",
    `${gaps.length} of ${all} sizes could not be measured: ${gaps.map(gapText).join("; ")}`,
  );
}

/** Returns a gap as a sentence. */
export function gapText({ series, workers, reason }: Gap): string {
  return `${series}, ${workers} workers: ${reason}`;
}
