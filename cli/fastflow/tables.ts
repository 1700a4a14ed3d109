/** The paper's tables and figures as tables, each with a sentence above it. */
import { modelled, type Quantity, type Unit } from "../lib/quantity.ts";
import { percent, type Table } from "../lib/table.ts";
import { goalTable, TRAINING_STEPS, trainingMs } from "./goals.ts";
import { bestOf, type Outcome } from "./modelled.ts";
import type { Costs } from "./costs.ts";
import type { SweepResults } from "./sweep/sweep.ts";
import { sweepTable } from "./sweep/sweep_table.ts";
import type { Letter, Workload } from "./workloads.ts";
import { mean } from "../lib/statistics.ts";

const MS_PER_SECOND = 1_000;
/** Table 4 of the paper: profile time in % of training time, measured / with stored metrics. */
const PAPER_OVERHEAD: Record<Letter, string> = {
  ...{ T: "2.80 / 0.11", G: "0.37 / 0.05", C: "3.10 / 0.07", S: "0.85 / 0.01" },
  ...{ R: "0.06 / 0.002", M: "0.08 / 0.06", L: "1.31 / 0.53" },
};

/** The results of the program. */
export interface Results {
  readonly costs: readonly (Costs & { readonly workload: Workload })[];
  readonly outcomes: readonly Outcome[];
  /** The measured sweep, if it was run. */
  readonly sweep?: SweepResults;
  /** Why hosts in network namespaces could not be measured, if that was requested. */
  readonly whyNoHosts?: string;
}

/** A table with a sentence that says what it shows. */
export interface Found {
  readonly id: string;
  readonly title: string;
  readonly finding: string;
  readonly table: Table;
}

/** All tables, in the paper's order. */
export function tablesOf(results: Results): Found[] {
  const { outcomes, sweep } = results;
  const swept = sweep === undefined ? [] : [sweepTable(sweep)];
  if (outcomes.length === 0) return swept;
  return [
    costTable(results),
    systems(outcomes),
    candidates(outcomes),
    decisions(outcomes),
    overhead(results),
    goalTable(results),
    ...swept,
  ];
}

/** Returns a number with the outcome's provenance. */
function quantity({ provenance }: Outcome, value: number, unit: Unit = "1"): Quantity {
  return { value, unit, provenance };
}

function named({ workload, environment }: Outcome): [string, string] {
  return [`${workload.letter} ${workload.name}`, environment];
}

function choiceText(candidate: string | null, ratio: number): string {
  return candidate === null ? "local" : `${candidate}, ${Math.round(100 * ratio)} %`;
}

const WHERE = [{ heading: "workload" }, { heading: "cores here : of workers" }];

function costTable({ costs }: Results): Found {
  const table: Table = {
    title: "What a batch costs",
    columns: [
      { heading: "workload" },
      { heading: "pipeline" },
      { heading: "prepare", unit: "ms" },
      { heading: "receive p'1", unit: "ms" },
      { heading: "receive p'2", unit: "ms" },
      { heading: "receive p'3", unit: "ms" },
      { heading: "batch", unit: "KB" },
      { heading: "files", unit: "KB" },
      { heading: "step", unit: "ms" },
    ],
    rows: costs.map(({ workload, prepareMs, receiveMs, bytes, readBytes, stepMs }) => [
      `${workload.letter} ${workload.name}`,
      workload.pipeline,
      ms(prepareMs),
      ms(receiveMs["p'1"]),
      ms(receiveMs["p'2"]),
      ms(receiveMs["p'3"]),
      { value: bytes, unit: "bytes", provenance: "measured" },
      { value: readBytes, unit: "bytes", provenance: "measured" },
      modelled(stepMs, "ms"),
    ]),
  };
  return {
    ...{ id: "costs", title: table.title, table },
    finding:
      "The times are CPU times of this process per batch: to prepare the batch here, or to receive it " +
      "from a worker in separate processes. With p'1 receiving includes reading the files and " +
      "sending their elements to the worker.",
  };
}

function ms(value: number | undefined): Quantity | undefined {
  return value === undefined ? undefined : { value, unit: "ms", provenance: "measured" };
}

/** A sentence about the modelled outcomes, and one about the measured ones. */
function bothOf(
  outcomes: readonly Outcome[],
  sentence: (outcomes: readonly Outcome[]) => string,
): string {
  return (["modelled", "measured"] as const).flatMap((provenance) => {
    const some = outcomes.filter((outcome) => outcome.provenance === provenance);
    if (some.length === 0) return [];
    return provenance === "modelled"
      ? `In the model: ${sentence(some)}`
      : `Measured, with disturbance by other programs: ${sentence(some)}`;
  }).join(" ");
}

function systems(outcomes: readonly Outcome[]): Found {
  return {
    ...{ id: "fig-6", title: "Epoch time by who prepares the data (paper: Fig. 6)" },
    finding: bothOf(outcomes, (outcomes) => {
      const behind = outcomes.map(({ times: { local, allRemote, half, corrected } }) =>
        corrected / Math.min(local, allRemote, half) - 1
      );
      const close = behind.filter((share) => share <= 0.02).length;
      const fastest = Math.max(...outcomes.map(({ times }) => times.local / times.corrected));
      const idle = outcomes.filter(({ decision }) => decision.candidate === null).length;
      return `Leat's corrected epochs are at most 2 % longer than the best of local only, all ` +
        `remote and half in ${close} of ${outcomes.length} environments. At worst they are ` +
        `${percent(Math.max(...behind))} longer, at best ${fastest.toFixed(2)} times as fast as ` +
        `local only. Nothing was offloaded in ${idle} environments.`;
    }),
    table: {
      title: "Epoch time; local only is 1",
      columns: [
        ...WHERE,
        ...["all remote", "half remote", "Leat's decision", "corrected"].map((heading) => ({
          heading,
          digits: 2,
        })),
        { heading: "decision" },
      ],
      rows: outcomes.map((outcome) => {
        const { local, allRemote, half, decided, corrected } = outcome.times;
        return [
          ...named(outcome),
          ...[allRemote, half, decided, corrected].map((time) => quantity(outcome, time / local)),
          choiceText(outcome.decision.candidate, outcome.decision.ratio),
        ];
      }),
    },
  };
}

function candidates(outcomes: readonly Outcome[]): Found {
  const considered = outcomes.filter(({ candidates }) => candidates.length > 0);
  return {
    ...{ id: "fig-8", title: "Which part of the pipeline is offloaded (paper: Fig. 8)" },
    finding: bothOf(considered, (considered) => {
      const right = considered.filter(({ candidates, decision }) => {
        const best = Math.min(...candidates.map(({ time }) => time));
        const chosen = candidates.find(({ name }) => name === decision.candidate);
        return chosen === undefined || chosen.time <= 1.02 * best;
      }).length;
      return `The chosen candidate is at most 2 % slower than the best in ${right} of ` +
        `${considered.length} environments where training waits for data.`;
    }) + " * marks the choice.",
    table: {
      title: "Epoch time by candidate, each with the ratio for it; local only is 1",
      columns: [...WHERE, { heading: "p'1" }, { heading: "p'2" }, { heading: "p'3" }],
      rows: considered.map((outcome) => [
        ...named(outcome),
        ...["p'1", "p'2", "p'3"].map((name) => {
          const found = outcome.candidates.find((at) => at.name === name);
          if (found === undefined) return "–";
          const mark = name === outcome.decision.candidate ? " *" : "";
          return `${(found.time / outcome.times.local).toFixed(2)}${mark}`;
        }),
      ]),
    },
  };
}

function decisions(outcomes: readonly Outcome[]): Found {
  const regret = (time: (outcome: Outcome) => number) =>
    outcomes.map((outcome) => 1 - bestOf(outcome) / time(outcome));
  const decided = regret(({ times }) => times.decided);
  const corrected = regret(({ times }) => times.corrected);
  return {
    ...{ id: "fig-10", title: "The decision against the best of a sweep (paper: Fig. 9 and 10)" },
    finding:
      "In the model the sweep tries each candidate with ratios in steps of 10 %. Measured, it tries " +
      "only the chosen candidate. " + bothOf(outcomes, (some) => {
        const of = (regrets: readonly number[]) =>
          regrets.filter((_, i) => some.includes(outcomes[i]!));
        const close = of(corrected).filter((share) => share <= 0.05).length;
        return `The mean regret of the decision is ${percent(mean(of(decided)))}, of the ` +
          `corrected ratio ${
            percent(mean(of(corrected)))
          }. The corrected ratio is within 5 % of the ` +
          `best in ${close} of ${some.length} environments.`;
      }) + " A negative regret means: better than all ratios of the sweep.",
    table: {
      title: "Throughput lost against the best of the sweep",
      columns: [
        ...WHERE,
        ...["best of the sweep", "decision"].map((heading) => ({ heading })),
        ...["regret of the decision", "corrected"].map((heading) => ({
          ...{ heading, digits: 1 },
          unit: "%" as const,
        })),
      ],
      rows: outcomes.map((outcome, i) => [
        ...named(outcome),
        bestText(outcome),
        choiceText(outcome.decision.candidate, outcome.decision.ratio),
        quantity(outcome, decided[i]!),
        quantity(outcome, corrected[i]!),
      ]),
    },
  };
}

function bestText(outcome: Outcome): string {
  const best = bestOf(outcome);
  if (best === outcome.times.local) return "local";
  for (const [candidate, sweep] of Object.entries(outcome.sweeps)) {
    const found = sweep.find(([, time]) => time === best);
    if (found !== undefined) return choiceText(candidate, found[0]);
  }
  return "–";
}

function overhead({ outcomes, costs }: Results): Found {
  const shown = outcomes.filter(({ environment }) => environment.startsWith("1:1"));
  const shares = shown.map((outcome) => outcome.profileMs / trainingMs(outcome));
  return {
    ...{ id: "table-4", title: "What profiling costs (paper: Table 4)" },
    finding: `Profiling takes at most ${percent(Math.max(...shares))} of a training of ` +
      `${
        TRAINING_STEPS.toLocaleString("en")
      } steps. Trainings in the paper last until the model is ` +
      "accurate, so their number of steps differs.",
    table: {
      title: `Profiling, of a training of ${TRAINING_STEPS.toLocaleString("en")} steps`,
      columns: [
        ...WHERE,
        { heading: "profiling", unit: "s" },
        { heading: "training", unit: "s" },
        { heading: "share", unit: "%", digits: 2 },
        { heading: "share from the store", unit: "%", digits: 3 },
        { heading: "paper's shares (%)" },
      ],
      rows: shown.map((outcome, i) => {
        const { planFromStoreMs = NaN } = costs.find(({ workload }) =>
          workload === outcome.workload
        ) ?? {};
        return [
          ...named(outcome),
          quantity(outcome, outcome.profileMs / MS_PER_SECOND, "s"),
          quantity(outcome, trainingMs(outcome) / MS_PER_SECOND, "s"),
          quantity(outcome, shares[i]!),
          quantity(outcome, planFromStoreMs / trainingMs(outcome)),
          PAPER_OVERHEAD[outcome.workload.letter],
        ];
      }),
    },
  };
}
