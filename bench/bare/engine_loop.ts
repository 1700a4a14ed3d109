/**
 * Measures range → map → filter → batch(1024) by hand, with plain iterators on one core. The data engine
 * may be faster, because its iterators need no result object for each element.
 *
 * The iterators follow the JavaScript standard: `next()` returns an object of `value` and `done`. Full
 * batches of numbers are `Float64Array`s, like those of a data pipeline.
 */

import { type Load, printMeasured, synchronousLoad } from "./load.ts";

/** Elements of the range in one pass through the pipeline. */
export const ELEMENTS = 1 << 20;
export const BATCH_SIZE = 1024;

/** The mapped function. */
export function transform(x: number): number {
  return x * 2 + 1;
}

/** The filter, which keeps two of three elements. */
export function keeps(x: number): boolean {
  return x % 3 !== 0;
}

class Range implements Iterator<number> {
  #next = 0;
  readonly #stop: number;
  constructor(stop: number) {
    this.#stop = stop;
  }
  next(): IteratorResult<number> {
    if (this.#next >= this.#stop) return { value: undefined, done: true };
    return { value: this.#next++, done: false };
  }
}

class MapOf<T, U> implements Iterator<U> {
  readonly #input: Iterator<T>;
  readonly #fn: (value: T) => U;
  constructor(input: Iterator<T>, fn: (value: T) => U) {
    this.#input = input;
    this.#fn = fn;
  }
  next(): IteratorResult<U> {
    const result = this.#input.next();
    if (result.done) return result;
    return { value: this.#fn(result.value), done: false };
  }
}

class Filter<T> implements Iterator<T> {
  readonly #input: Iterator<T>;
  readonly #fn: (value: T) => boolean;
  constructor(input: Iterator<T>, fn: (value: T) => boolean) {
    this.#input = input;
    this.#fn = fn;
  }
  next(): IteratorResult<T> {
    while (true) {
      const result = this.#input.next();
      if (result.done || this.#fn(result.value)) return result;
    }
  }
}

class Batch implements Iterator<Float64Array> {
  readonly #input: Iterator<number>;
  readonly #size: number;
  constructor(input: Iterator<number>, size: number) {
    this.#input = input;
    this.#size = size;
  }
  next(): IteratorResult<Float64Array> {
    const batch = new Float64Array(this.#size);
    for (let i = 0; i < this.#size; i++) {
      const result = this.#input.next();
      if (result.done) {
        return i === 0
          ? { value: undefined, done: true }
          : { value: batch.subarray(0, i), done: false };
      }
      batch[i] = result.value;
    }
    return { value: batch, done: false };
  }
}

/** Opens the load: whole passes through the pipeline. Its unit is an element of the range. */
export function open(): Load {
  return synchronousLoad(() => {
    const range = new Range(ELEMENTS);
    const batches = new Batch(new Filter(new MapOf(range, transform), keeps), BATCH_SIZE);
    let kept = 0;
    for (let result = batches.next(); !result.done; result = batches.next()) {
      kept += result.value.length;
    }
    if (kept !== KEPT) throw new Error(`${kept} elements came out, ${KEPT} have to`);
    return ELEMENTS;
  });
}

/** How many elements of a pass are kept. */
export const KEPT = ELEMENTS - Math.ceil((ELEMENTS - 1) / 3);

if (import.meta.main) await printMeasured("bare engine loop", "elements/s", open);
