/**
 * Whether something grows: what stands at the end of a run against what stood at its beginning.
 *
 * @module
 */
import { type Measure, MEASURES, type Sample } from "./samples.ts";

/** What is in a measure, and how much more there may be at the end, in it and in percent. */
export const MARGINS: Readonly<
  Record<Measure, { readonly unit: string; readonly more: number; readonly percent: number }>
> = {
  rss: { unit: "MiB", more: 32, percent: 25 },
  heap: { unit: "MiB", more: 4, percent: 15 },
  threads: { unit: "threads", more: 2, percent: 10 },
  files: { unit: "handles", more: 8, percent: 10 },
};

/** The beginning of a run is not looked at: code is compiled, and pools are filled. */
export const WARM_UP_SHARE = 0.25;
/** A life that is shorter than this part of the run has no beginning and end to compare. */
const LIFE_SHARE_MIN = 0.6;
const THIRDS = 3;
/** Below this many samples in a third nothing is said. */
const SAMPLES_MIN = 3;
/** What stays when jobs end: a quarter of the samples are less. */
const QUARTILE = 0.25;

/** One measure of one process. */
export interface Trend {
  readonly process: string;
  readonly measure: Measure;
  readonly first: number;
  readonly last: number;
  /** The most that `last` may be. */
  readonly limit: number;
  readonly grows: boolean;
}

/** The trends of all processes that have lived long enough, over a run of so many seconds. */
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
  const first = lowerQuartile(warm.slice(0, length));
  const last = lowerQuartile(warm.slice(-length));
  const { more, percent } = MARGINS[measure];
  const limit = first + Math.max(more, first * percent / 100);
  return { process, measure, first, last, limit, grows: last > limit };
}

function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * QUARTILE)]!;
}
