/** Validates the answers of a confined process, which are plain data and may be hostile. */
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

/** One step of a pipeline, and the bytes that the pipeline has read so far. */
interface Stepped {
  readonly outcome: RunnerOutcome;
  readonly bytesRead: number;
  readonly usage?: RunnerUsage;
}

/** @throws {LeatError} `internal` if the answer is not a step. */
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
  throw unexpected("a report of resource usage");
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
      // The frame may be kept for long, so it must not retain the other bytes of its message.
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
  throw unexpected("the result of a compression trial");
}

/** @throws {LeatError} `internal` if the answer is not a table of splits. */
export function splitBoundsOf(answer: unknown): SplitBounds {
  const isTable = Array.isArray(answer) && answer.every(areBounds) &&
    answer.reduce((sum, bounds) => sum + bounds.length / 2, 0) <= SPLITS_MAX;
  if (isTable) return answer;
  throw unexpected("a table of splits");
}

export function unexpected(what: string): LeatError {
  return new LeatError("internal", `What a confined process sent is not ${what}`);
}
