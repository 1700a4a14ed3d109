/**
 * The remote side of `thread_transfer.ts`: answers each request for a number of bytes with a buffer,
 * whose first byte counts the answers. Its name tells how to send the buffer.
 */

/// <reference lib="deno.worker" />

const transfers = self.name === "transfer";
let sent = 0;
let kept = new Uint8Array(0);

self.onmessage = ({ data: byteLength }: MessageEvent<number>) => {
  if (transfers || kept.length !== byteLength) kept = new Uint8Array(byteLength);
  kept[0] = sent++ & 0xff;
  if (transfers) self.postMessage(kept, [kept.buffer]);
  else self.postMessage(kept);
};
