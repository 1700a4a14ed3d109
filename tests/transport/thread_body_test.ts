/** Message bodies between threads, without a thread: structured clone does the same. */
import { Buffer } from "node:buffer";
import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor, tensor } from "../../core/tensor.ts";
import { Payload } from "../../transport/payload.ts";
import { joinThreadBody, ThreadBody } from "../../transport/thread_body.ts";
import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "../assert.ts";

/** What arrives at another thread, and the bytes that the sender counts for it. */
function sent(body: unknown): { readonly arrived: unknown; readonly bytes: number } {
  const { value, parts, bytes } = new ThreadBody(body, true);
  const [there, partsThere] = structuredClone([value, parts] as const);
  return { arrived: joinThreadBody(there, partsThere), bytes };
}

/** The largest buffer below a tensor. */
function memoryOf({ data }: Tensor): number {
  const views = Array.isArray(data) ? data as Uint8Array[] : [data as Float32Array];
  return Math.max(...views.map(({ buffer }) => buffer.byteLength));
}

Deno.test("ThreadBody sends only the view of a tensor on a larger buffer", () => {
  const large = new Float32Array(2 ** 20).fill(7);
  const block = new Uint8Array(2 ** 20).fill(7);
  const splits = new BigInt64Array(2 ** 17).subarray(0, 2);
  splits[1] = 2n;
  const row = new Tensor("float32", [2], large.subarray(5, 7));
  const { arrived, bytes } = sent({
    row,
    blocks: new Tensor("bytes", [2], [block.subarray(1, 3), block.subarray(9, 9)]),
    ragged: new RaggedTensor(row, splits),
  });
  const { row: rowThere, blocks, ragged } = arrived as {
    row: Tensor;
    blocks: Tensor;
    ragged: RaggedTensor;
  };
  assertEquals(rowThere, row);
  assertEquals(ragged, new RaggedTensor(row, splits));
  assertEquals(blocks.toArray(), [new Uint8Array([7, 7]), new Uint8Array(0)]);
  for (const part of [rowThere, blocks, ragged.values]) assert(memoryOf(part) <= 8);
  assertEquals(ragged.rowSplits.buffer.byteLength, 16);
  assert(bytes < 200, `${bytes} bytes are counted`);
});

Deno.test("ThreadBody transfers no memory of a Buffer that holds more than the payload", () => {
  const large = Buffer.alloc(100_000, 7);
  const part = large.subarray(5, 15);
  const { transfer, parts } = new ThreadBody({ part, payload: new Payload(part) }, true);
  assertEquals(transfer.map(({ byteLength }) => byteLength), [10]);
  structuredClone(parts, { transfer });
  assertEquals(large.length, 100_000);
});

Deno.test("ThreadBody counts the content of tensors of texts and byte strings", () => {
  assert(sent(tensor(["x".repeat(1_000)])).bytes >= 1_000);
  assert(sent(new Tensor("bytes", [1], [new Uint8Array(1_000)])).bytes >= 1_000);
  const { bytes } = sent(tensor(new Float32Array(250)));
  assert(bytes >= 1_000 && bytes < 1_100, `${bytes} bytes are counted for 1,000`);
});

Deno.test("ThreadBody refuses arrays whose buffer was transferred, naming their path", () => {
  const memory = new ArrayBuffer(8);
  const array = new Float32Array(memory);
  const values = [array, new DataView(memory), tensor(array)];
  memory.transfer();
  for (const value of values) {
    const error = assertThrows(() => sent({ list: [0, value] }), LeatError, "body.list.1 is a");
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, "whose buffer was transferred");
  }
});

Deno.test("ThreadBody names the class of what it refuses, also that of a generator", () => {
  for (const [value, name] of [[new Map(), "Map"], [generator(), "Generator"]]) {
    assertThrows(() => sent({ value }), LeatError, `body.value is an instance of ${name}`);
  }
});

function* generator() {}

Deno.test("ThreadBody sends a tensor on shared memory without a copy", () => {
  const memory = new Float32Array(new SharedArrayBuffer(64));
  const { value, parts, bytes } = new ThreadBody(
    new Tensor("float32", [1], memory.subarray(3, 4)),
    false,
  );
  const joined = joinThreadBody(value, parts) as Tensor<"float32">;
  assertStrictEquals(joined.data.buffer, memory.buffer);
  assert(bytes < 64);
});
