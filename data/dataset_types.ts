/** Types in the signatures of several methods of `Dataset`. Options of one operator are in its file. */
import type { Dataset } from "./dataset.ts";
import type { FunctionExtra } from "./udf/call.ts";
import type { Captures, UserFunction } from "./udf/user_function.ts";

/** The last argument of every user function: what the engine provides, and the captures by name. */
export type Extra<C extends Captures = Captures> =
  & Omit<FunctionExtra, "Dataset">
  & { readonly Dataset: typeof Dataset }
  & C;

/** A function of an element, or a reference to one made by `udf()`. */
export type ElementFunction<T, R, C extends Captures> = UserFunction<
  (element: T, extra: Extra<C>) => R
>;

/** What file sources read: a path, several paths, or a dataset of paths. */
export type FilePaths = string | readonly string[] | Dataset<string>;

/** Changes a pipeline before it is registered with a service. Runs at once, in this process. */
export type Rewrite<T, R = T> = (dataset: Dataset<T>) => Dataset<R>;

/** Datasets in nested arrays and objects: the argument of `zip`. */
export type Datasets =
  | readonly (Dataset<unknown> | Datasets)[]
  | { readonly [component: string]: Dataset<unknown> | Datasets };

/** The elements of `zip`: the structure of its argument, with an element for each dataset. */
export type Zipped<D> = {
  -readonly [K in keyof D]: D[K] extends Dataset<infer E> ? E
    : D[K] extends Datasets ? Zipped<D[K]>
    : never;
};

/** Options of operators whose function has no others: `takeWhile`, `fromGenerator`, `reduce`. */
export interface FunctionOptions<C extends Captures> {
  /**
   * Values that the function gets by name in its last argument. Change them only between two
   * iterators: each iterator takes them as it finds them. Default: none.
   */
  readonly captures?: C;
}
