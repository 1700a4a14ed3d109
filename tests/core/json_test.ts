/** JSON of others: like `JSON.parse`, with limits of its depth and of its lists, objects and fields. */

import { LeatError } from "../../core/error.ts";
import {
  hasManyStructures,
  JSON_DEPTH_MAX,
  JSON_STRUCTURES_MAX,
  parseJson,
} from "../../core/json.ts";
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

Deno.test("parseJson refuses wide JSON before it takes many times its bytes", () => {
  const half = JSON_STRUCTURES_MAX / 2;
  const wide = [
    `[${"{},".repeat(JSON_STRUCTURES_MAX)}0]`,
    `[${"[],".repeat(JSON_STRUCTURES_MAX)}`,
    `[${'{"a":1},'.repeat(half)}0]`,
    `{${'"a":1,'.repeat(JSON_STRUCTURES_MAX)}"b":1}`,
  ];
  for (const text of wide) {
    const error = assertThrows(() => parseJson(text), LeatError, "JSON_STRUCTURES_MAX");
    assertEquals(error.code, "resource_exhausted");
  }
});

Deno.test("parseJson counts neither numbers nor what is within texts", () => {
  const text = '{:["'.repeat(JSON_STRUCTURES_MAX / 2);
  assertEquals(parseJson(JSON.stringify(text)), text);
  const numbers = `[${"1,".repeat(JSON_STRUCTURES_MAX)}1]`;
  assertEquals((parseJson(numbers) as number[]).length, JSON_STRUCTURES_MAX + 1);
});

Deno.test("hasManyStructures counts lists, objects and fields", () => {
  const text = '[{"a:":[1]},["{",{}]]'; // Six.
  assertEquals([hasManyStructures(text, 5), hasManyStructures(text, 6)], [true, false]);
});
