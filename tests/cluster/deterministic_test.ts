/**
 * DETERMINISTIC jobs over real processes that are killed: the stream is the same each time. More of
 * it: `deno task chaos --kills 200`.
 *
 * @module
 */
import { assertEquals, assertMatch } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { soon } from "./lib.ts";

const FLAGS = ["-P=cluster"];

Deno.test("workers and dispatchers killed at random leave the hash of a DETERMINISTIC stream as it was", async () => {
  await using child = startChild("examples/chaos.ts", {
    args: ["--kills", "4", "--seed", "5", "--dispatcher", "--elements", "8000"],
    flags: FLAGS,
    stopTimeoutMs: 20_000,
  });
  const { code } = await soon("the program's end", child.status);
  assertEquals(code, 0, `${child.stdout.text}\n${child.stderr.text}`);
  assertMatch(child.stdout.text, /run 1: \d+ kills, .*\(same\)/);
  assertMatch(child.stdout.text, /4 kills in \d runs: \d streams the same, 0 different/);
  assertMatch(child.stdout.text, /every worker produced/);
});

Deno.test("examples/chaos.ts --help explains its options", async () => {
  await using child = startChild("examples/chaos.ts", { args: ["--help"], flags: FLAGS });
  assertEquals((await child.status).code, 0);
  assertMatch(child.stdout.text, /^Usage: deno task chaos/);
  assertMatch(child.stdout.text, /--seed/);
});
