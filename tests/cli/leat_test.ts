/** `leat`: one command for all programs of a cluster. */

import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { startChild } from "../lib/child.ts";

const leat = (...args: string[]) => startChild("cli/leat.ts", { args });

Deno.test("leat runs a dispatcher, and requests its status", async () => {
  await using dispatcher = leat("dispatcher", "--port", "0");
  const [, address] = await dispatcher.line(/(ws:\/\/\S+)/);
  await using status = leat("status", "--dispatcher", address!, "--json");
  assertEquals((await status.status).code, 0);
  assertMatch(status.stdout.text, /"workers": \[\]/);
});

Deno.test("leat lists its commands, and forwards --help to them", async () => {
  await using all = leat("--help");
  assertEquals((await all.status).code, 0);
  for (const name of ["dispatcher", "worker", "status", "autoscale", "plan", "cluster"]) {
    assertMatch(all.stdout.text, new RegExp(`^  ${name} `, "m"));
  }
  await using worker = leat("worker", "--help");
  assertEquals((await worker.status).code, 0);
  assertStringIncludes(worker.stdout.text, "--dispatcher ADDRESS");
});

Deno.test("leat refuses an unknown command, and names the nearest", async () => {
  await using child = leat("wroker");
  assertEquals((await child.status).code, 2);
  assertStringIncludes(child.stderr.text, "did you mean worker?");
});
