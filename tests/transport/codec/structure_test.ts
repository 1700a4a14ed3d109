/** What a decoded message may take: values that are many times larger than their bytes. */
import { LeatError } from "../../../core/error.ts";
import { Tensor, tensor } from "../../../core/tensor.ts";
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";

const COUNT = 50_000;
const LIMIT = { structureBytesMax: 2 ** 20 };

function copies<T>(value: T, count = COUNT): T[] {
  return Array<T>(count).fill(value);
}

/** Messages below or near the limit in bytes, whose values are far above it. */
const LARGE: Readonly<Record<string, unknown>> = {
  "empty lists": copies([]),
  "empty maps": copies({}),
  "small numbers": copies(0),
  "lists in lists": copies([[[]]], COUNT / 4),
  "keys that are numbers": copies({ "999": 0 }),
  "bytes of no length": copies(new Uint8Array(0)),
  "tensors": Array.from({ length: COUNT / 10 }, () => tensor(new Uint8Array(1))),
  "typed arrays": Array.from({ length: COUNT / 10 }, () => new Float32Array(1)),
  "a tensor of empty texts": new Tensor("string", [COUNT], copies("")),
  "a tensor of empty bytes": new Tensor("bytes", [COUNT], copies(new Uint8Array(0))),
  "a long text": "x".repeat(2 ** 20),
  "a tensor of a long text": new Tensor("string", [1], ["x".repeat(2 ** 20)]),
};

Deno.test("decodeMessage refuses more structure than structureBytesMax, and says what to do", () => {
  for (const [name, value] of Object.entries(LARGE)) {
    const frame = encodeMessage(value);
    decodeMessage(frame);
    const error = assertThrows(() => decodeMessage(frame, LIMIT), LeatError) as LeatError;
    assertEquals(error.code, "resource_exhausted", name);
    assertStringIncludes(error.message, "1048576 bytes; put numbers into typed arrays");
  }
});

Deno.test("decodeMessage counts no bytes of payloads as structure", () => {
  const value = {
    pixels: tensor(new Uint8Array(2 ** 22)),
    jpegs: new Tensor("bytes", [2], copies(new Uint8Array(2 ** 20), 2)),
    frame: new Payload(new Uint8Array(2 ** 21)),
    captions: copies("a caption", 10_000),
  };
  const { captions } = decodeMessage(encodeMessage(value), LIMIT) as typeof value;
  assertEquals(captions, value.captions);
});

Deno.test("decodeMessage sorts keys that are numbers, and takes memory only for keys that exist", () => {
  const frame = encodeMessage({ b: 1, "999": 2, "7": copies({ "999": 0 }, 20_000) });
  const before = Deno.memoryUsage().heapUsed;
  const decoded = decodeMessage(frame) as Record<string, unknown>;
  const bytes = Deno.memoryUsage().heapUsed - before;
  assertEquals(Object.keys(decoded), ["7", "999", "b"]);
  assertEquals((decoded["7"] as unknown[])[19_999], { "999": 0 });
  // In V8's arrays each of them would take 12 KB.
  assert(bytes < 2 ** 26, `${bytes} bytes`);
});
