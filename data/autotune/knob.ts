/** Knobs: the numbers of a running pipeline that the tuner may change. */
import type { Setting } from "./model.ts";

/** The argument that a knob stands for. */
export type KnobParameter = "numParallelCalls" | "bufferSize";

/** The bounds and the first value of a knob. */
export interface KnobRange {
  readonly min: number;
  readonly max: number;
  /** Its value until something was measured. */
  readonly initial: number;
}

/** One number. Its operator reads `value` whenever it decides whether to begin something. */
export class Knob implements Setting {
  readonly parameter: KnobParameter;
  readonly min: number;
  readonly max: number;
  value: number;

  constructor(parameter: KnobParameter, { min, max, initial }: KnobRange) {
    this.parameter = parameter;
    this.min = min;
    this.max = max;
    this.value = initial;
  }
}
