/** Dtypes: sizes and storage. */

import { dtypeOf, DTYPES, isDType, isTypedArray, itemSize, zerosOf } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { assertEquals, assertThrows } from "../assert.ts";

Deno.test("itemSize is the size of each dtype's store", () => {
  assertEquals(DTYPES.map(itemSize), [1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 1, 0, 0]);
});

Deno.test("dtypeOf undoes zerosOf, bool being stored as uint8", () => {
  for (const dtype of DTYPES) {
    const store = zerosOf(dtype, 3);
    assertEquals(store.length, 3);
    const expected = dtype === "bool" ? "uint8" : Array.isArray(store) ? undefined : dtype;
    assertEquals(dtypeOf(store), expected);
  }
  assertThrows(() => zerosOf("complex" as "int8", 1), LeatError, "complex");
});

Deno.test("isTypedArray knows subclasses of Uint8Array, and no clamped arrays or DataViews", async () => {
  const { Buffer } = await import("node:buffer");
  assertEquals(dtypeOf(Buffer.from("a")), "uint8");
  assertEquals(isTypedArray(new Uint8ClampedArray(1)), false);
  assertEquals(isTypedArray(new DataView(new ArrayBuffer(1))), false);
  assertEquals([isDType("bool"), isDType("toString")], [true, false]);
});
