/** Elements and errors as they go from one thread to another. */
import { Buffer } from "node:buffer";
import { LeatError, RaggedTensor, type Tensor, tensor } from "../../../mod.ts";
import { pack, unpack } from "../../../data/threads/packing.ts";
import { packError, unpackError } from "../../../data/threads/packed_error.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";

/** The value as another thread gets it. */
function sent(value: unknown): unknown {
  const buffers: ArrayBuffer[] = [];
  const packed = pack(value, buffers);
  return unpack(structuredClone(packed, { transfer: buffers }));
}

Deno.test("pack keeps every kind of element", () => {
  const elements = [
    ...[1, -0, NaN, 7n, true, "text", null, undefined, [], {}],
    { x: [1, { y: 2 }], $z: 3, $tensor: { $$: 4 }, $ragged: 5 },
    { $tensor: 1 },
    { $ragged: [1] },
    [new Uint8Array([1, 2]), new Float32Array(5_000).fill(0.5), new BigInt64Array([1n])],
    new Float16Array([1.5]),
    tensor([[1, 2], [3, 4]]),
    { words: tensor(["a", "b"]), flags: tensor([true, false]) },
    new RaggedTensor(tensor(new Int32Array([1, 2, 3])), new BigInt64Array([0n, 1n, 3n])),
  ];
  for (const element of elements) assertEquals(sent(element), element);
});

Deno.test("pack sends a Buffer of Node.js as a Uint8Array in memory of its own", () => {
  for (const length of [3, 5_000]) {
    const buffer = Buffer.alloc(length, 7);
    assertEquals(sent({ buffer }), { buffer: new Uint8Array(length).fill(7) });
    assertEquals(buffer.length, length);
  }
});

Deno.test("pack copies only the part of a buffer that an array shows, and leaves the array usable", () => {
  const whole = new Uint8Array(1_000_000).fill(9);
  const part = whole.subarray(100, 5_100);
  const arrived = sent({ part }) as { part: Uint8Array };
  assertEquals(arrived.part.buffer.byteLength, 5_000);
  assertEquals(arrived.part, part);
  assertEquals(whole.length, 1_000_000);
  const batch = tensor(new Float32Array(4_096), { shape: [64, 64] });
  assertEquals((sent(batch) as Tensor).shape, [64, 64]);
  assertEquals(batch.data.length, 4_096);
});

Deno.test("pack refuses what would change on the way, and names it", () => {
  class Point {}
  for (
    const [value, name] of [[new Point(), "Point"], [new Date(), "Date"], [() => 1, "a function"]]
  ) {
    const error = assertThrows(() => pack({ deep: [value] }, []), LeatError, name as string);
    assertEquals(error.code, "failed_precondition");
  }
});

Deno.test("pack refuses an array whose buffer was transferred, alone and in a tensor, and says what to do", () => {
  const array = new Float32Array(4);
  const batch = tensor(array);
  array.buffer.transfer();
  for (const value of [{ array }, [batch]]) {
    const error = assertThrows(() => pack(value, []), LeatError, "Float32Array");
    assertEquals(error.code, "failed_precondition");
    assertStringIncludes(error.message, "transfer a copy");
  }
});

Deno.test("pack says which plain objects and arrays cannot be sent, and why", () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const list: unknown[] = [];
  list.push(list);
  for (const circular of [circle, list]) {
    assertThrows(() => pack(circular, []), LeatError, "deeper than 64 levels, or circular");
  }
  const named = JSON.parse('{ "__proto__": 1 }');
  assertThrows(() => pack(named, []), LeatError, "the key __proto__ cannot be sent");
});

Deno.test("packError keeps classes of Leat's errors, names, messages, stacks and causes", () => {
  const cause = new RangeError("too deep");
  const error = new LeatError("data_loss", "no 3", { cause, details: { record: 3 } });
  const arrived = unpackError(structuredClone(packError(error)));
  assert(arrived instanceof LeatError);
  assertEquals([arrived.code, arrived.message, arrived.stack], ["data_loss", "no 3", error.stack]);
  assertEquals(arrived.details, { record: 3 });
  const { name, message, stack } = arrived.cause as Error;
  assertEquals([name, message, stack], ["RangeError", "too deep", cause.stack]);
  assertEquals(unpackError(packError("a text")), "a text");
});

Deno.test("packError gives plain data, also for errors with fields that are not", () => {
  const fields = ["name", "message", "stack", "code", "cause", "details"];
  const odd: PropertyDescriptor[] = [
    { value: Symbol("odd") },
    { value: () => 1 },
    { get: () => assert(false, "read") },
  ];
  for (const make of [() => new Error("odd"), () => new LeatError("data_loss", "odd")]) {
    for (const descriptor of odd) {
      const error = make();
      for (const field of fields) Object.defineProperty(error, field, descriptor);
      const arrived = unpackError(structuredClone(packError(error)));
      assert(arrived instanceof Error);
      assertEquals(arrived instanceof LeatError, error instanceof LeatError);
      assertEquals(typeof arrived.message, "string");
    }
  }
});
