/** A regression with exponential forgetting: whether inexact values of y rise with x. */

/** The share of its weight that each value keeps when the next one is added. */
const KEPT = 0.97;
/** With a smaller total weight, the direction is 0. */
const VALUES_MIN = 4;
/** A slope is significant if it differs from 0 by more than so many standard errors. */
const ERRORS_MIN = 2;

/** A regression line through pairs of values. */
export class Trend {
  #weight = 0;
  #meanX = 0;
  #meanY = 0;
  /** Weighted sums of squares and products of the differences from the means. */
  #xx = 0;
  #xy = 0;
  #yy = 0;

  add(x: number, y: number): void {
    const before = KEPT * this.#weight;
    this.#weight = before + 1;
    const share = before / this.#weight;
    const [dx, dy] = [x - this.#meanX, y - this.#meanY];
    this.#meanX += dx / this.#weight;
    this.#meanY += dy / this.#weight;
    this.#xx = KEPT * this.#xx + share * dx * dx;
    this.#xy = KEPT * this.#xy + share * dx * dy;
    this.#yy = KEPT * this.#yy + share * dy * dy;
  }

  /** 1 if y rises with x, -1 if it falls. 0 if the slope is not significant. */
  get direction(): -1 | 0 | 1 {
    if (this.#weight < VALUES_MIN || this.#xy === 0) return 0;
    const explained = this.#xy ** 2 / this.#xx;
    const variance = Math.max(0, this.#yy - explained) / (this.#weight - 2);
    if (explained <= ERRORS_MIN ** 2 * variance) return 0;
    return this.#xy > 0 ? 1 : -1;
  }
}
