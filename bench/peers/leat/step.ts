/** The interface of a running pipeline, for the loop of Leat's side. */
import type { Dataset } from "../../../mod.ts";
import type { PeerFiles } from "../files.ts";

/** A running pipeline. */
export interface Running extends AsyncDisposable {
  /** Does one step. Resolves to the number of units of the step. */
  step(): Promise<number>;
  /** Takes the next element. */
  sample?(): Promise<unknown>;
  /** Other measurements, by name. */
  readonly also?: Readonly<Record<string, number>>;
}

/** Functions that start pipelines, by name. */
export type Pipelines = Readonly<Record<string, (files: PeerFiles) => Running | Promise<Running>>>;

/** Runs an endless dataset, one element per step. `unitsOf` returns the units of an element. */
export function taking<T>(dataset: Dataset<T>, unitsOf: (element: T) => number): Running {
  const iterator = dataset.iterator();
  const sample = async () => {
    const { done, value } = await iterator.next();
    if (done === true) throw new Error("the pipeline ended");
    return value;
  };
  return {
    sample,
    step: async () => unitsOf(await sample()),
    [Symbol.asyncDispose]: () => iterator[Symbol.asyncDispose](),
  };
}
