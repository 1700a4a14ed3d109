/**
 * Compares runs with their recorded traces in `tests/sim/trace_hashes.txt`: a few seeds of each
 * workload; `deno task hashes` compares all. A change that is meant to change messages records them
 * again with `deno task hashes --write`.
 */
import { LeatError } from "../../core/error.ts";
import {
  differenceText,
  formatHashes,
  hashDifferences,
  parseHashes,
  recordedHash,
  recordedRuns,
  runKey,
} from "../../sim/vopr/recorded_hashes.ts";
import { runSeed } from "../../sim/vopr/seed_run.ts";
import { WORKLOADS } from "../../sim/workloads/workloads.ts";
import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "../assert.ts";
import { startChild } from "../lib/child.ts";

const FILE = new URL("trace_hashes.txt", import.meta.url);
const RECORD = "if messages are meant to change, record them with `deno task hashes --write`";
/** Number of recorded seeds of each workload, and of those compared here. */
const SEEDS = 200;
const TRIED = 2;

const names = Object.keys(WORKLOADS);
const recorded = parseHashes(await Deno.readTextFile(FILE));

Deno.test("the recorded traces are those of 200 seeds of each workload, all different", () => {
  assertEquals([...recorded.keys()], [...recordedRuns(names, SEEDS)].map(runKey), RECORD);
  // The workload "pipelines" may draw the pipeline of another one.
  const traces = [...recorded].map(([run, hash]) => `${run.split(" ")[0]} ${hash}`);
  assertEquals(new Set(traces).size, recorded.size);
});

for (const workload of names) {
  Deno.test(`the first ${TRIED} seeds of ${workload} have the recorded traces`, async () => {
    const found = new Map<string, string>();
    for (const run of recordedRuns([workload], TRIED)) {
      found.set(runKey(run), recordedHash(await runSeed(run)));
    }
    assertEquals(hashDifferences(recorded, found).map(differenceText), [], RECORD);
  });
}

Deno.test("deno task hashes compares the seeds of the given workload", async () => {
  const args = ["--workload", "static", "--seeds", "3", "--jobs", "0"];
  await using child = startChild("tools/hashes.ts", { args, flags: ["-P=hashes"] });
  assertEquals((await child.status).code, 0, child.stdout.text);
  assertStringIncludes(child.stdout.text, "3 runs: every trace is as recorded");
});

Deno.test("hashDifferences names the first run that differs, by workload and seed, and a run that is not recorded", () => {
  const hash = "0123456789abcdef";
  const before = new Map([["dynamic 1", hash], ["dynamic 2", hash], ["off 1", hash]]);
  assertEquals(parseHashes(formatHashes(before)), before);
  assertEquals(hashDifferences(before, before), []);
  const after = new Map([...before, ["dynamic 2", "f".repeat(16)], ["off 2", hash]]);
  const [first, second, ...others] = hashDifferences(before, after).map(differenceText);
  assertMatch(first!, /^seed 2 of dynamic has the trace f{16}, but recorded is 0123456789abcdef\./);
  assertMatch(first!, /deno task vopr --workload dynamic --seed 2 --timeline$/);
  assertMatch(second!, /^seed 2 of off .* nothing is recorded for it/);
  assertEquals(others, []);
});

Deno.test("parseHashes refuses an invalid line by its number", () => {
  const error = assertThrows(
    () => parseHashes("dynamic 1 0123456789abcdef\ndynamic 2 0123\n"),
    LeatError,
  ) as LeatError;
  assertEquals(error.code, "data_loss");
  assertMatch(error.message, /^Line 2 .*"dynamic 2 0123".*deno task hashes --write/);
});
