/** Detects growth: compares the end of a run with its beginning. */
import { percentile } from "../lib/statistics.ts";
import { type Measure, MEASURES, type Sample } from "./samples.ts";

/** The unit of a measure, and the allowed growth in this unit and in percent. */
export const MARGINS: Readonly<
  Record<Measure, { readonly unit: string; readonly more: number; readonly percent: number }>
> = {
  rss: { unit: "MiB", more: 32, percent: 25 },
  heap: { unit: "MiB", more: 4, percent: 15 },
  threads: { unit: "threads", more: 2, percent: 10 },
  files: { unit: "handles", more: 8, percent: 10 },
};

/** This share of a run is ignored, because code is compiled and pools are filled. */
export const WARM_UP_SHARE = 0.25;
/** A process that lives for a smaller share of the run is not compared. */
const LIFE_SHARE_MIN = 0.6;
const THIRDS = 3;
/** With fewer samples in a third, a process gets no verdict. */
const SAMPLES_MIN = 3;
/** The fewest samples in a whole run that allow a verdict. */
export const SAMPLES_OF_RUN_MIN = Math.ceil(THIRDS * SAMPLES_MIN / (1 - WARM_UP_SHARE));
/** The quantile that is compared. It is the level that remains when jobs end. */
const QUARTILE = 0.25;
/** A value creeps if it rises from each of this many parts of the run to the next, and does not slow down. */
const PARTS = 8;
/** A creeping value may grow by this share of the margin, so that a slow leak is found early. */
export const CREEP_SHARE = 0.25;
/**
 * A rise that slows down to less than this share of its pace will end by itself: for example, the table
 * of known senders fills up over a few thousand jobs. A leak keeps its pace, except for noise.
 */
const SLOWER = 0.7;

/** One measure of one process. */
export interface Trend {
  readonly process: string;
  readonly measure: Measure;
  readonly first: number;
  readonly last: number;
  /** The largest allowed `last`. */
  readonly limit: number;
  readonly grows: boolean;
}

/** The trends of all processes that have lived long enough, over a run of this many seconds. */
export function trendsOf(
  series: ReadonlyMap<string, readonly Sample[]>,
  seconds: number,
): Trend[] {
  return [...series].flatMap(([process, samples]) => {
    const lifeSeconds = (samples.at(-1)?.seconds ?? 0) - (samples[0]?.seconds ?? 0);
    if (lifeSeconds < LIFE_SHARE_MIN * seconds) return [];
    return MEASURES.flatMap((measure) => trendOf(process, measure, samples, seconds) ?? []);
  });
}

function trendOf(
  process: string,
  measure: Measure,
  samples: readonly Sample[],
  seconds: number,
): Trend | undefined {
  const warm = samples.filter((sample) => sample.seconds >= WARM_UP_SHARE * seconds)
    .map((sample) => sample[measure])
    .filter((value) => value !== undefined);
  const length = Math.floor(warm.length / THIRDS);
  if (length < SAMPLES_MIN) return undefined;
  const first = percentile(warm.slice(0, length), QUARTILE);
  const last = percentile(warm.slice(-length), QUARTILE);
  const { more, percent } = MARGINS[measure];
  const margin = Math.max(more, first * percent / 100);
  const limit = first + (creeps(warm) ? CREEP_SHARE : 1) * margin;
  return { process, measure, first, last, limit, grows: last > limit };
}

/** Whether the values rise all the time, without slowing down. */
function creeps(values: readonly number[]): boolean {
  const length = Math.floor(values.length / PARTS);
  if (length < SAMPLES_MIN) return false;
  const parts = Array.from(
    { length: PARTS },
    (_, i) => percentile(values.slice(i * length, (i + 1) * length), QUARTILE),
  );
  const rises = parts.slice(1).map((part, i) => part - parts[i]!);
  const half = Math.floor(rises.length / 2);
  const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
  return rises.every((rise) => rise > 0) &&
    sum(rises.slice(-half)) >= SLOWER * sum(rises.slice(0, half));
}
