/**
 * The program of runners, started alone so that Deno stores its compiled code.
 *
 * @module
 */
import { runAlone } from "../../../platform/process/child_process.ts";
import { storeCompiledRunner } from "../../../platform/sandbox/compiled_runner.ts";
import { assert } from "../../assert.ts";
import { PATIENCE_MS } from "../../lib/until.ts";

Deno.test("the program of runners, started without a worker, ends by itself", async () => {
  await runAlone(
    new URL("../../../platform/sandbox/runner_program.ts", import.meta.url).href,
    PATIENCE_MS,
  );
});

Deno.test("runAlone ends a program that does not end by itself in time", async () => {
  await runAlone("data:text/javascript,setInterval(() => {}, 1_000)", 1);
});

Deno.test("compiled code of runners is stored once for all workers of a process", async () => {
  const storing = storeCompiledRunner();
  if (Deno.build.os === "linux") assert(storeCompiledRunner() === storing);
  await storing;
});
