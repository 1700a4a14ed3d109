/**
 * What a confined thread says, taken as plain data that a stranger may have written.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";
import type { Split, SplitTable } from "../../data/splits.ts";
import type { CompressionTrial, RunnerOutcome } from "../../actors/worker/runner.ts";
import { plainError } from "./edge.ts";

/** Most splits that a table holds: as many as there may be files in a listing. */
const SPLITS_MAX = 4_000_000;

/** One step of a pipeline, and what it has read so far. */
export interface Stepped {
  readonly outcome: RunnerOutcome;
  readonly bytesRead: number;
}

/** @throws {LeatError} `internal` for anything that no pipeline says. */
export function steppedOf(answer: unknown): Stepped {
  if (!isPlainObject(answer) || !isPlainObject(answer.outcome) || !isCount(answer.bytesRead)) {
    throw unexpected("a step");
  }
  return { outcome: outcomeOf(answer.outcome), bytesRead: answer.bytesRead };
}

function outcomeOf(
  { kind, frame, error, isFinal, trial }: Record<string, unknown>,
): RunnerOutcome {
  switch (kind) {
    case "end":
      return { kind };
    case "error":
      return { kind, error: plainError(error), ...(isFinal === true ? { isFinal } : {}) };
    case "element":
    case "remainder":
      if (frame instanceof Uint8Array) return { kind, frame, ...trialOf(trial) };
  }
  throw unexpected("an outcome");
}

function trialOf(trial: unknown): { readonly trial?: CompressionTrial } {
  if (trial === undefined) return {};
  if (isPlainObject(trial)) {
    const { bytes, compressedBytes, ms } = trial;
    if (isCount(bytes) && isCount(compressedBytes) && typeof ms === "number" && ms >= 0) {
      return { trial: { bytes, compressedBytes, ms } };
    }
  }
  throw unexpected("what compressing has brought");
}

/** @throws {LeatError} `internal` for what is no table of splits. */
export function splitTableOf(answer: unknown): SplitTable {
  if (!Array.isArray(answer)) throw unexpected("a table of splits");
  let count = 0;
  return answer.map((splits: unknown) => {
    if (!Array.isArray(splits) || (count += splits.length) > SPLITS_MAX) {
      throw unexpected("a table of splits");
    }
    return splits.map(splitOf);
  });
}

function splitOf(split: unknown): Split {
  if (!isPlainObject(split)) throw unexpected("a split");
  const { start, stop } = split;
  if (!isCount(start) || !isCount(stop) || start > stop) throw unexpected("a split");
  return { start, stop };
}

/** A number of things: whole, and not below 0. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** For what is not what it has to be. */
export function unexpected(what: string): LeatError {
  return new LeatError("internal", `What a confined thread answered is not ${what}`);
}
