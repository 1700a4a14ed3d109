/** Validates answers of a confined process: plain data that a hostile process may have written. */
import { ownBytes } from "../../core/bytes.ts";
import { LeatError } from "../../core/error.ts";
import { fieldsOf, isPlainObject } from "../../core/tree.ts";
import type { Split, SplitTable } from "../../data/sharding/splits.ts";
import type {
  CompressionTrial,
  RunnerOutcome,
  RunnerUsage,
} from "../../actors/worker/runner/runner.ts";
import { Payload } from "../../transport/payload.ts";
import { plainError } from "./edge.ts";
import { isCount } from "../../core/count.ts";

/** Most splits of a table: as many as there may be files in a listing. */
const SPLITS_MAX = 4_000_000;

/** One step of a pipeline, and how many bytes it has read so far. */
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

/** A table of splits on the wire: columns of numbers, since a table may have millions of rows. */
type WireSplitTable = readonly {
  readonly starts: Float64Array;
  readonly stops: Float64Array;
}[];

export function wireSplitTable(table: SplitTable): WireSplitTable {
  return table.map((splits) => ({
    starts: Float64Array.from(splits, ({ start }) => start),
    stops: Float64Array.from(splits, ({ stop }) => stop),
  }));
}

/** @throws {LeatError} `internal` for anything else. */
export function splitTableOf(answer: unknown): SplitTable {
  if (!Array.isArray(answer)) throw unexpected("a table of splits");
  let count = 0;
  return answer.map((columns: unknown) => {
    const { starts, stops } = fieldsOf(columns);
    const isTable = starts instanceof Float64Array && stops instanceof Float64Array &&
      starts.length === stops.length;
    if (!isTable || (count += starts.length) > SPLITS_MAX) throw unexpected("a table of splits");
    return Array.from(starts, (start, i) => splitOf(start, stops[i]!));
  });
}

function splitOf(start: number, stop: number): Split {
  if (!isCount(start) || !isCount(stop) || start > stop) throw unexpected("a split");
  return { start, stop };
}

export function unexpected(what: string): LeatError {
  return new LeatError("internal", `What a confined process answered is not ${what}`);
}
