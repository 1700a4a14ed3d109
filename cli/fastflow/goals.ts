/** The goals of the decision, and whether it reaches them. */
import type { Quantity } from "../lib/quantity.ts";
import type { Table } from "../lib/table.ts";
import { bestOf, type Outcome } from "./modelled.ts";
import type { Found, Results } from "./tables.ts";

/** The length of the training that profiling is compared with. */
export const TRAINING_STEPS = 10_000;
/** A training that loses less than this share to waiting counts as not waiting. */
const STALL_MIN = 0.02;

/** One goal: a limit, and the value of each outcome. */
interface Goal {
  readonly goal: string;
  /** The greatest value that reaches the goal, as a share. */
  readonly most: number;
  readonly of: (outcome: Outcome) => number | undefined;
}

/** A row for each goal, with separate columns for modelled and measured environments. */
export function goalTable({ outcomes, costs }: Results): Found {
  const fromStoreMs = ({ workload }: Outcome) =>
    costs.find((at) => at.workload === workload)?.planFromStoreMs;
  const goals: Goal[] = [
    ...(["decided", "corrected"] as const).flatMap((key): Goal[] => [
      {
        goal: `${NAMES[key]}: throughput below the best of the sweep`,
        ...{ most: 0.05, of: (outcome) => 1 - bestOf(outcome) / outcome.times[key] },
      },
      {
        goal: `${NAMES[key]}: below the best of local, all and half remote`,
        most: 0.02,
        of: ({ times }) => 1 - Math.min(times.local, times.allRemote, times.half) / times[key],
      },
    ]),
    {
      goal: "share offloaded where training does not wait",
      most: 0,
      of: ({ times, stepMs, decision }) =>
        times.local > (1 + STALL_MIN) * stepMs ? undefined : decision.ratio,
    },
    {
      goal: "profiling, of 10,000 steps",
      ...{ most: 0.03, of: (outcome) => outcome.profileMs / trainingMs(outcome) },
    },
    {
      goal: "planning from the store, of 10,000 steps",
      ...{ most: 0.002, of: (outcome) => (fromStoreMs(outcome) ?? NaN) / trainingMs(outcome) },
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

/** How long a training takes, without profiling. */
export function trainingMs({ times }: Outcome): number {
  return TRAINING_STEPS * times.corrected;
}

function rowOf(
  { goal, most, of }: Goal,
  outcomes: readonly Outcome[],
  provenance: Outcome["provenance"],
): Table["rows"][number] {
  const found = outcomes.flatMap((outcome) => {
    const value = of(outcome);
    return value === undefined ? [] : [{ outcome, value }];
  });
  const met = found.filter(({ value }) => value <= most).length;
  const worst = found.toSorted((a, b) => b.value - a.value)[0];
  const share = (value: number): Quantity => ({ value, unit: "1", provenance });
  return [
    goal,
    `${met} of ${found.length}`,
    share(most),
    worst && share(worst.value),
    worst === undefined ? "–" : `${worst.outcome.workload.letter} ${worst.outcome.environment}`,
    worst === undefined ? "–" : met === found.length ? "met" : "missed",
  ];
}
