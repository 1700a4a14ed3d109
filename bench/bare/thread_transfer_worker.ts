/**
 * The remote side of `thread_transfer.ts`. It answers each request for a number of bytes with a buffer
 * whose first byte counts the answers. The worker's name says how to send the buffer.
 */

/// <reference lib="deno.worker" />

const transfers = self.name === "transfer";
let sent = 0;
let buffer = new Uint8Array(0);

self.onmessage = ({ data: byteLength }: MessageEvent<number>) => {
  if (transfers || buffer.length !== byteLength) buffer = new Uint8Array(byteLength);
  buffer[0] = sent++ & 0xff;
  if (transfers) self.postMessage(buffer, [buffer.buffer]);
  else self.postMessage(buffer);
};
