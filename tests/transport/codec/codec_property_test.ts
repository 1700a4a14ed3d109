/**
 * Laws of the codec: over nested elements of every dtype, decoding undoes encoding; and whatever
 * happens to the bytes in between, the worst outcome is a `LeatError`.
 */

import { Buffer } from "node:buffer";
import { type DType, DTYPES, type FixedDType, TYPED_ARRAYS } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { RaggedTensor, Tensor } from "../../../core/tensor.ts";
import {
  decodeMessage,
  encodeBlocks,
  encodeMessage,
  LARGE_FROM_BYTES,
} from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";
import fc from "../../lib/properties.ts";

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 80 }),
  fc.string({ unit: "binary", maxLength: 80 }),
);
const key = text.filter((name) => name !== "__proto__");
const bytes = fc.uint8Array({ maxLength: 600 });

/** Random bytes as a typed array: includes NaNs of every payload, subnormals and infinities. */
function typedArray(dtype: FixedDType, length: number): fc.Arbitrary<Uint8Array> {
  const itemBytes = TYPED_ARRAYS[dtype].BYTES_PER_ELEMENT;
  const max = dtype === "bool" ? 1 : 255;
  const size = { minLength: length * itemBytes, maxLength: length * itemBytes };
  return fc.uint8Array({ ...size, max }).map((raw) =>
    new TYPED_ARRAYS[dtype](raw.slice().buffer, 0, length) as Uint8Array
  );
}

function tensorOf(dtype: DType, shape: number[]): fc.Arbitrary<Tensor> {
  const size = shape.reduce((a, b) => a * b, 1);
  const exactly = { minLength: size, maxLength: size };
  if (dtype === "string") {
    return fc.array(text, exactly).map((data) => new Tensor(dtype, shape, data));
  }
  if (dtype === "bytes") {
    return fc.array(bytes, exactly).map((data) => new Tensor(dtype, shape, data));
  }
  return typedArray(dtype, size).map((data) => new Tensor(dtype, shape, data as never));
}

const dtypes = fc.constantFrom(...DTYPES);
const shapes = fc.array(fc.nat(4), { maxLength: 4 });
const tensors = fc.tuple(dtypes, shapes).chain(([dtype, shape]) => tensorOf(dtype, shape));

const ragged = fc.tuple(dtypes, fc.array(fc.nat(3), { maxLength: 5 })).chain(([dtype, lengths]) => {
  const splits = new BigInt64Array(lengths.length + 1);
  lengths.forEach((length, i) => splits[i + 1] = splits[i]! + BigInt(length));
  const rows = Number(splits[lengths.length]);
  return tensorOf(dtype, [rows, 2]).map((values) => new RaggedTensor(values, splits));
});

const typedArrays = fc.tuple(
  fc.constantFrom(...Object.keys(TYPED_ARRAYS).filter((d) => d !== "bool") as FixedDType[]),
  fc.nat(40),
).chain(([dtype, length]) => typedArray(dtype, length));

const leaves = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  fc.boolean(),
  fc.constant(null),
  text,
  bytes,
  typedArrays,
  tensors,
  ragged,
  bytes.map((block) => new Payload(block)),
);

const { elements } = fc.letrec((tie) => ({
  elements: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaves,
    fc.array(tie("elements"), { maxLength: 6 }),
    fc.dictionary(key, tie("elements"), { maxKeys: 6, noNullPrototype: false }),
  ),
}));

/**
 * Equal to the last bit: -0 is not 0, NaNs agree in their bytes, classes and the order of keys
 * count.
 */
function assertSame(actual: unknown, expected: unknown): void {
  if (typeof expected !== "object" || expected === null) {
    return assert(Object.is(actual, expected), `${String(actual)} is not ${String(expected)}`);
  }
  assert(typeof actual === "object" && actual !== null);
  if (ArrayBuffer.isView(expected)) {
    assertEquals(actual.constructor, expected.constructor);
    return assertEquals(rawBytes(actual as Uint8Array), rawBytes(expected));
  }
  // Whether a payload is shared depends on the buffer of the frame.
  if (expected instanceof Payload) return assertSame((actual as Payload).bytes, expected.bytes);
  if (expected instanceof Tensor || expected instanceof RaggedTensor) {
    assertEquals(actual.constructor, expected.constructor);
  } else {
    assertEquals(Array.isArray(actual), Array.isArray(expected));
  }
  assertEquals(Object.keys(actual), Object.keys(expected));
  for (const [name, value] of Object.entries(expected)) {
    assertSame((actual as Record<string, unknown>)[name], value);
  }
}

function rawBytes(view: ArrayBufferView): string {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength).toHex();
}

Deno.test("decodeMessage undoes encodeMessage for nested elements of every dtype", () => {
  fc.assert(
    fc.property(elements, fc.boolean(), (element, shared) => {
      const frame = encodeMessage(element, { into: shared ? "shared" : "arraybuffer" });
      assertSame(decodeMessage(frame), element);
    }),
    { numRuns: 1000 },
  );
});

Deno.test("encodeBlocks gives the bytes of encodeMessage, with large payloads where they are", () => {
  const large = fc.tuple(fc.integer({ min: 65_000, max: 70_000 }), fc.boolean()).map((
    [length, isShared],
  ) => new Uint8Array(isShared ? new SharedArrayBuffer(length) : new ArrayBuffer(length)).fill(1));
  fc.assert(
    fc.property(fc.array(fc.oneof(elements, large), { maxLength: 6 }), (values) => {
      const blocks = encodeBlocks(values);
      assertEquals(Buffer.compare(Buffer.concat(blocks), encodeMessage(values)), 0);
      for (const value of values) {
        if (value instanceof Uint8Array && value.length >= LARGE_FROM_BYTES) {
          assert(blocks.some(({ buffer }) => buffer === value.buffer));
        }
      }
    }),
    { numRuns: 100 },
  );
});

Deno.test("codec round trip covers every dtype, dense and ragged, with and without axes", () => {
  for (const dtype of DTYPES) {
    for (const shape of [[], [0], [3], [2, 0, 2], [2, 3]]) {
      fc.assert(
        fc.property(tensorOf(dtype, shape), (value) => {
          assertSame(decodeMessage(encodeMessage(value)), value);
        }),
        { numRuns: 10 },
      );
    }
  }
});

Deno.test("encodeMessage is a function of its value: the same bytes again, whatever was encoded in between", () => {
  fc.assert(
    fc.property(elements, elements, (element, other) => {
      const first = encodeMessage(element);
      encodeMessage(other);
      assertEquals(encodeMessage(decodeMessage(first)).toHex(), first.toHex());
    }),
    { numRuns: 200 },
  );
});

Deno.test("decodeMessage refuses every truncation of a message as data_loss", () => {
  fc.assert(
    fc.property(elements, (element) => {
      const frame = encodeMessage(element);
      const step = Math.max(1, Math.floor(frame.length / 200));
      for (let length = 0; length < frame.length; length += step) {
        const error = assertThrows(
          () => decodeMessage(frame.slice(0, length)),
          LeatError,
        ) as LeatError;
        assertEquals(error.code, "data_loss", error.message);
      }
    }),
    { numRuns: 200 },
  );
});

Deno.test("decodeMessage of flipped bytes returns a value or throws a LeatError", () => {
  const flips = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 });
  let refused = 0;
  fc.assert(
    fc.property(elements, flips, (element, changes) => {
      const frame = encodeMessage(element);
      // Most of a frame is payload, where any bytes are valid: every other flip hits the envelope.
      const envelopeBytes = Math.min(frame.length, 64);
      for (const [i, [at, mask]] of changes.entries()) {
        const index = at % (i % 2 === 0 ? envelopeBytes : frame.length);
        frame[index] = frame[index]! ^ mask;
      }
      try {
        decodeMessage(frame);
      } catch (error) {
        if (!(error instanceof LeatError)) throw error;
        refused++;
      }
    }),
    { numRuns: 3000 },
  );
  assert(refused > 500, `only ${refused} of 3000 damaged messages were refused`);
});

Deno.test("decodeMessage of random bytes after a valid header returns a value or throws a LeatError", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 300 }), (envelope) => {
      const frame = new Uint8Array([
        0xce,
        0,
        0,
        envelope.length >> 8,
        envelope.length & 0xff,
        ...envelope,
      ]);
      try {
        decodeMessage(frame);
      } catch (error) {
        if (!(error instanceof LeatError)) throw error;
      }
    }),
    { numRuns: 3000 },
  );
});
