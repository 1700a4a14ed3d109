/** The frames in WebSocket messages, reassembly of fragments, and WebSocket's own framing. */
import { LeatError } from "../../../core/error.ts";
import { decodeMessage, encodeMessage, FramePool } from "../../../transport/codec.ts";
import {
  clientFrame,
  OPCODE,
  readFrameHead,
  serverFrame,
} from "../../../transport/web_socket/socket_frames.ts";
import {
  fragmentHead,
  readAck,
  readBatch,
  readFragment,
  writeAck,
  writeBatch,
} from "../../../transport/web_socket/frames.ts";
import { Reassembly } from "../../../transport/web_socket/reassembly.ts";
import { assert, assertEquals, assertStrictEquals, assertThrows } from "../../assert.ts";

function hex(bytes: Uint8Array): string {
  return bytes.toHex();
}

function fragmentOf(id: number, offset: number, total: number, data: Uint8Array) {
  return { id, offset, total, data };
}

Deno.test("a batch returns its messages, each aligned for the tensors in it", () => {
  const sent = [{ a: 1 }, { t: new Float64Array([1.5]) }, "x", { t: new Float64Array(100) }];
  const frame = writeBatch(sent.map((value) => encodeMessage(value)));
  const offsets: number[] = [];
  const got: unknown[] = [];
  readBatch(frame, (message) => {
    offsets.push(message.byteOffset % 64);
    got.push(decodeMessage(message));
  });
  assertEquals(got, sent);
  assertEquals(offsets, [0, 0, 0, 0]);
  const { t } = got[3] as { t: Float64Array };
  assertStrictEquals(t.buffer, frame.buffer, "a view, not a copy");
});

Deno.test("a batch's bytes are those of the wire format", () => {
  const frame = writeBatch([new Uint8Array([0xaa]), new Uint8Array([0xbb, 0xcc])]);
  const head = "01" + "00000002" + "00000001" + "00000002";
  assertEquals(hex(frame), head.padEnd(128, "0") + "aa".padEnd(128, "0") + "bbcc");
});

Deno.test("readBatch refuses batches that are empty, cut off, or too long", () => {
  const good = writeBatch([new Uint8Array(10), new Uint8Array(20)]);
  const bad = [
    new Uint8Array([1]),
    new Uint8Array([1, 0, 0, 0, 0]),
    new Uint8Array([1, 0xff, 0xff, 0xff, 0xff]),
    good.subarray(0, good.length - 1),
    new Uint8Array([...good, 0]),
  ];
  for (const frame of bad) {
    const error = assertThrows(() => readBatch(frame, () => {}), LeatError);
    assertEquals(error.code, "invalid_argument");
  }
});

Deno.test("a fragment's header is that of the wire format", () => {
  const first = fragmentHead(7, 0, 5);
  assertEquals(hex(first), "02" + "00000007" + "0000000000000000" + "0000000000000005");
  const second = Uint8Array.of(...fragmentHead(7, 3, 5), 4, 5);
  assertEquals(hex(second), "02" + "00000007" + "0000000000000003" + "0000000000000005" + "0405");
  assertEquals(readFragment(second), fragmentOf(7, 3, 5, new Uint8Array([4, 5])));
});

Deno.test("acknowledgements count beyond 32 bits", () => {
  assertEquals(hex(writeAck(2 ** 40 + 3)), "03" + "0000010000000003");
  assertEquals(readAck(writeAck(2 ** 40 + 3)), 2 ** 40 + 3);
  assertThrows(() => readAck(new Uint8Array([3])), LeatError);
});

Deno.test("Reassembly puts messages together whose fragments alternate, each in one buffer", () => {
  const reassembly = new Reassembly(100);
  assertEquals(reassembly.add(fragmentOf(1, 0, 4, new Uint8Array([1, 2]))), undefined);
  assertEquals(reassembly.add(fragmentOf(2, 0, 3, new Uint8Array([7]))), undefined);
  assertEquals(reassembly.bytes, 7);
  const one = reassembly.add(fragmentOf(1, 2, 4, new Uint8Array([3, 4])));
  assertEquals([...one!], [1, 2, 3, 4]);
  assertEquals(one!.buffer.byteLength, 4);
  const two = reassembly.add(fragmentOf(2, 1, 3, new Uint8Array([8, 9])));
  assertEquals([...two!], [7, 8, 9]);
  assertEquals(reassembly.bytes, 0);
});

Deno.test("Reassembly puts a message together in memory of its pool", () => {
  const pool = new FramePool();
  const memory = new ArrayBuffer(4);
  pool.give(memory);
  const reassembly = new Reassembly(100, pool);
  reassembly.add(fragmentOf(1, 0, 4, new Uint8Array([1, 2])));
  const message = reassembly.add(fragmentOf(1, 2, 4, new Uint8Array([3, 4])))!;
  assertEquals([...message], [1, 2, 3, 4]);
  assertEquals(message.buffer === memory, true);
});

Deno.test("Reassembly takes a fragment that was read to its place", () => {
  const reassembly = new Reassembly(100);
  reassembly.place({ id: 1, offset: 0, total: 3 }, 2).set([4, 5]);
  const first = reassembly.place({ id: 1, offset: 0, total: 3 }, 2);
  assertEquals(reassembly.add(fragmentOf(1, 0, 3, first)), undefined);
  assertEquals([...reassembly.add(fragmentOf(1, 2, 3, new Uint8Array([6])))!], [4, 5, 6]);
  const beyond = assertThrows(
    () => reassembly.place({ id: 2, offset: 0, total: 3 }, 4),
    LeatError,
  );
  assertEquals(beyond.code, "invalid_argument");
});

Deno.test("Reassembly refuses a message over the limit at its first fragment, before allocating memory", () => {
  const reassembly = new Reassembly(1_000);
  const byte = new Uint8Array(1);
  const alone = assertThrows(() => reassembly.add(fragmentOf(1, 0, 2 ** 52, byte)), LeatError);
  assertEquals(alone.code, "resource_exhausted");
  assertEquals(alone.details, { bytes: 2 ** 52, bytesMax: 1_000 });
  reassembly.add(fragmentOf(2, 0, 600, byte));
  const together = assertThrows(() => reassembly.add(fragmentOf(3, 0, 600, byte)), LeatError);
  assertEquals(together.code, "resource_exhausted");
  assertEquals(reassembly.bytes, 600);
});

Deno.test("Reassembly bounds the number of incomplete messages", () => {
  const reassembly = new Reassembly(1_000_000);
  const begin = (id: number) => reassembly.add(fragmentOf(id, 0, 2, new Uint8Array(1)));
  for (let id = 0; id < 16; id++) begin(id);
  assertEquals(assertThrows(() => begin(16), LeatError).code, "resource_exhausted");
});

Deno.test("Reassembly refuses fragments that leave gaps, overlap, contradict each other or overrun", () => {
  const bad = [
    fragmentOf(1, 3, 10, new Uint8Array(1)),
    fragmentOf(1, 1, 10, new Uint8Array(1)),
    fragmentOf(1, 2, 11, new Uint8Array(1)),
    fragmentOf(1, 2, 10, new Uint8Array(9)),
    fragmentOf(9, 1, 10, new Uint8Array(1)),
  ];
  for (const fragment of bad) {
    const reassembly = new Reassembly(100);
    reassembly.add(fragmentOf(1, 0, 10, new Uint8Array(2)));
    const error = assertThrows(() => reassembly.add(fragment), LeatError);
    assertEquals(error.code, "invalid_argument");
  }
});

Deno.test("serverFrame copies a small payload behind its head, and no large one", () => {
  const head = Uint8Array.of(2, 3);
  for (const length of [0, 5, 70_000]) {
    const payload = new Uint8Array(length).fill(7);
    const parts = serverFrame(OPCODE.BINARY, payload, head);
    const frame = Uint8Array.from(parts.flatMap((part) => [...part]));
    const { headBytes, payloadBytes } = readFrameHead(frame, 0, frame.length, "server")!;
    assertEquals(payloadBytes, 2 + length);
    assertEquals(frame.subarray(headBytes), Uint8Array.of(...head, ...payload));
    assertEquals(parts.includes(payload), length === 70_000);
  }
});

Deno.test("clientFrame masks as in RFC 6455 section 5.7", () => {
  // The key of the RFC's example as this host's word.
  const key = new Uint32Array(new Uint8Array([0x37, 0xfa, 0x21, 0x3d]).buffer)[0]!;
  const frame = clientFrame(OPCODE.TEXT, new TextEncoder().encode("Hello"), key);
  assertEquals(hex(frame), "818537fa213d7f9f4d5158");
});

Deno.test("clientFrame writes lengths of 7, 16 and 64 bits", () => {
  const heads = [125, 126, 65_535, 65_536].map((length) => {
    const frame = clientFrame(OPCODE.BINARY, new Uint8Array(length), 0x01020304);
    const headBytes = length < 126 ? 2 : length < 65_536 ? 4 : 10;
    assertEquals(frame.length, headBytes + 4 + length);
    const key = frame.subarray(headBytes, headBytes + 4);
    assert(frame.subarray(headBytes + 4).every((byte, i) => byte === key[i % 4]));
    return hex(frame.subarray(0, headBytes));
  });
  assertEquals(heads, ["82fd", "82fe007e", "82feffff", "82ff0000000000010000"]);
});

Deno.test("readFrameHead waits for a whole head and refuses one that no server sends", () => {
  const head = new Uint8Array([0, 0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
  for (let end = 1; end < head.length; end++) {
    assertEquals(readFrameHead(head, 1, end, "server"), undefined);
  }
  assertEquals(readFrameHead(head, 1, head.length, "server"), {
    opcode: OPCODE.BINARY,
    isLast: true,
    headBytes: 10,
    payloadBytes: 65_536,
    key: 0,
  });
  for (const bad of [[0xc2, 0], [0x82, 0x85], [0x09, 0], [0x89, 126]]) {
    const error = assertThrows(() => readFrameHead(new Uint8Array(bad), 0, 2, "server"), LeatError);
    assertEquals(error.code, "invalid_argument");
  }
});
