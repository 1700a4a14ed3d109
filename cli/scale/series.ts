/**
 * Measures one size after the other. A size that fails costs that size alone.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Gap, ScaleResults, Series, SizeRun, SweepRun } from "./measurements.ts";

/** What is to be measured, in this order. */
export interface Wanted {
  readonly sizes: readonly number[];
  readonly sweep: readonly number[];
}

/** How a size of each series is measured. */
export interface Measure {
  size(workers: number): Promise<SizeRun>;
  sweep(workers: number): Promise<SweepRun>;
}

/** Why a size has no figures, until it has failed or been measured. */
const TO_COME = "not measured by the time this was written";

/** Whether a size has not had its turn yet. */
export function isToCome({ reason }: Gap): boolean {
  return reason === TO_COME;
}

/**
 * Measures all that is wanted.
 *
 * @param onDone Called after each size with what there is so far, in which a size to come is a gap: so what
 * ends this process, as a lack of memory does, costs no size that was measured.
 */
export async function measureAll(
  wanted: Wanted,
  measure: Measure,
  onDone: (results: ScaleResults) => void,
): Promise<ScaleResults> {
  const gap = (series: Series) => (workers: number) => ({ series, workers, reason: TO_COME });
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
 * `measure`, before whose first size there is a warm-up. One that fails costs the size that waited for it; the
 * next size tries again.
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

/** A gap as a sentence, for people. */
export function gapText({ series, workers, reason }: Gap): string {
  return `${series}, ${workers} workers: ${reason}`;
}
