/** Decides which choices the sweep measures, and evaluates the measurements. Pure. */
import type { OffloadChoice } from "../../../mod.ts";
import { mean, quantile } from "../../lib/statistics.ts";

/** Every candidate is tried with these ratios. */
const COARSE = [0.5, 1];
/** A candidate that is nearly the fastest is also tried with these ratios. */
const FINE = [0.25, 0.75];
/** A candidate that is slower than the fastest choice by this factor is tried no further. */
const SLOW_FACTOR = 1.3;
/** The fastest candidate is also tried with its ratio changed by this. */
const RATIO_STEP = 0.125;
/** How many of the fastest choices are measured again, alternately with the decision. */
const FASTEST = 2;

export const LOCAL: OffloadChoice = { candidate: null, ratio: 0 };
export const ALL_REMOTE: OffloadChoice = { candidate: "p'3", ratio: 1 };
export const HALF_REMOTE: OffloadChoice = { candidate: "p'3", ratio: 0.5 };
const FIXED = [LOCAL, ALL_REMOTE, HALF_REMOTE];

/** A choice, and the step time with it in each round, in ms. */
export interface Timed {
  readonly choice: OffloadChoice;
  readonly times: readonly number[];
}

/** The throughput that a training loses compared with better choices, as a share. */
export interface Regret {
  /** The median step time over the rounds, in ms. */
  readonly ms: number;
  /** Compared with the best of all choices. Negative: better than all choices that were tried. */
  readonly ofAll: number;
  /** Compared with the best of local only, all remote and half. */
  readonly ofThree: number;
  /** The standard error of `ofAll`, estimated from the rounds. */
  readonly error: number;
}

/** The evaluation of a decision. */
export interface Verdict {
  readonly best: OffloadChoice;
  readonly bestOfThree: OffloadChoice;
  /** Median step times over the rounds, in ms. */
  readonly bestMs: number;
  readonly bestOfThreeMs: number;
  readonly decided: Regret;
  /** The regret of the training that started with the decision and corrected its ratio. */
  readonly corrected: Regret;
  /** The interquartile range of a choice's rounds, as a share of their median. Mean of all choices. */
  readonly spread: number;
}

/** The first choices of the sweep: the fixed ones, and each candidate with the coarse ratios. */
export function coarseChoices(candidates: readonly string[]): OffloadChoice[] {
  return distinct([...FIXED, ...withRatios(candidates, COARSE)]);
}

/**
 * The next choices of the sweep: finer ratios of the fast candidates. The throughput of a candidate
 * rises with its ratio up to the best ratio, and falls above it, so few ratios suffice.
 */
export function fineChoices(coarse: readonly Timed[]): OffloadChoice[] {
  const limit = SLOW_FACTOR * Math.min(...coarse.map(medianOf));
  const near = coarse.filter((timed) => medianOf(timed) <= limit)
    .flatMap(({ choice: { candidate } }) => candidate === null ? [] : [candidate]);
  return withRatios([...new Set(near)], FINE);
}

/** The choices that are measured in many rounds. */
export function finalistsOf(first: readonly Timed[], decision: OffloadChoice): OffloadChoice[] {
  const sorted = first.toSorted((a, b) => medianOf(a) - medianOf(b));
  const fixed = sorted.find(({ choice }) => FIXED.some((one) => keyOf(one) === keyOf(choice)))!;
  return distinct([
    decision,
    fixed.choice,
    ...sorted.slice(0, FASTEST).map(({ choice }) => choice),
    ...nearTo(sorted[0]!.choice, sorted),
  ]);
}

/** A ratio one step from the fastest one, towards the second fastest ratio of the candidate. */
function nearTo({ candidate, ratio }: OffloadChoice, sorted: readonly Timed[]): OffloadChoice[] {
  if (candidate === null) return [];
  const second = sorted.find(({ choice }) =>
    choice.candidate === candidate && choice.ratio !== ratio
  );
  if (second === undefined) return [];
  return [{ candidate, ratio: ratio + Math.sign(second.choice.ratio - ratio) * RATIO_STEP }];
}

/**
 * Compares the decision with the best choices.
 * @param first The times of the search, for choices that the rounds do not include.
 * @param correctedTimes The times of the training whose ratio is corrected, in each round.
 */
export function judge(
  decision: OffloadChoice,
  rounds: readonly Timed[],
  first: readonly Timed[],
  correctedTimes: readonly number[],
): Verdict {
  const timedOf = (choice: OffloadChoice) =>
    [...rounds, ...first].find((timed) => keyOf(timed.choice) === keyOf(choice))!;
  const fastest = (some: readonly Timed[]) =>
    some.reduce((best, timed) => medianOf(timed) < medianOf(best) ? timed : best);
  const best = fastest(rounds);
  const bestOfThree = fastest(FIXED.map(timedOf));
  const regretOf = (times: readonly number[]): Regret => {
    const ms = medianOf({ times });
    return {
      ...{ ms, ofAll: 1 - medianOf(best) / ms, ofThree: 1 - medianOf(bestOfThree) / ms },
      error: standardErrorOf(times.map((time, round) => 1 - best.times[round]! / time)),
    };
  };
  return {
    ...{ best: best.choice, bestOfThree: bestOfThree.choice },
    ...{ bestMs: medianOf(best), bestOfThreeMs: medianOf(bestOfThree) },
    decided: regretOf(timedOf(decision).times),
    corrected: regretOf(correctedTimes),
    spread: mean(
      rounds.map((timed) =>
        (quantile(timed.times, 0.75) - quantile(timed.times, 0.25)) / medianOf(timed)
      ),
    ),
  };
}

/** A key for comparing choices. */
export function keyOf({ candidate, ratio }: OffloadChoice): string {
  return `${candidate} ${Math.round(100 * ratio)}`;
}

export function medianOf({ times }: Pick<Timed, "times">): number {
  const sorted = times.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
}

function withRatios(candidates: readonly string[], ratios: readonly number[]): OffloadChoice[] {
  return candidates.flatMap((candidate) => ratios.map((ratio) => ({ candidate, ratio })));
}

function distinct(choices: readonly OffloadChoice[]): OffloadChoice[] {
  return [...new Map(choices.toReversed().map((choice) => [keyOf(choice), choice])).values()]
    .toReversed();
}

function standardErrorOf(values: readonly number[]): number {
  const average = mean(values);
  const variance = mean(values.map((value) => (value - average) ** 2));
  return Math.sqrt(variance / Math.max(1, values.length - 1));
}
