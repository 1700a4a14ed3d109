/** Decides which choices the sweep measures, and evaluates the measurements. Pure. */
import type { OffloadChoice } from "../../../mod.ts";
import { mean, quantile, standardErrorOf } from "../../lib/statistics.ts";

/** Every candidate is tried with these ratios. */
const COARSE = [0.5, 1];
/** A candidate that is nearly the fastest is also tried with these ratios. */
const FINE = [0.25, 0.75];
/** A candidate that is slower than the fastest choice by this factor is tried no further. */
const SLOW_FACTOR = 1.3;
/** The fastest candidate is also tried with its ratio changed by this. */
const RATIO_STEP = 0.125;

export const LOCAL: OffloadChoice = { candidate: null, ratio: 0 };
export const ALL_REMOTE: OffloadChoice = { candidate: "p'3", ratio: 1 };
export const HALF_REMOTE: OffloadChoice = { candidate: "p'3", ratio: 0.5 };
const FIXED = [LOCAL, ALL_REMOTE, HALF_REMOTE];

/** A choice, and the step time with it in each round, in ms. */
export interface Timed {
  readonly choice: OffloadChoice;
  readonly times: readonly number[];
}

/** The throughput that a training loses, as a share. Negative: it is faster. */
export interface Loss {
  /** The mean of the rounds. */
  readonly share: number;
  /** The standard error of `share`, estimated from the rounds. */
  readonly error: number;
  /** The lower end of the 95 % confidence interval of `share`. */
  readonly least: number;
}

/** The throughput that a training loses compared with better choices. */
export interface Regret {
  /** The median step time over the rounds, in ms. */
  readonly ms: number;
  /** Compared with the best of all choices. */
  readonly ofAll: Loss;
  /** Compared with the best of local only, all remote and half. */
  readonly ofThree: Loss;
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

/**
 * The choices that are measured in many rounds: the decision, and all that it is compared with. A
 * search measures each choice once, and with no other training open, so its times do not compare.
 */
export function finalistsOf(first: readonly Timed[], decision: OffloadChoice): OffloadChoice[] {
  const sorted = first.toSorted((a, b) => medianOf(a) - medianOf(b));
  const fastest = sorted[0]!.choice;
  return distinct([decision, ...FIXED, fastest, ...nearTo(fastest, sorted)]);
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
 * @param rounds The choices of {@linkcode finalistsOf}, with a time for each round.
 * @param correctedTimes The times of the training whose ratio is corrected, in each round.
 */
export function judge(
  decision: OffloadChoice,
  rounds: readonly Timed[],
  correctedTimes: readonly number[],
): Verdict {
  const three = rounds.filter(({ choice }) => FIXED.some((one) => keyOf(one) === keyOf(choice)));
  const [best, bestOfThree] = [fastestOf(rounds), fastestOf(three)];
  const regretOf = (times: readonly number[]): Regret => ({
    ms: medianOf({ times }),
    ofAll: lossOf(times, rounds),
    ofThree: lossOf(times, three),
  });
  const decided = rounds.find(({ choice }) => keyOf(choice) === keyOf(decision))!;
  return {
    ...{ best: best.choice, bestOfThree: bestOfThree.choice },
    ...{ bestMs: medianOf(best), bestOfThreeMs: medianOf(bestOfThree) },
    decided: regretOf(decided.times),
    corrected: regretOf(correctedTimes),
    spread: mean(
      rounds.map((timed) =>
        (quantile(timed.times, 0.75) - quantile(timed.times, 0.25)) / medianOf(timed)
      ),
    ),
  };
}

/**
 * What a training loses compared with the best choice. The fastest of several inexact times is often
 * fast by chance. So each round is compared with the choice that is the fastest in the other rounds.
 */
function lossOf(times: readonly number[], choices: readonly Timed[]): Loss {
  const logs = times.map((time, round) => {
    const others = choices.map((timed) => ({ timed, times: timed.times.toSpliced(round, 1) }));
    return Math.log(fastestOf(others).timed.times[round]! / time);
  });
  const ratio = Math.exp(mean(logs));
  const [share, error] = [1 - ratio, ratio * standardErrorOf(logs)];
  return { share, error, least: share - studentFactor(logs.length - 1) * error };
}

function fastestOf<T extends Pick<Timed, "times">>(choices: readonly T[]): T {
  return choices.reduce((best, timed) => medianOf(timed) < medianOf(best) ? timed : best);
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

/** Student's t for a 95 % interval, by degrees of freedom from 1. */
const STUDENT_FACTORS = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];

/** A few rounds often agree by chance, so their interval is wider than two standard errors. */
function studentFactor(degrees: number): number {
  return degrees < 1 ? NaN : STUDENT_FACTORS[degrees - 1] ?? 2.2;
}
