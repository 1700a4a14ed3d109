/** The goals of the offloading decision, and how many environments meet each. */
import type { Quantity } from "../lib/quantity.ts";
import type { Table } from "../lib/table.ts";
import { bestOf, type Outcome } from "./modelled.ts";
import type { Found, Results } from "./tables.ts";

/** The length of the training that profiling is compared with. */
export const TRAINING_STEPS = 10_000;
/** A training that waits for less than this share of its time counts as not waiting. */
const STALL_MIN = 0.02;

/** A limit for a share that is computed from each outcome. */
interface Goal {
  readonly goal: string;
  /** An outcome with at most this share meets the goal. */
  readonly limit: number;
  /** Returns undefined if the goal does not apply to the outcome. */
  readonly shareOf: (outcome: Outcome) => number | undefined;
}

/** Returns a table with a row for each goal, first for modelled, then for measured environments. */
export function goalTable({ outcomes, costs }: Results): Found {
  const fromStoreMs = ({ workload }: Outcome) =>
    costs.find((at) => at.workload === workload)?.planFromStoreMs;
  const goals: Goal[] = [
    ...(["decided", "corrected"] as const).flatMap((key): Goal[] => [
      {
        goal: `${NAMES[key]}: throughput below the best of the sweep`,
        ...{ limit: 0.05, shareOf: (outcome) => 1 - bestOf(outcome) / outcome.times[key] },
      },
      {
        goal: `${NAMES[key]}: below the best of local, all and half remote`,
        limit: 0.02,
        shareOf: ({ times }) => 1 - Math.min(times.local, times.allRemote, times.half) / times[key],
      },
    ]),
    {
      goal: "share offloaded where training does not wait",
      limit: 0,
      shareOf: ({ times, stepMs, decision }) =>
        times.local > (1 + STALL_MIN) * stepMs ? undefined : decision.ratio,
    },
    {
      goal: "profiling, of 10,000 steps",
      ...{ limit: 0.03, shareOf: (outcome) => outcome.profileMs / trainingMs(outcome) },
    },
    {
      goal: "planning from the store, of 10,000 steps",
      ...{
        limit: 0.002,
        shareOf: (outcome) => (fromStoreMs(outcome) ?? NaN) / trainingMs(outcome),
      },
    },
  ];
  const rows = (["modelled", "measured"] as const).flatMap((provenance) => {
    const some = outcomes.filter((outcome) => outcome.provenance === provenance);
    return some.length === 0 ? [] : goals.map((goal) => rowOf(goal, some, provenance));
  });
  const missed = rows.filter(([, , , , , verdict]) => verdict === "missed").length;
  return {
    ...{ id: "goals", title: "Goals" },
    finding: missed === 0
      ? "All goals are met."
      : `${missed} of ${rows.length} goals are missed in some environment.`,
    table: {
      title: "Goals",
      columns: [
        ...[{ heading: "goal" }, { heading: "environments" }],
        { heading: "at most", unit: "%", digits: 1 },
        { heading: "worst", unit: "%", digits: 2 },
        ...[{ heading: "where" }, { heading: "" }],
      ],
      rows,
    },
  };
}

const NAMES = { decided: "decision", corrected: "corrected" } as const;

/** The duration of a training without profiling, in ms. */
export function trainingMs({ times }: Outcome): number {
  return TRAINING_STEPS * times.corrected;
}

function rowOf(
  { goal, limit, shareOf }: Goal,
  outcomes: readonly Outcome[],
  provenance: Outcome["provenance"],
): Table["rows"][number] {
  const found = outcomes.flatMap((outcome) => {
    const value = shareOf(outcome);
    return value === undefined ? [] : [{ outcome, value }];
  });
  const met = found.filter(({ value }) => value <= limit).length;
  const worst = found.toSorted((a, b) => b.value - a.value)[0];
  const share = (value: number): Quantity => ({ value, unit: "1", provenance });
  return [
    goal,
    `${met} of ${found.length}`,
    share(limit),
    worst && share(worst.value),
    worst === undefined ? "–" : `${worst.outcome.workload.letter} ${worst.outcome.environment}`,
    worst === undefined ? "–" : met === found.length ? "met" : "missed",
  ];
}
