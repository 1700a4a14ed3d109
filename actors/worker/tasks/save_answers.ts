/** Decodes and checks reports of runners about a save. Runners run user code, so they are not trusted. */
import { LeatError } from "../../../core/error.ts";
import type { RunReport, Written } from "../../../data/saved/distributed/work.ts";
import { areBounds } from "../../../data/sharding/split_table.ts";
import { decodeMessage } from "../../../transport/codec.ts";
import { count, list, name, object, optional, passing } from "../../runtime/checks.ts";
import { guardOf } from "../../runtime/guard.ts";
import type { SaveStart } from "../protocol.ts";

/** Limit of a report's bytes, without arrays. A report has a few fields. */
const REPORT_STRUCTURE_BYTES_MAX = 64 * 2 ** 10;
/** Limit of a start's bytes, without arrays. A start lists up to a few thousand finished runs. */
const START_STRUCTURE_BYTES_MAX = 16 * 2 ** 20;

const written = { elements: count, sizeBytes: count };
const isReport = guardOf(
  object({ ...written, attempt: optional(name), restBytes: optional(count) }),
);
const isStart = guardOf(object({
  ...{ ...written, id: name, entries: count, upTo: count },
  bounds: list(passing<Float64Array>(areBounds, "bounds of splits")),
  runs: list(object({ first: count, count, attempt: name })),
}));

/** What a run or an entry has written. @throws {LeatError} `internal` for an invalid report. */
export function reportOf(frame: Uint8Array): Written & Partial<RunReport> {
  const report = decoded(frame, REPORT_STRUCTURE_BYTES_MAX);
  if (isReport(report)) return report as RunReport;
  throw unexpected();
}

/** How far a save is when it begins. @throws {LeatError} `internal` for an invalid report. */
export function startOf(frame: Uint8Array): SaveStart {
  const start = decoded(frame, START_STRUCTURE_BYTES_MAX);
  if (isStart(start)) return start as SaveStart;
  throw unexpected();
}

function decoded(frame: Uint8Array, structureBytesMax: number): unknown {
  try {
    return decodeMessage(frame, { structureBytesMax });
  } catch (cause) {
    throw unexpected(cause);
  }
}

function unexpected(cause?: unknown): LeatError {
  const what = "The runner's report about a save is invalid";
  return new LeatError("internal", what, { cause });
}
