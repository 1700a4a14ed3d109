/**
 * The codec by example: values survive, aligned and uncopied, and values that cannot be sent are
 * refused by their path.
 */

import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { RaggedTensor, Tensor, tensor } from "../../../core/tensor.ts";
import {
  decodeMessage,
  encodeBlocks,
  encodeMessage,
  type EncodeOptions,
  ENVELOPE_DEPTH_MAX,
  MessageSlab,
  PAYLOAD_ALIGNMENT,
  prepareMessage,
} from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";

/** The error of `fn`, which must be a `LeatError` of that code. */
function refusal(code: LeatErrorCode, fn: () => unknown): LeatError {
  const error = assertThrows(fn, LeatError) as LeatError;
  assertEquals(error.code, code, error.message);
  return error;
}

function roundTrip<T>(value: T): T {
  return decodeMessage(encodeMessage(value)) as T;
}

Deno.test("codec keeps numbers that JSON would lose", () => {
  const numbers = [0, -0, 127, 128, -32, -33, 65536, -(2 ** 31), 2 ** 32, 2 ** 53, 0.1, 5e-324];
  for (const number of [...numbers, NaN, Infinity, -Infinity]) {
    assertStrictEquals(roundTrip({ number }).number, number);
  }
});

Deno.test("codec keeps bigints of 64 bits, and refuses wider ones by their path", () => {
  for (const big of [0n, -1n, 2n ** 63n - 1n, 2n ** 64n - 1n, -(2n ** 63n)]) {
    assertStrictEquals(roundTrip([big])[0], big);
  }
  const error = refusal("invalid_argument", () => encodeMessage({ a: [2n ** 64n] }));
  assertStringIncludes(error.message, "$.a[0]");
  refusal("invalid_argument", () => encodeMessage(-(2n ** 63n) - 1n));
});

Deno.test("codec keeps the order of keys and drops those whose value is undefined", () => {
  const sent = { z: 1, gone: undefined, a: { b: undefined }, m: [] };
  assertEquals(JSON.stringify(roundTrip(sent)), '{"z":1,"a":{},"m":[]}');
  assert("gone" in sent, "the caller's object stays as it was");
});

Deno.test("codec accepts objects with keys that msgpackr would call", () => {
  const odd = { constructor: 1, toJSON: "x", hasOwnProperty: 0, length: 3 };
  assertEquals(roundTrip(odd), odd);
  const bare = Object.assign(Object.create(null), { toJSON: 1, a: undefined, b: 2 });
  assertEquals(roundTrip(bare), { toJSON: 1, b: 2 });
});

Deno.test("codec keeps an object of more than 65,535 keys", () => {
  const wide = Object.fromEntries(Array.from({ length: 70_000 }, (_, i) => [`k${i}`, i]));
  assertEquals(Object.keys(roundTrip(wide)).length, 70_000);
});

Deno.test("codec keeps text with a byte-order mark, emoji, and any length", () => {
  for (const length of [1, 15, 31, 32, 33, 63, 64, 255, 256, 65_536]) {
    for (const unit of ["a", "é", "漢", "😀", "\uFEFF"]) {
      const text = unit.repeat(length);
      assertStrictEquals(roundTrip(text), text);
    }
  }
});

Deno.test("codec refuses a generator by its kind, naming flatMap", () => {
  const generators = { Generator: (function* () {})(), AsyncGenerator: (async function* () {})() };
  for (const [kind, value] of Object.entries(generators)) {
    const { message } = refusal("invalid_argument", () => encodeMessage({ a: value }));
    assertStringIncludes(message, `$.a: ${kind} cannot be sent`);
    assertStringIncludes(message, "to give several elements, return a Dataset from flatMap");
  }
  const { message } = refusal("invalid_argument", () => encodeMessage({ a: new Map() }));
  assertEquals([message.includes("$.a: Map cannot be sent"), message.includes("flatMap")], [
    true,
    false,
  ]);
});

Deno.test("codec refuses values that cannot be sent, naming their path", () => {
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  const refused: [unknown, string][] = [
    [undefined, "$"],
    [{ a: [1, undefined] }, "$.a[1]"],
    [{ "odd key": () => 1 }, '$["odd key"]'],
    [[Symbol("s")], "$[0]"],
    [{ m: new Map() }, "$.m"],
    [{ s: new Set() }, "$.s"],
    [{ d: new Date(0) }, "$.d"],
    [{ e: new Error("x") }, "$.e"],
    [{ p: Promise.resolve() }, "$.p"],
    [{ b: new ArrayBuffer(1) }, "$.b"],
    [{ c: new Uint8ClampedArray(1) }, "$.c"],
    [{ half: "\ud83d" }, "$.half"],
    [{ "\ud83d": 1 }, "surrogate"],
    [{ t: new Tensor("string", [2], ["fine", "\udc00"]) }, "$.t: element 1"],
    [JSON.parse('{"a":{"__proto__":1}}'), "$.a.__proto__"],
    [cyclic, "circular"],
    [{ t: new Tensor("int8", new Array(33).fill(1), new Int8Array(1)) }, "32 axes"],
  ];
  for (const [value, path] of refused) {
    const error = refusal("invalid_argument", () => encodeMessage(value));
    assertStringIncludes(error.message, path);
  }
  assertEquals(roundTrip({ after: "a refusal" }), { after: "a refusal" });
});

Deno.test("codec refuses arrays whose buffer was transferred, naming their path", () => {
  const detached = <A extends Uint8Array | Float32Array | BigInt64Array>(array: A): A => {
    (array.buffer as ArrayBuffer).transfer();
    return array;
  };
  const values = tensor(new Float32Array(2));
  const splits = new BigInt64Array([0n, 2n]);
  const ragged = new RaggedTensor(values, splits);
  detached(splits);
  const batch = tensor(new Float32Array(4));
  detached(batch.data);
  const blocks = new Tensor("bytes", [2], [new Uint8Array(1), detached(new Uint8Array(1))]);
  const small = detached(new Uint8Array(4));
  const large = detached(new Uint8Array(100_000));
  for (const value of [ragged, batch, blocks, small, large]) {
    for (const encode of [encodeMessage, encodeBlocks, prepareMessage]) {
      const error = refusal("invalid_argument", () => encode({ a: [0, value] }));
      assertStringIncludes(error.message, "cannot encode $.a[1]");
      assertStringIncludes(error.message, "transfer a copy");
    }
  }
  assertEquals(roundTrip([new Uint8Array(0)]), [new Uint8Array(0)]);
});

Deno.test("codec accepts structure up to its depth limit, and no deeper", () => {
  const nested = (depth: number) => {
    let value: unknown = 0;
    for (let i = 0; i < depth; i++) value = [value];
    return value;
  };
  assertEquals(roundTrip(nested(ENVELOPE_DEPTH_MAX)), nested(ENVELOPE_DEPTH_MAX));
  const error = refusal("invalid_argument", () => encodeMessage(nested(ENVELOPE_DEPTH_MAX + 1)));
  assertStringIncludes(error.message, "ENVELOPE_DEPTH_MAX");
});

Deno.test("encodeMessage aligns every payload and decodeMessage views it in place", () => {
  const sent = {
    image: tensor(new Float32Array([1, 2, 3]), { shape: [3, 1] }),
    ids: new BigInt64Array([-1n]),
    name: "x",
  };
  const frame = encodeMessage(sent);
  const { image, ids } = decodeMessage(frame) as typeof sent;
  for (const view of [image.data as Float32Array, ids]) {
    assertStrictEquals(view.buffer, frame.buffer);
    assertEquals(view.byteOffset % PAYLOAD_ALIGNMENT, 0);
  }
  assertEquals(image, sent.image);
  assertEquals(ids, sent.ids);
});

Deno.test("decodeMessage copies payloads of a frame at an odd offset", () => {
  const sent = { a: new Float64Array([1.5, -0]), b: new Uint16Array([7]), c: new Uint8Array(300) };
  const frame = encodeMessage(sent);
  for (const offset of [1, 2, 4, 8]) {
    const moved = new Uint8Array(frame.length + offset).subarray(offset);
    moved.set(frame);
    assertEquals(decodeMessage(moved), sent);
  }
});

Deno.test("decodeMessage with copy outlives its frame", () => {
  const frame = encodeMessage({ a: new Int32Array([1, 2]), t: tensor(["x", "yz"]) });
  const decoded = decodeMessage(frame, { copy: true });
  frame.fill(0);
  assertEquals(decoded, { a: new Int32Array([1, 2]), t: tensor(["x", "yz"]) });
});

Deno.test("encodeMessage owns its output: a buffer of its own, exactly as long, never msgpackr's pool", () => {
  const first = encodeMessage({ a: 1 });
  const before = first.slice();
  const second = encodeMessage({ b: 2 });
  assertEquals(first.buffer.byteLength, first.length);
  assert(first.buffer !== second.buffer);
  structuredClone(second, { transfer: [second.buffer] });
  assertEquals(first, before);
  assertStrictEquals(first.constructor, Uint8Array);
});

Deno.test("a payload from a message of a slab can be sent in another message of the same slab", () => {
  const slab = new MessageSlab();
  const bytes = Uint8Array.of(1, 2, 3, 4);
  const frame = encodeMessage({ element: new Payload(bytes) }, { slab });
  const { element } = decodeMessage(frame) as { element: Payload };
  const again = decodeMessage(encodeMessage({ element }, { slab })) as { element: Payload };
  assertEquals(element.bytes, bytes);
  assertEquals(again.element.bytes, bytes);
});

Deno.test("MessageSlab keeps messages separate and aligned, and takes no large one", () => {
  const slab = new MessageSlab();
  const sent = Array.from({ length: 500 }, (_, i) => ({
    name: "x".repeat(i % 90),
    ids: new BigInt64Array([BigInt(i)]),
    ...(i % 50 === 0 ? { large: new Uint8Array(5_000).fill(i) } : {}),
  }));
  const frames = sent.map((value) => encodeMessage(value, { slab }));
  frames.forEach((frame, i) => assertEquals(decodeMessage(frame), sent[i]));
  for (const frame of frames) assertEquals(frame.byteOffset % PAYLOAD_ALIGNMENT, 0);
  assert(new Set(frames.map(({ buffer }) => buffer)).size < 20);
  for (const frame of frames) {
    assertEquals(frame.length > 5_000, frame.buffer.byteLength === frame.length);
  }
});

Deno.test("encodeMessage writes into shared memory, and decodeMessage reads from it in place", () => {
  const sent = {
    t: tensor(["shared", "😀"]),
    f: new Float32Array([1]),
    bytes: new Uint8Array([1, 2]),
  };
  const frame = encodeMessage(sent, { into: "shared" });
  assertInstanceOf(frame.buffer, SharedArrayBuffer);
  const decoded = decodeMessage(frame) as typeof sent;
  assertStrictEquals(decoded.f.buffer, frame.buffer);
  assertEquals(decoded.f[0], 1);
  assertEquals(decoded.t, sent.t);
  assertEquals(decoded.bytes, sent.bytes);
});

Deno.test("Payload carries an encoded message that decodes in place where it arrives", () => {
  const inner = encodeMessage({ t: tensor(new Float32Array([1, 2])) });
  const frame = encodeMessage({ sequence: 3, batch: new Payload(inner) });
  const { batch } = decodeMessage(frame) as { batch: Payload };
  assertInstanceOf(batch, Payload);
  assertEquals(batch.byteLength, inner.length);
  assertEquals(batch.shared, false);
  const { t } = decodeMessage(batch.bytes) as { t: Tensor };
  assertStrictEquals((t.data as Float32Array).buffer, frame.buffer);
  assertEquals(t.toArray(), [1, 2]);
});

Deno.test("encodeMessage writes around a payload with space before it, once, and otherwise copies", () => {
  const inner = encodeMessage({ x: new Float32Array(32_768) }, { roomForEnvelope: true });
  const payload = new Payload(inner, { isAlone: true });
  const before = inner.slice();
  const options = { inPlaceBytesMax: 2 ** 20 };
  const [first, second] = [3, 4].map((sequence) => encodeMessage({ sequence, payload }, options));
  assertStrictEquals(first!.buffer, inner.buffer);
  assert(second!.buffer !== inner.buffer, "the first message may still wait to be sent");
  for (const [i, frame] of [first!, second!].entries()) {
    assertEquals(frame, encodeMessage({ sequence: 3 + i, payload: new Payload(before) }));
  }
  assertEquals(inner, before);
});

Deno.test("encodeMessage copies a payload that is not alone, is shared, has no space, or is too large", () => {
  const at = (into: "arraybuffer" | "shared") =>
    encodeMessage(
      { x: new Float32Array(32_768) },
      { roomForEnvelope: true, into } as EncodeOptions,
    );
  const cases: [Payload, number][] = [
    [new Payload(at("arraybuffer")), 2 ** 20],
    [new Payload(at("arraybuffer"), { isAlone: true, shared: true }), 2 ** 20],
    [new Payload(at("shared"), { isAlone: true }), 2 ** 20],
    [new Payload(at("arraybuffer").slice(), { isAlone: true }), 2 ** 20],
    [new Payload(at("arraybuffer"), { isAlone: true }), 2 ** 16],
  ];
  for (const [payload, inPlaceBytesMax] of cases) {
    const frame = encodeMessage({ payload }, { inPlaceBytesMax });
    assert(frame.buffer !== payload.bytes.buffer);
    assertEquals((decodeMessage(frame) as { payload: Payload }).payload.bytes, payload.bytes);
  }
});

Deno.test("decodeMessage gives a payload alone only if nothing else uses the buffer", () => {
  const payload = new Payload(new Uint8Array(300));
  const one = encodeMessage({ payload });
  const batch = new Uint8Array(2 * one.length);
  batch.set(one);
  const two = encodeMessage({ payload, other: new Uint8Array(300) });
  const isAlone = (frame: Uint8Array) =>
    (decodeMessage(frame) as { payload: Payload }).payload.isAlone;
  assertEquals([one, batch.subarray(0, one.length), two].map(isAlone), [true, false, false]);
});

Deno.test("Payload on shared memory encodes, and reports that it is shared", () => {
  const inner = encodeMessage([1, 2, 3], { into: "shared" });
  const payload = new Payload(inner);
  assertEquals(payload.shared, true);
  const decoded = roundTrip(payload);
  assertEquals(decodeMessage(decoded.bytes), [1, 2, 3]);
});

Deno.test("codec gives Uint8Array back as Uint8Array, also from a Buffer frame, in the envelope and as payload", async () => {
  const { Buffer } = await import("node:buffer");
  for (const length of [0, 1, 255, 256]) {
    const sent = { bytes: new Uint8Array(length).fill(7) };
    const frame = Buffer.from(encodeMessage({ bytes: Buffer.from(sent.bytes) }));
    const decoded = decodeMessage(frame) as typeof sent;
    assertStrictEquals(decoded.bytes.constructor, Uint8Array);
    assertEquals(decoded, sent);
  }
});

Deno.test("encodeMessage refuses a message over bytesMax, naming size and limit", () => {
  const error = refusal(
    "resource_exhausted",
    () => encodeMessage({ t: new Uint8Array(1000) }, { bytesMax: 1063 }),
  );
  assertStringIncludes(error.message, "1064");
  assertStringIncludes(error.message, "1063");
  assertEquals(encodeMessage({ t: new Uint8Array(1000) }, { bytesMax: 1064 }).length, 1064);
});

Deno.test("decodeMessage refuses a frame over bytesMax, naming size and limit", () => {
  const error = refusal(
    "resource_exhausted",
    () => decodeMessage(new Uint8Array(11), { bytesMax: 10 }),
  );
  assertEquals(error.details, { byteLength: 11, bytesMax: 10 });
});

Deno.test("codec keeps ragged tensors and tensors of no elements and of no axes", () => {
  const sent = {
    ragged: new RaggedTensor(tensor([1, 2, 3]), new BigInt64Array([0n, 0n, 2n, 3n])),
    words: new RaggedTensor(tensor(["a", "", "ü"]), new BigInt64Array([0n, 3n])),
    none: Tensor.zeros("float16", [0, 4]),
    scalar: new Tensor("bool", [], new Uint8Array([1])),
    noWords: Tensor.zeros("string", [0]),
    blocks: new Tensor("bytes", [2], [new Uint8Array(0), new Uint8Array([1, 2])]),
  };
  assertEquals(roundTrip(sent), sent);
});

Deno.test("encodeMessage works normally after a very large envelope", () => {
  const large = "水".repeat(2 ** 20);
  assertStrictEquals(roundTrip({ large }).large, large);
  const after = { text: "é".repeat(100), list: Array.from({ length: 5000 }, (_, i) => i) };
  assertEquals(roundTrip(after), after);
});

Deno.test("prepareMessage encodes later what encodeMessage encodes at once, unless a payload was released", () => {
  const value = () => ({ name: "a".repeat(100), graph: new Uint8Array(1_000).fill(7), list: [1n] });
  const changing = value();
  const prepared = prepareMessage(changing);
  const expected = encodeMessage(value());
  assertEquals(prepared.byteLength, expected.length);
  assert(prepared.envelopeBytes < 200);
  // The envelope is written already, and other messages are encoded meanwhile.
  changing.name = "b";
  changing.list.push(2n);
  encodeMessage({ other: "c".repeat(1_000) });
  assertEquals(prepared.encode({}), expected);
  const room = encodeMessage(new Uint8Array(100_000), { roomForEnvelope: true });
  const payload = new Payload(room, { isAlone: true });
  const around = prepareMessage({ payload }).encode({ inPlaceBytesMax: 2 ** 20 })!;
  assertStrictEquals(around.buffer, room.buffer);
  assertEquals((decodeMessage(around) as { payload: Payload }).payload.byteLength, room.length);
  const released = prepareMessage({ payload });
  payload.release();
  assertStrictEquals(released.encode({}), undefined);
  assertEquals(
    refusal("resource_exhausted", () => prepareMessage("long", { bytesMax: 8 })).details,
    {
      byteLength: 10,
      bytesMax: 8,
    },
  );
});
