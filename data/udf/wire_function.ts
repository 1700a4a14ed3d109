/** User functions as plain data, as they travel to other threads and hosts. */

/** A function by module or Python file and name, or by source, as plain data. */
export type WireFunction =
  & (
    | { readonly module: string; readonly name: string }
    | { readonly python: string; readonly name: string }
    | { readonly source: string }
  )
  & { readonly captures?: WireCaptures };

/** Captures without their functions: the codec handles data and tensors, but no functions. */
export interface WireCaptures {
  readonly values: Readonly<Record<string, unknown>>;
  /** The path in `values` (which has `null` there) of each function. */
  readonly functions: readonly { readonly path: Path; readonly fn: WireFunction }[];
}

/** Where in the captures a function is. */
export type Path = readonly (string | number)[];
