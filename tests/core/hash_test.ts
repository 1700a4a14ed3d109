/** Digests: known answers, and one spelling per value. */

import { LeatError } from "../../core/error.ts";
import { canonicalJson, hashBytes, hashJson } from "../../core/hash.ts";
import { assertEquals, assertThrows } from "../assert.ts";

Deno.test("hashBytes is SHA-256 in hexadecimal, text as UTF-8", () => {
  const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  assertEquals(hashBytes("abc"), abc);
  assertEquals(hashBytes(new Uint8Array([97, 98, 99])), abc);
});

Deno.test("canonicalJson sorts keys, leaves out undefined, and spells what JSON cannot say", () => {
  assertEquals(
    canonicalJson({ b: [1, null, "é"], a: true, u: undefined }),
    '{"a":true,"b":[1,null,"é"]}',
  );
  assertEquals(
    canonicalJson([NaN, -0, -Infinity, 5n, new Int16Array([-1])]),
    '[{"$number":"NaN"},{"$number":"-0"},{"$number":"-Infinity"},{"$bigint":"5"},{"$int16":"ffff"}]',
  );
});

Deno.test("hashJson is equal for equal values, whatever the order of keys, and differs for others", () => {
  assertEquals(hashJson({ a: 1, b: { c: 2, d: 3 } }), hashJson({ b: { d: 3, c: 2 }, a: 1 }));
  const unlike = [
    1,
    1n,
    "1",
    [1],
    { 1: 1 },
    0,
    -0,
    null,
    true,
    { $bigint: "1" },
    { $$bigint: "1" },
    {
      a: 1,
      b: 2,
    },
    { a: 1 },
    new Uint8Array([1]),
    new Int8Array([1]),
    [[]],
    [],
    {},
    [{}],
  ];
  assertEquals(new Set(unlike.map(hashJson)).size, unlike.length);
});

Deno.test("canonicalJson refuses what is not plain data, naming its path", () => {
  const refused: [unknown, string][] = [
    [{ a: [() => 1] }, "function at $.a[0]"],
    [[undefined], "undefined at $[0]"],
    [{ m: new Map() }, "Map at $.m"],
    [{ g: (function* () {})() }, "Generator at $.g"],
    [Symbol("s"), "symbol at $"],
  ];
  for (const [value, part] of refused) {
    const error = assertThrows(() => canonicalJson(value), LeatError, part) as LeatError;
    assertEquals(error.code, "invalid_argument");
  }
});
