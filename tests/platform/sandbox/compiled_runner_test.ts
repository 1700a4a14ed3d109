/**
 * The program of runners, started alone so that Deno stores its compiled code.
 *
 * @module
 */
import { runAlone } from "../../../platform/process/child_process.ts";
import { storeCompiledRunner } from "../../../platform/sandbox/compiled_runner.ts";
import { assert } from "../../assert.ts";

Deno.test("the program of runners, started without a worker, ends by itself", async () => {
  await runAlone(new URL("../../../platform/sandbox/runner_program.ts", import.meta.url).href);
});

Deno.test("compiled code of runners is stored once for all workers of a process", async () => {
  const storing = storeCompiledRunner();
  if (Deno.build.os === "linux") assert(storeCompiledRunner() === storing);
  await storing;
});
