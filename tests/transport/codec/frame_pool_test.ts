/**
 * Memory of frames that is reused.
 *
 * @module
 */
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

Deno.test("FramePool keeps two buffers, and no large one", () => {
  const pool = new FramePool();
  const [one, two, three] = [1, 2, 3].map(() => new ArrayBuffer(100)) as [
    ArrayBuffer,
    ArrayBuffer,
    ArrayBuffer,
  ];
  for (const buffer of [one, two, three]) pool.give(buffer);
  assertEquals(new Set([pool.take(100), pool.take(100)]), new Set([two, three]));
  assert(pool.take(100) !== one);
  const large = new ArrayBuffer(2 ** 25);
  pool.give(large);
  assert(pool.take(2 ** 25) !== large);
});
