/** The water marks of a link between two processes: which bytes count, and until when. */
import { PIPED_BYTES_MAX } from "../../transport/process/frames.ts";
import { ProcessOutbox } from "../../transport/process/outbox.ts";
import { SLOTS } from "../../transport/process/slots.ts";
import { assert, assertEquals } from "../assert.ts";

const LARGE = PIPED_BYTES_MAX + 1;

/** Streams whose writes end on command, or at once. */
class Streams {
  readonly outbox: ProcessOutbox;
  /** The slots that were announced through the pipe. */
  readonly announced: number[] = [];
  readonly failures: unknown[] = [];
  readonly #isSlow: boolean;
  #writing: (() => void)[] = [];

  constructor({ isSlow = false, slots = SLOTS, highWaterBytes = Infinity, lowWaterBytes = 0 }) {
    this.#isSlow = isSlow;
    const limits = { highWaterBytes, lowWaterBytes, messageBytesMax: 2 ** 30 };
    const file = { read: () => {}, close: () => {} };
    this.outbox = new ProcessOutbox(
      limits,
      {
        incoming: { read: () => Promise.resolve(undefined), close: () => {} },
        outgoing: { write: (bytes) => this.#write(bytes), close: () => {} },
        incomingSlots: { ...file, write: () => {} },
        outgoingSlots: { ...file, write: () => this.#begin() },
      },
      slots,
      { recycle: () => {}, failed: (error) => this.failures.push(error) },
    );
  }

  add(...lengths: number[]): void {
    for (const length of lengths) this.outbox.add([new Uint8Array(length)], false);
  }

  /** Ends the writes that have begun, and lets the outbox continue. */
  async finish(): Promise<void> {
    for (const done of this.#writing.splice(0)) done();
    await new Promise((resolve) => setTimeout(resolve));
  }

  /** Ends every write, until none begins. */
  async finishAll(): Promise<void> {
    do await this.finish(); while (this.#writing.length > 0);
  }

  #write(bytes: Uint8Array): void | Promise<void> {
    const [length, place] = new Uint32Array(bytes.slice(0, 8).buffer);
    if (place! < 0x8000_0000 && length! > PIPED_BYTES_MAX) this.announced.push(place!);
    return this.#begin();
  }

  #begin(): void | Promise<void> {
    if (this.#isSlow) return new Promise((resolve) => this.#writing.push(resolve));
  }
}

/** Whether there is space, without waiting for it. */
async function isReady(outbox: ProcessOutbox): Promise<boolean> {
  let is = false;
  outbox.ready().then(() => is = true);
  await new Promise((resolve) => setTimeout(resolve));
  return is;
}

for (const isSlow of [false, true]) {
  const pipe = isSlow ? "a slow pipe" : "a pipe that answers at once";
  Deno.test(`process outbox counts no byte of messages written to ${pipe}`, async () => {
    const streams = new Streams({ isSlow });
    // The first goes alone; those after it go together, in several writes.
    const lengths = Array.from({ length: 40 }, (_, i) => 1_000 * (i + 1));
    streams.add(...lengths);
    if (isSlow) assertEquals(streams.outbox.bytes, lengths.reduce((sum, length) => sum + length));
    await streams.finishAll();
    assertEquals(streams.outbox.bytes, 0);
    assertEquals(streams.failures, []);
  });
}

Deno.test("process outbox counts a message in a slot until the other process has read it", async () => {
  const streams = new Streams({ isSlow: true });
  streams.add(LARGE, 10, LARGE, LARGE);
  await streams.finishAll();
  assertEquals(streams.announced.length, SLOTS);
  assertEquals(streams.outbox.bytes, 3 * LARGE);
  for (const left of [2, 1, 0]) {
    streams.outbox.freed(streams.announced.shift()!);
    await streams.finishAll();
    assertEquals(streams.outbox.bytes, left * LARGE);
  }
});

Deno.test("process outbox counts a message in a lent slot until it is written, once", async () => {
  const streams = new Streams({ isSlow: true, slots: 4 });
  streams.add(...Array.from({ length: 5 }, () => LARGE));
  assertEquals(streams.outbox.bytes, 5 * LARGE);
  await streams.finishAll();
  // The other process keeps four; the fifth waits for a slot.
  assertEquals(streams.announced, [0, 1, 2, 3]);
  assertEquals(streams.outbox.bytes, LARGE);
  streams.outbox.freed(2);
  await streams.finishAll();
  assertEquals(streams.announced, [0, 1, 2, 3, 2]);
  for (const slot of [0, 1, 2, 3]) streams.outbox.freed(slot);
  assertEquals(streams.outbox.bytes, 0);
});

Deno.test("process outbox has space again at its low water mark, however often it was full", async () => {
  const streams = new Streams({
    isSlow: true,
    slots: 8,
    highWaterBytes: 2 * LARGE,
    lowWaterBytes: 1_000,
  });
  for (let round = 0; round < 20; round++) {
    streams.add(LARGE, LARGE, 900);
    assert(!await isReady(streams.outbox));
    const waiting = streams.outbox.ready();
    await streams.finishAll();
    await waiting;
    for (const slot of streams.announced.splice(0)) streams.outbox.freed(slot);
    assertEquals(streams.outbox.bytes, 0);
  }
});

Deno.test("process outbox makes no sender wait once it is closed, and counts no late write", async () => {
  const streams = new Streams({ isSlow: true, highWaterBytes: 10 });
  streams.add(20, LARGE);
  const waiting = streams.outbox.ready();
  streams.outbox.close(new Uint8Array(1));
  await waiting;
  await streams.finishAll();
  assertEquals(streams.outbox.bytes, 0);
  assert(await isReady(streams.outbox));
});
