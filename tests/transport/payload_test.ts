/** Tests of blocks of bytes that messages carry unchanged. */
import { decodeMessage, encodeMessage, FramePool } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import { assertEquals } from "../assert.ts";

const sent = () => new Uint8Array(100).fill(7);

Deno.test("Payload.release frees a buffer that nobody else has, at once", () => {
  const payload = new Payload(sent());
  assertEquals(payload.handOver(true).bytes, sent());
  payload.release();
  payload.release();
  assertEquals(payload.byteLength, 0);
});

Deno.test("Payload.release leaves alone what a receiver has, and what shares its buffer", () => {
  const given = new Payload(sent());
  given.handOver(false);
  const shared = new Payload(new Uint8Array(new SharedArrayBuffer(100)).fill(7));
  const part = new Payload(new Uint8Array(200).fill(7).subarray(100));
  for (const payload of [given, shared, part]) {
    payload.release();
    assertEquals(payload.bytes.length, 100);
    assertEquals(payload.bytes[99], 7);
  }
});

Deno.test("Payload.release frees the memory for a receiver on this thread, not for its sender", () => {
  const pool: ArrayBuffer[] = [];
  const sender = new Payload(sent(), { isAlone: true, recycle: (buffer) => pool.push(buffer) });
  const given = sender.handOver(false);
  sender.release();
  assertEquals([given.bytes, pool], [sent(), []]);
  given.release();
  assertEquals([given.byteLength, pool.map(({ byteLength }) => byteLength)], [0, [100]]);
});

Deno.test("Payload.takeRoom succeeds once, also if the payload was handed over", () => {
  const payload = new Payload(new Uint8Array(200).subarray(100), { isAlone: true });
  const given = payload.handOver(false);
  assertEquals(payload.takeRoom(50), undefined);
  assertEquals(given.takeRoom(50)?.byteLength, 150);
  assertEquals(given.takeRoom(50), undefined);
});

Deno.test("Payload.release gives the memory of a read message to its pool, once", () => {
  const pool = new FramePool();
  const frame = encodeMessage({ element: new Payload(sent()) });
  const { element } = decodeMessage(frame, { pool }) as { element: Payload };
  for (let times = 0; times < 2; times++) element.release();
  assertEquals(element.byteLength, 0);
  const length = encodeMessage({ element: new Payload(sent()) }).length;
  assertEquals(new Uint8Array(pool.take(length)).subarray(-100), sent());
  assertEquals(new Uint8Array(pool.take(length)), new Uint8Array(length));
});
