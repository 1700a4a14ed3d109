/** Validates answers of a confined process: plain data that a hostile process may have written. */
import { ownBytes } from "../../core/bytes.ts";
import { LeatError } from "../../core/error.ts";
import { fieldsOf, isPlainObject } from "../../core/tree.ts";
import { areBounds, type SplitBounds, SPLITS_MAX } from "../../data/sharding/split_table.ts";
import type {
  CompressionTrial,
  RunnerOutcome,
  RunnerUsage,
} from "../../actors/worker/runner/runner.ts";
import { Payload } from "../../transport/payload.ts";
import { plainError } from "./edge.ts";
import { isCount } from "../../core/count.ts";

/** One step of a pipeline, and its reads so far. */
interface Stepped {
  readonly outcome: RunnerOutcome;
  readonly bytesRead: number;
  readonly usage?: RunnerUsage;
}

/** @throws {LeatError} `internal` for anything that no pipeline answers. */
export function steppedOf(answer: unknown): Stepped {
  const { outcome, bytesRead, usage } = fieldsOf(answer);
  if (!isPlainObject(outcome) || !isCount(bytesRead)) throw unexpected("a step");
  return { outcome: outcomeOf(outcome), bytesRead, ...usageOf(usage) };
}

function usageOf(usage: unknown): { readonly usage?: RunnerUsage } {
  if (usage === undefined) return {};
  const { cpuSeconds, memoryBytes } = fieldsOf(usage);
  const isTime = typeof cpuSeconds === "number" && Number.isFinite(cpuSeconds) && cpuSeconds >= 0;
  if (isTime && isCount(memoryBytes)) return { usage: { cpuSeconds, memoryBytes } };
  throw unexpected("what a process uses");
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
      // The frame may be kept for long. Other bytes of the same message must not be kept with it.
      if (frame instanceof Payload) {
        return { kind, frame: ownBytes(frame.bytes), ...trialOf(trial) };
      }
  }
  throw unexpected("an outcome");
}

function trialOf(trial: unknown): { readonly trial?: CompressionTrial } {
  if (trial === undefined) return {};
  const { bytes, compressedBytes, ms } = fieldsOf(trial);
  if (isCount(bytes) && isCount(compressedBytes) && typeof ms === "number" && ms >= 0) {
    return { trial: { bytes, compressedBytes, ms } };
  }
  throw unexpected("what compressing has brought");
}

/** @throws {LeatError} `internal` for anything else. */
export function splitBoundsOf(answer: unknown): SplitBounds {
  const isTable = Array.isArray(answer) && answer.every(areBounds) &&
    answer.reduce((sum, bounds) => sum + bounds.length / 2, 0) <= SPLITS_MAX;
  if (isTable) return answer;
  throw unexpected("a table of splits");
}

export function unexpected(what: string): LeatError {
  return new LeatError("internal", `What a confined process answered is not ${what}`);
}
