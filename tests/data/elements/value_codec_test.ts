/** Encoding of values: those that cannot be encoded. */
import { LeatError } from "../../../core/error.ts";
import { EncodedValue, encodeValue } from "../../../data/elements/value_codec.ts";
import { assertEquals, assertThrows } from "../../assert.ts";

/** Arrays within arrays. */
function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

Deno.test("encodeValue keeps deep values, and refuses too deep ones with its own error", () => {
  assertEquals(new EncodedValue(encodeValue(nested(200))).read(), nested(200));
  const error = assertThrows(() => encodeValue(nested(100_000)), LeatError) as LeatError;
  assertEquals(error.code, "failed_precondition");
});
