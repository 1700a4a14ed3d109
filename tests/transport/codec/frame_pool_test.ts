/** Memory of frames that is reused. */
import { decodeMessage, encodeMessage, FramePool } from "../../../transport/codec.ts";
import { assert, assertEquals } from "../../assert.ts";

Deno.test("FramePool reuses a buffer for messages of its size only", () => {
  const pool = new FramePool();
  const write = (fill: number, length = 20_000) =>
    encodeMessage({ x: new Float64Array(length).fill(fill) }, { roomForEnvelope: true, pool });
  const first = write(1);
  pool.give(first.buffer);
  const other = write(2, 20_001);
  assert(other.buffer !== first.buffer);
  const again = write(3);
  assert(again.buffer === first.buffer);
  assertEquals(decodeMessage(again), { x: new Float64Array(20_000).fill(3) });
  assert(write(4).buffer !== first.buffer, "one that is in use is not given");
});

Deno.test("FramePool keeps eight buffers, and none above its limit of bytes", () => {
  const pool = new FramePool();
  const buffers = Array.from({ length: 9 }, () => new ArrayBuffer(100));
  for (const buffer of buffers) pool.give(buffer);
  const taken = new Set(Array.from({ length: 9 }, () => pool.take(100)));
  assertEquals(buffers.filter((buffer) => taken.has(buffer)), buffers.slice(1));
  const [first, second, third] = [1, 2, 3].map(() => new ArrayBuffer(2 ** 24));
  for (const buffer of [first!, second!, third!]) pool.give(buffer);
  assert(pool.take(2 ** 24) === third);
  assert(pool.take(2 ** 24) === second);
  assert(pool.take(2 ** 24) !== first);
  const large = new ArrayBuffer(2 ** 26);
  pool.give(large);
  assert(pool.take(2 ** 26) !== large);
});
