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

Deno.test("encodeValue keeps a hole in an array apart from null", () => {
  const holed: unknown[] = [null];
  holed[2] = 1;
  assertEquals(new EncodedValue(encodeValue(holed)).read(), [null, undefined, 1]);
});

Deno.test("encodeValue refuses an array whose buffer was transferred", () => {
  const array = new Float32Array(4);
  array.buffer.transfer();
  const error = assertThrows(() => encodeValue({ array }), LeatError, "Float32Array") as LeatError;
  assertEquals(error.code, "failed_precondition");
});

Deno.test("EncodedValue.read refuses a value whose arrays name more bytes than there are", () => {
  const encoded = encodeValue([new Uint8Array(100), new Uint8Array(50)]);
  const jsonLength = new DataView(encoded.buffer).getUint32(0, true);
  const json = new TextDecoder().decode(encoded.subarray(4, 4 + jsonLength));
  const binary = encoded.subarray(4 + jsonLength);
  for (const range of ["[0,100]", "[0,51]", "[-1,50]", "[0,1e300]", '["0",50]']) {
    const changed = new TextEncoder().encode(json.replace("[100,50]", range));
    const bytes = new Uint8Array([...encoded.subarray(0, 4), ...changed, ...binary]);
    new DataView(bytes.buffer).setUint32(0, changed.length, true);
    const error = assertThrows(() => new EncodedValue(bytes).read(), LeatError);
    assertEquals(error.code, "data_loss", range);
  }
});
