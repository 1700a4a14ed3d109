/** Draws what happens to the save in a run of the saving workload: who saves what, and who cancels. */
import type { SimRandom } from "../../engine/random.ts";
import type { PipelineName } from "../../reference/ordered_pipelines.ts";

/** Pipelines without a failing function, which would end the save. */
const PIPELINES: [PipelineName, ...PipelineName[]] = [
  "random values, a filter and remainders",
  "whole batches",
  "mostly empty splits",
  "no elements",
];

const FAILING: PipelineName = "functions that fail";

/**
 * A pipeline without random numbers, because a program that saves by itself has another seed than the
 * service.
 */
const WITHOUT_RANDOM: PipelineName = "mostly empty splits";

/**
 * Who saves. One program that saves alone, that cancels (`given_up`), that cancels and requests the save
 * again a few times (`in_turn`), or that has a failing function. Or two programs that save the same
 * dataset (the first may cancel), another dataset, or another dataset in place of the existing one, by
 * the service or by the program itself (`replaced_by_one`).
 */
const PLOTS = [
  "alone",
  "given_up",
  "in_turn",
  "failing",
  "same",
  "same_given_up",
  "other",
  "replaced",
  "replaced_by_one",
] as const;

export type Plot = typeof PLOTS[number];

/** Plots in which reading may fail, because nobody continues the save or the dataset is replaced. */
export const READING_MAY_FAIL: readonly Plot[] = [
  "given_up",
  "same_given_up",
  "failing",
  "replaced",
  "replaced_by_one",
];

/** A program that requests a save. */
export interface Saver {
  readonly name: string;
  readonly pipeline: PipelineName;
  readonly overwrite: boolean;
  /** Whether it writes the files itself. Default: false, the service's workers do. */
  readonly isByItself?: boolean;
}

export const SAVER = "client";

const RIVAL = "rival";

/** Draws a plot and its programs. */
export function drawPlot(rng: SimRandom): { plot: Plot; savers: readonly Saver[] } {
  const plot = rng.fork("plot").pick(PLOTS as unknown as [Plot, ...Plot[]]);
  const first = plot === "failing" ? FAILING : rng.fork("pipeline").pick(PIPELINES);
  const others = PIPELINES.filter((name) => name !== first) as [PipelineName, ...PipelineName[]];
  const isByOne = plot === "replaced_by_one";
  const second = isByOne ? WITHOUT_RANDOM : rng.fork("second").pick(others);
  const savers = [
    { name: SAVER, pipeline: first, overwrite: false },
    ...(plot.startsWith("same") ? [{ name: RIVAL, pipeline: first, overwrite: false }] : []),
    ...(plot === "other" ? [{ name: RIVAL, pipeline: second, overwrite: false }] : []),
    ...(plot.startsWith("replaced")
      ? [{ name: RIVAL, pipeline: second, overwrite: true, isByItself: isByOne }]
      : []),
  ];
  return { plot, savers };
}
