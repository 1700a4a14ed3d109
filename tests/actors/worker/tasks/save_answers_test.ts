/** What a worker accepts of a runner's report of a save. */
import { PipelineRunners } from "../../../../actors/worker/runner/pipeline_runner.ts";
import { reportOf, startOf } from "../../../../actors/worker/tasks/save_answers.ts";
import { LeatError } from "../../../../core/error.ts";
import { Dataset } from "../../../../data/dataset.ts";
import { packSplits } from "../../../../data/sharding/split_table.ts";
import { DenoHost } from "../../../../platform/deno_host.ts";
import { encodeMessage } from "../../../../transport/codec.ts";
import { assert, assertEquals, assertThrows } from "../../../assert.ts";
import { inFolder } from "../../../lib/temp_folder.ts";

const PROGRESS = { id: "1", entries: 0, upTo: 0, elements: 0, sizeBytes: 0 };

Deno.test("startOf takes the splits that a runner lists, and a million of them", async () => {
  await inFolder(async (folder) => {
    const { graph, fingerprint } = { graph: Dataset.range(2 ** 31).serialize(), fingerprint: "f" };
    const runners = new PipelineRunners(new DenoHost());
    const runner = runners.start({
      ...{ graph, seed: "0000000000000001", epoch: 0, splits: false, shared: false },
      save: { folder: `${folder}/saved`, overwrite: false, fingerprint },
    }, { next: () => Promise.resolve(null), total: () => Promise.resolve(0) });
    const outcome = await runner.next({ work: "begin", owner: "cluster/1" });
    assert("frame" in outcome);
    assertEquals(startOf(outcome.frame).bounds[0]!.length, 2 * 2 ** 18);
    await runners.close();
  });
  const splits = Array.from({ length: 1_000_000 }, (_, i) => ({ start: i, stop: i + 1 }));
  const runs = Array.from({ length: 5_000 }, (_, first) => ({ first, count: 1, attempt: "abcd" }));
  const start = { ...PROGRESS, bounds: packSplits([splits]), runs };
  assertEquals(startOf(encodeMessage(start)), start);
});

Deno.test("startOf and reportOf refuse everything else", () => {
  const start = { ...PROGRESS, bounds: packSplits([[{ start: 0, stop: 1 }]]), runs: [] };
  const report = { elements: 1, sizeBytes: 1, attempt: "a", restBytes: 1 };
  assertEquals(reportOf(encodeMessage(report)), report);
  for (
    const wrong of [
      ...[null, 7, [], {}, new Array(100_000).fill({})],
      ...[{ ...report, elements: -1 }, { ...report, sizeBytes: "1" }, { ...report, attempt: 7 }],
      ...[{ ...start, bounds: [new Float64Array([1, 0])] }, { ...start, runs: [{ first: 0 }] }],
      ...[{ ...report, restBytes: -1 }, { ...start, id: "x".repeat(5_000) }],
    ]
  ) {
    const frame = encodeMessage(wrong);
    const error = assertThrows(
      () => startOf(frame),
      LeatError,
      "report about a save is invalid",
    ) as LeatError;
    assertEquals(error.code, "internal");
    if (wrong !== null && typeof wrong === "object" && "entries" in wrong) continue;
    assertThrows(() => reportOf(frame), LeatError, "report about a save is invalid");
  }
  assertThrows(() => startOf(new Uint8Array(3)), LeatError, "report about a save is invalid");
  // These are refused before they are decoded: they would take many times their bytes.
  for (const [read, count] of [[reportOf, 10_000], [startOf, 1_000_000]] as const) {
    const frame = encodeMessage(new Array(count).fill({}));
    const { cause } = assertThrows(
      () => read(frame),
      LeatError,
      "report about a save is invalid",
    ) as LeatError;
    assertEquals(LeatError.from(cause).code, "resource_exhausted");
  }
});
