/** What happens to the save in a run of the saving workload: who saves what, and who cancels. */

import type { SimRandom } from "../../engine/random.ts";
import type { PipelineName } from "../../reference/ordered_pipelines.ts";

/** A failing function would end the save. */
const PIPELINES: [PipelineName, ...PipelineName[]] = [
  "random values, a filter and remainders",
  "whole batches",
  "mostly empty splits",
  "no elements",
];

const FAILING: PipelineName = "functions that fail";

/**
 * A program that saves by itself has another seed than the service, so these use no random numbers.
 */
const LUCKLESS: PipelineName = "mostly empty splits";

/**
 * Who saves: one program; one that cancels; one that cancels and asks again, a few times; one with
 * a failing function; or two programs: for the same dataset, with the first cancelling or not; for
 * another one; or for another one in place of the existing one, by the service or by itself.
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

/** Reading may fail in these: nobody continues the save, or the existing dataset is replaced. */
export const READING_MAY_FAIL: readonly Plot[] = [
  "given_up",
  "same_given_up",
  "failing",
  "replaced",
  "replaced_by_one",
];

/** A program that wants something saved. */
export interface Saver {
  readonly name: string;
  readonly pipeline: PipelineName;
  readonly overwrite: boolean;
  /** Whether it writes the files itself. Default: the service's workers do. */
  readonly isByItself?: boolean;
}

export const SAVER = "client";

const RIVAL = "rival";

/** Draws what happens, and the programs of it. */
export function drawPlot(rng: SimRandom): { plot: Plot; savers: readonly Saver[] } {
  const plot = rng.fork("plot").pick(PLOTS as unknown as [Plot, ...Plot[]]);
  const first = plot === "failing" ? FAILING : rng.fork("pipeline").pick(PIPELINES);
  const others = PIPELINES.filter((name) => name !== first) as [PipelineName, ...PipelineName[]];
  const isByOne = plot === "replaced_by_one";
  const second = isByOne ? LUCKLESS : rng.fork("second").pick(others);
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
