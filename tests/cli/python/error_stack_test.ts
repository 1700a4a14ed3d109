/** The calls of an error's stack that a Python program is shown. */
import { withStack } from "../../../cli/python/error_stack.ts";
import { assertEquals } from "../../assert.ts";

function placesOf(...lines: string[]): unknown {
  const error = new Error("wrong");
  error.stack = ["Error: wrong", ...lines].join("\n");
  return withStack(error).details?.["places"];
}

Deno.test("withStack names the calls outside Leat, in each form that a stack has", () => {
  // As Deno writes it in stacks: without escapes of URLs.
  const own = decodeURIComponent(new URL("../../../data/dataset.ts", import.meta.url).href);
  assertEquals(
    placesOf(
      "    at file:///a b.ts:1:2",
      "    at async Object.load (https://host/b.ts:3:4)",
      `    at map (${own}:5:6)`,
      "    at Array.map (<anonymous>)",
      "no call of file:///c.ts:7:8",
    ),
    ["file:///a b.ts:1:2", "https://host/b.ts:3:4"],
  );
});

Deno.test("withStack searches a long message once, not from each of its places", () => {
  const space = "\t\n ".repeat(500_000);
  assertEquals(placesOf(space, `    at ${"file://s".repeat(500_000)}`), undefined);
});
