/** Formats the measured sweep as a table. */
import type { OffloadChoice } from "../../../mod.ts";
import { measured, type Quantity, type Unit } from "../../lib/quantity.ts";
import { counted } from "../../lib/counted.ts";
import { mean, standardErrorOf } from "../../lib/statistics.ts";
import { percent } from "../../lib/table.ts";
import { TRAINING_STEPS } from "../goals.ts";
import type { Found } from "../tables.ts";
import { type Loss, medianOf, type Regret } from "./choices.ts";
import { nameOf } from "./environments.ts";
import type { SweepResults } from "./sweep.ts";

const MS_PER_SECOND = 1_000;
/** The goals: throughput lost against brute force, and against local, all remote and half. */
const REGRET_MAX = 0.05;
const REGRET_OF_THREE_MAX = 0.02;

/** Returns a table with a row for each environment, and sentences about all environments. */
export function sweepTable(results: SweepResults): Found {
  const { swept } = results;
  const [rates, shares] = [
    { unit: "batches/s" as const, digits: 1 },
    { unit: "%" as const, digits: 1 },
  ];
  return {
    id: "sweep",
    title: "Measured: the decision against brute force",
    finding: findingOf(results),
    table: {
      title: "Measured: the decision against brute force",
      columns: [
        { heading: "workload" },
        { heading: "cores here : of workers" },
        { heading: "own CPUs" },
        { heading: "step", unit: "ms" },
        ...["decision", "corrected", "best", "best of three"].map((heading) => ({ heading })),
        ...["decision", "corrected", "best", "best of three"].map((heading) => ({
          heading,
          ...rates,
        })),
        ...["decision", "corrected"].flatMap((training) =>
          [`${training}: regret`, "±", "to best of three", "±"].map((heading) => ({
            heading,
            ...shares,
          }))
        ),
        { heading: "rounds" },
      ],
      rows: swept.map((at) => {
        const { verdict, environment, decision, corrected, stepMs, hasOwnCpus, rounds } = at;
        const { best, bestMs, bestOfThree, bestOfThreeMs } = verdict;
        const rate = (ms: number) => measured(MS_PER_SECOND / ms, "batches/s");
        return [
          ...[environment.letter, nameOf(environment), hasOwnCpus ? "yes" : "no"],
          quantity(stepMs, "ms"),
          ...[decision, corrected, best, bestOfThree].map(choiceText),
          ...[verdict.decided.ms, verdict.corrected.ms, bestMs, bestOfThreeMs].map(rate),
          ...[verdict.decided, verdict.corrected].flatMap(({ ofAll, ofThree }) =>
            [ofAll, ofThree].flatMap(({ share, error }) => [share, error])
              .map((value) => quantity(value, "1"))
          ),
          rounds,
        ];
      }),
    },
  };
}

function findingOf({ swept, lanes, whyShared, whyNoCable, failed }: SweepResults): string {
  if (swept.length === 0) return `Nothing could be measured: ${failed.join(". ")}.`;
  const slow = swept.filter(({ environment }) => environment.step === "slow");
  const planning = swept.map(({ planningMs, verdict }) =>
    planningMs / (TRAINING_STEPS * verdict.decided.ms)
  );
  const sentences = [
    ...regretsOf("The decision", swept.map(({ verdict }) => verdict.decided)),
    ...regretsOf(
      "Corrected while training runs, it",
      swept.map(({ verdict }) => verdict.corrected),
    ),
    `The quartiles of a choice's rounds are ${
      percent(mean(swept.map(({ verdict }) => verdict.spread)))
    } apart on average.`,
    `With a slow accelerator the decision offloads nothing in ` +
    `${slow.filter(({ decision }) => decision.candidate === null).length} of ${slow.length}. ` +
    `Planning took ${percent(mean(planning))} of 10,000 steps on average, at most ` +
    `${percent(Math.max(...planning))}.`,
    whyShared === undefined
      ? `Trainers and workers had physical cores of their own, ${counted(lanes, "pair")} of them.`
      : `Trainers and workers shared a core (${whyShared}), so they disturbed each other.`,
    ...(whyNoCable === undefined
      ? []
      : [`No slow links, because no cable could be made: ${whyNoCable}.`]),
    ...failed.map((one) => `Failed: ${one}.`),
  ];
  const fallbacks = swept.reduce((sum, { fallbacks }) => sum + fallbacks, 0);
  if (fallbacks > 0) sentences.push(`The service failed ${fallbacks} times.`);
  return sentences.join(" ");
}

/** Sentences that say in how many environments the goals are met. */
function regretsOf(subject: string, regrets: readonly Regret[]): string[] {
  const [ofAll, ofThree] = [regrets.map(({ ofAll }) => ofAll), regrets.map((at) => at.ofThree)];
  const shares = ofAll.map(({ share }) => share);
  const among = (losses: readonly Loss[], isCounted: (loss: Loss) => boolean) =>
    `${losses.filter(isCounted).length} of ${losses.length}`;
  const atMost = (max: number) => ({ share }: Loss) => share <= max;
  const surelyAbove = (max: number) => ({ least }: Loss) => least > max;
  return [
    `${subject} is at most ${percent(REGRET_MAX)} below the best of brute force in ` +
    `${among(ofAll, atMost(REGRET_MAX))} environments, and at most ` +
    `${percent(REGRET_OF_THREE_MAX)} below the best of local only, all remote and half remote in ` +
    `${among(ofThree, atMost(REGRET_OF_THREE_MAX))}.`,
    `By more than chance (with 95 % confidence) it misses these in ` +
    `${among(ofAll, surelyAbove(REGRET_MAX))} and ` +
    `${among(ofThree, surelyAbove(REGRET_OF_THREE_MAX))}.`,
    `Its regret is ${percent(medianOf({ times: shares }))} in the median environment, and ` +
    `${percent(mean(shares))} on average, with a standard error of ` +
    `${percent(standardErrorOf(shares))}.`,
  ];
}

function quantity(value: number, unit: Unit): Quantity {
  return { value, unit, provenance: "measured" };
}

function choiceText({ candidate, ratio }: OffloadChoice): string {
  return candidate === null ? "local" : `${candidate} ${Math.round(100 * ratio)} %`;
}
