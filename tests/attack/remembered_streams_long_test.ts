/** Streams of one identity must not make the dispatcher forget, or keep too much, for others. */
import {
  notePassed,
  noteReader,
  noteRun,
} from "../../actors/dispatcher/modes/deterministic/stream_runs_state.ts";
import {
  bytesOfRun,
  readersKey,
} from "../../actors/dispatcher/modes/deterministic/stream_memory.ts";
import type { RecordOf } from "../../actors/dispatcher/journal/records.ts";
import type { Iteration } from "../../actors/dispatcher/state/entities.ts";
import { Tables } from "../../actors/dispatcher/state/tables.ts";
import { assert, assertEquals } from "../assert.ts";

/** More than are remembered of one identity. */
const STREAMS = 150_000;
const LAST = 65_535;

function come(
  tables: Tables,
  owner: string,
  name: string,
  runId: string,
  clientId: number,
): string {
  const stream = JSON.stringify([owner, name]);
  const record: RecordOf<"client_opened"> = {
    ...{ type: "client_opened", clientId, iterationId: 1, requestId: "q", consumerIndex: LAST },
    ...{ stream, runId, restoration: `r${clientId}` },
  };
  const iteration = { jobId: 1, repetition: 0, run: { stream, runId } } as Iteration;
  noteRun(tables, iteration, record);
  noteReader(tables, { ordered: null }, record);
  notePassed(tables, iteration, LAST, 0);
  return stream;
}

Deno.test("a neighbour's many streams make the dispatcher forget only the neighbour's oldest", () => {
  const tables = new Tables();
  tables.addJob({
    ...{ jobId: 1, name: "j", owner: "trainer", workers: null },
    parameters: { datasetId: "1", processingMode: "DETERMINISTIC", sharing: false },
  });
  come(tables, "trainer", "train", "run-1", 1);
  const stream = come(tables, "trainer", "train", "run-2", 2);
  const first = come(tables, "neighbour", "first", "x", 3);
  for (let i = 0; i < STREAMS; i++) come(tables, "neighbour", `s${i}`, "x", 4 + i);
  assertEquals(tables.runs.get(stream)?.past, ["run-1"]);
  assertEquals(tables.readers.get(readersKey(stream, LAST))?.newest, 2);
  assertEquals(tables.runs.get(first), undefined);
  assertEquals(tables.readers.get(readersKey(first, LAST)), undefined);
  assert([...tables.runs].length < STREAMS && [...tables.readers].length < STREAMS);
});

Deno.test("a run keeps the repetitions that consumers have finished, and nothing of lower indices", () => {
  const tables = new Tables();
  tables.addJob({
    ...{ jobId: 1, name: "j", owner: "trainer", workers: null },
    parameters: { datasetId: "1", processingMode: "DETERMINISTIC", sharing: false },
  });
  const stream = come(tables, "trainer", "train", "run", 1);
  assertEquals(tables.runs.get(stream)?.passed, [{ jobName: "j", repetitions: { [LAST]: 0 } }]);
  // A snapshot restores what it counts for, so that the same streams are forgotten after it.
  assertEquals(tables.runs.bytesOf(stream), bytesOfRun(stream, tables.runs.get(stream)!));
});
