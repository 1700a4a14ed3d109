/** The calls that a runner's thread makes to its creator: for splits, elements and Python functions. */
import * as comlink from "comlink";
import { LeatError, type WireError } from "../../core/error.ts";
import type { Split } from "../../data/sharding/splits.ts";
import type { PythonBatch, PythonPool } from "../python/python_pool.ts";
import { givenBy, type RunnerSplits } from "../../actors/worker/runner/runner.ts";

/** The methods that a runner's thread calls. */
export interface WireSplits {
  next(source: number, repetition: number): Promise<WireSplit>;
  total(source: number): Promise<number>;
  read(split: number, from: number): Promise<WireGiven>;
  /** Calls Python functions, in processes that all threads share. */
  python(batch: PythonBatch): Promise<WireOutcomes>;
}

/** A split, or the error. An error keeps its code only if it is sent as data. */
interface WireSplit {
  readonly split: Split | null;
  readonly error?: WireError;
}

/** Encoded elements, or the error. */
interface WireGiven {
  readonly frame: Uint8Array;
  readonly error?: WireError;
}

/** Encoded outcomes, or the error. */
interface WireOutcomes {
  readonly outcomes: Uint8Array;
  readonly error?: WireError;
}

export function wireSplits(splits: RunnerSplits, python: PythonPool): WireSplits {
  return {
    async next(source, repetition) {
      try {
        return { split: await splits.next(source, repetition) };
      } catch (error) {
        return { split: null, error: LeatError.from(error).toWire() };
      }
    },
    total: (source) => splits.total(source),
    async read(split, from) {
      try {
        return { frame: await givenBy(splits, split, from) };
      } catch (error) {
        return { frame: new Uint8Array(), error: LeatError.from(error).toWire() };
      }
    },
    async python(batch) {
      try {
        // Copied: a buffer is transferred as a whole, and this one may contain other bytes.
        const outcomes = (await python.run(batch)).slice();
        return comlink.transfer({ outcomes }, [outcomes.buffer]);
      } catch (error) {
        return { outcomes: new Uint8Array(), error: LeatError.from(error).toWire() };
      }
    },
  };
}
