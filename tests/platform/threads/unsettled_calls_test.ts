/** Calls on other threads that wait for what never comes. */
import { assertEquals } from "../../assert.ts";
import { startChild } from "../../lib/child.ts";

Deno.test("a program exits by itself after loops were left while calls on threads never settle", async () => {
  await using child = startChild("tests/platform/threads/fixture_never_settles.ts", {
    flags: ["-P"],
  });
  const { code } = await child.status;
  assertEquals(code, 0, child.stderr.text);
  assertEquals(child.stdout.text, "left prefetch with thread\nleft map with threads\n");
});
