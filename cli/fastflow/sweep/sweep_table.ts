/** The measured sweep as a table. */
import type { OffloadChoice } from "../../../mod.ts";
import { measured, type Quantity, type Unit } from "../../lib/quantity.ts";
import { counted } from "../../lib/counted.ts";
import { mean } from "../../lib/statistics.ts";
import { TRAINING_STEPS } from "../goals.ts";
import type { Found } from "../tables.ts";
import { nameOf } from "./environments.ts";
import type { SweepResults, Swept } from "./sweep.ts";

const MS_PER_SECOND = 1_000;
/** The goals: throughput lost against brute force, and against local, all remote and half. */
const REGRET_MAX = 0.05;
const REGRET_OF_THREE_MAX = 0.02;
/** What differs by fewer standard errors may be chance. */
const ERRORS = 2;

/** A row for each environment, and what they say together. */
export function sweepTable(results: SweepResults): Found {
  const { swept } = results;
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
        { heading: "decision" },
        { heading: "best" },
        { heading: "best of three" },
        ...["decision", "best", "best of three"].map((heading) => ({
          heading,
          unit: "batches/s" as const,
          digits: 1,
        })),
        { heading: "regret", unit: "%", digits: 1 },
        { heading: "± of it", unit: "%", digits: 1 },
        { heading: "to best of three", unit: "%", digits: 1 },
        { heading: "rounds" },
      ],
      rows: swept.map((at) => {
        const { verdict, environment, decision, stepMs, hasOwnCpus, rounds } = at;
        const rate = (ms: number) => measured(MS_PER_SECOND / ms, "batches/s");
        return [
          ...[environment.letter, nameOf(environment), hasOwnCpus ? "yes" : "no"],
          quantity(stepMs, "ms"),
          ...[decision, verdict.best, verdict.bestOfThree].map(choiceText),
          ...[verdict.decidedMs, verdict.bestMs, verdict.bestOfThreeMs].map(rate),
          ...[verdict.regret, verdict.error, verdict.regretOfThree].map((value) =>
            quantity(value, "1")
          ),
          rounds,
        ];
      }),
    },
  };
}

function findingOf({ swept, lanes, whyShared, whyNoCable, failed }: SweepResults): string {
  const met = (isMet: (at: Swept) => boolean) => `${swept.filter(isMet).length} of ${swept.length}`;
  if (swept.length === 0) return `Nothing could be measured: ${failed.join(". ")}.`;
  const never = swept.filter(({ environment }) => environment.step === "slow");
  const planning = swept.map(({ planningMs, verdict }) =>
    planningMs / (TRAINING_STEPS * verdict.decidedMs)
  );
  const sentences = [
    `The decision is at most ${percent(REGRET_MAX)} below the best of brute force in ` +
    `${met(({ verdict }) => verdict.regret <= REGRET_MAX)} environments, and at most ` +
    `${percent(REGRET_OF_THREE_MAX)} below the best of local only, all remote and half remote in ` +
    `${met(({ verdict }) => verdict.regretOfThree <= REGRET_OF_THREE_MAX)}.`,
    `By more than chance (${ERRORS} standard errors) it misses these in ` +
    `${met(({ verdict: { regret, error } }) => regret - ERRORS * error > REGRET_MAX)} and ${
      met(({ verdict: { regretOfThree, error } }) =>
        regretOfThree - ERRORS * error > REGRET_OF_THREE_MAX
      )
    }.`,
    `Mean regret ${
      percent(mean(swept.map(({ verdict }) => verdict.regret)))
    }; its standard error ` +
    `is ${
      percent(mean(swept.map(({ verdict }) => verdict.error)))
    } on average, and the rounds of ` +
    `one choice differ by ${percent(mean(swept.map(({ verdict }) => verdict.spread)))} between ` +
    `their quartiles.`,
    `With a slow accelerator it offloads nothing in ` +
    `${never.filter(({ decision }) => decision.candidate === null).length} of ${never.length}. ` +
    `Planning took ${percent(mean(planning))} of 10,000 steps on average, at most ` +
    `${percent(Math.max(...planning))}.`,
    whyShared === undefined
      ? `Trainers and workers had physical cores of their own, ${counted(lanes, "pair")} of them.`
      : `Trainers and workers shared a core (${whyShared}), so that they disturb each other.`,
    ...(whyNoCable === undefined
      ? []
      : [`No slow links, because no cable could be made: ${whyNoCable}.`]),
    ...failed.map((one) => `Failed: ${one}.`),
  ];
  const fallbacks = swept.reduce((sum, { fallbacks }) => sum + fallbacks, 0);
  if (fallbacks > 0) sentences.push(`The service failed ${fallbacks} times.`);
  return sentences.join(" ");
}

function quantity(value: number, unit: Unit): Quantity {
  return { value, unit, provenance: "measured" };
}

function choiceText({ candidate, ratio }: OffloadChoice): string {
  return candidate === null ? "local" : `${candidate} ${Math.round(100 * ratio)} %`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
