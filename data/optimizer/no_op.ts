/** Rule `noOpElimination`: how the state of an operator that is left out looks. */

/**
 * The state that an operator would have saved, made from its input's state. It may differ from that
 * state, but the operator continues equally from both.
 */
export interface NoOp {
  /** The operator's own fields; its input's state is added as `input`. */
  readonly fields: Readonly<Record<string, unknown>>;
}
