/** A running pipeline as the sides' loop drives it. */
import type { Dataset } from "../../../mod.ts";
import type { PeerFiles } from "../files.ts";

/** A pipeline that runs. */
export interface Running extends AsyncDisposable {
  /** Does one step; resolves to the number of units it did. */
  step(): Promise<number>;
  /** What else was measured, by what it is. */
  readonly also?: Readonly<Record<string, number>>;
}

/** Ways to start pipelines, by name. */
export type Pipelines = Readonly<Record<string, (files: PeerFiles) => Running | Promise<Running>>>;

/** Takes the elements of an endless dataset; each has `unitsOf` it. */
export function taking<T>(dataset: Dataset<T>, unitsOf: (element: T) => number): Running {
  const iterator = dataset.iterator();
  return {
    async step() {
      const { done, value } = await iterator.next();
      if (done === true) throw new Error("the pipeline ended");
      return unitsOf(value);
    },
    [Symbol.asyncDispose]: () => iterator[Symbol.asyncDispose](),
  };
}
