/** Knobs: the numbers of a running pipeline that the tuner may change. */
import type { Setting } from "./model.ts";

export type KnobParameter = "numParallelCalls" | "bufferSize";

/** The bounds and the first value of a knob. */
export interface KnobRange {
  readonly min: number;
  readonly max: number;
  /** Its value in the first iteration, until something is measured. */
  readonly initial: number;
}

/** The last values of knobs, by operator: the next iteration begins with them. */
const lastValues = new WeakMap<object, number>();

/**
 * A number that the tuner may change. Its operator reads `value` before it begins a call or a read.
 */
export class Knob implements Setting {
  readonly parameter: KnobParameter;
  readonly min: number;
  readonly max: number;
  value: number;
  readonly #operator: object | undefined;

  /** @param operator The node of the knob. Without it the value is not remembered. */
  constructor(parameter: KnobParameter, { min, max, initial }: KnobRange, operator?: object) {
    this.parameter = parameter;
    this.min = min;
    this.max = max;
    this.#operator = operator;
    this.value = (operator && lastValues.get(operator)) ?? initial;
  }

  /** Lets the next iteration of its operator begin with this value. */
  remember(): void {
    if (this.#operator !== undefined) lastValues.set(this.#operator, this.value);
  }
}
