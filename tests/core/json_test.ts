/** JSON of others: like `JSON.parse`, with a limit of its depth. */

import { LeatError } from "../../core/error.ts";
import { JSON_DEPTH_MAX, parseJson } from "../../core/json.ts";
import { assertEquals, assertThrows } from "../assert.ts";

const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

Deno.test("parseJson parses as JSON.parse does, also what has many brackets", () => {
  const brackets = '{"[\\"'.repeat(JSON_DEPTH_MAX);
  const texts = [
    "7",
    nested(JSON_DEPTH_MAX),
    `[${"[],".repeat(JSON_DEPTH_MAX)}{}]`,
    JSON.stringify({ [brackets]: [brackets, `${brackets}\\`, "\\".repeat(5)] }),
  ];
  for (const text of texts) assertEquals(JSON.stringify(parseJson(text)), text);
  for (const text of ["", "[", '"'.repeat(3), `${nested(JSON_DEPTH_MAX)}"${brackets}`]) {
    assertThrows(() => parseJson(text), SyntaxError);
  }
});

Deno.test("parseJson refuses deep JSON before it takes memory for it", () => {
  const deep = [
    nested(JSON_DEPTH_MAX + 1),
    "[".repeat(5_000_000),
    '{"a":'.repeat(JSON_DEPTH_MAX + 1),
    `["\\\\", ${"[".repeat(JSON_DEPTH_MAX)}`,
    `["\\"]", ${"[".repeat(JSON_DEPTH_MAX)}`,
  ];
  for (const text of deep) {
    const error = assertThrows(() => parseJson(text), LeatError, "JSON_DEPTH_MAX");
    assertEquals(error.code, "resource_exhausted");
  }
});
