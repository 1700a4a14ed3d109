/** Rule `noOpElimination`: how the state of an operator that is left out looks. */

/**
 * The state that an operator would have saved, made of its input's. It need not be equal: from
 * both, the operator gives the same.
 */
export interface NoOp {
  /** The operator's own fields; its input's state is added as `input`. */
  readonly fields: Readonly<Record<string, unknown>>;
}
