/**
 * The helper that starts child processes: lines, signals, exit status, and that no process is left.
 */

import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { type Child, startChild } from "../lib/child.ts";

const PROGRAM = "tests/tools/fixture_child.ts";

/** The deaf child is killed without a wait; others have time to end on any machine. */
function start(mode: string): Child {
  const stopTimeoutMs = mode === "deaf" ? 500 : 120_000;
  return startChild(PROGRAM, { flags: [], args: [mode], stopTimeoutMs });
}

Deno.test("startChild returns the lines, the streams and the exit code of a child", async () => {
  await using child = start("leave");
  assertEquals((await child.line(/mode (\w+)/))[1], "leave");
  const { success, code, signal } = await child.status;
  assertEquals({ success, code, signal }, { success: false, code: 3, signal: null });
  assertEquals(child.stdout.text, "child of mode leave\n");
  assertStringIncludes(child.stderr.text, "a word on standard error");
});

Deno.test("Child.kill ends a child with the signal that its status names", async () => {
  await using child = start("stay");
  await child.line(/child of/);
  child.kill("SIGKILL");
  assertEquals((await child.status).signal, "SIGKILL");
  child.kill("SIGKILL");
});

Deno.test("Child.write reaches the standard input, and lines are returned once", async () => {
  await using child = start("echo");
  await child.line(/child of/);
  await child.write("one\n");
  assertEquals((await child.line(/heard (.*)/))[1], "one");
  await child.write("two\n");
  assertEquals((await child.line(/heard (.*)/))[1], "two");
});

Deno.test("Child.line fails with the output when a child ends without the line", async () => {
  await using child = start("leave");
  await assertRejects(() => child.line(/never/), Error, "child of mode leave");
});

Deno.test("disposing a child ends and reaps it, also one that ignores SIGTERM", async () => {
  for (const [mode, ended] of [["stay", "SIGTERM"], ["deaf", "SIGKILL"]] as const) {
    const child = start(mode);
    await child.line(/child of/);
    await child[Symbol.asyncDispose]();
    // The status settles only when the process was reaped.
    assertEquals((await child.status).signal, ended);
  }
});
