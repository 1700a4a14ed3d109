/** The frames for the socket: their order, and how many before the receiver's acknowledgement. */
import { LeatError } from "../../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import { LINK_LIMITS, type LinkLimits } from "../../../transport/limits.ts";
import { FRAME, readBatch, readFragment } from "../../../transport/web_socket/frames.ts";
import { Outbox, WINDOW_BYTES } from "../../../transport/web_socket/outbox.ts";
import { Reassembly } from "../../../transport/web_socket/reassembly.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";
import fc from "../../lib/properties.ts";

const MIB = 2 ** 20;

interface Tag {
  readonly pair: string;
  readonly n: number;
}

/** A socket that keeps its frames, and a receiver that consumes them on command. */
class Wire {
  readonly outbox: Outbox;
  readonly frames: Uint8Array[] = [];
  /** Fully received messages, in that order. */
  readonly received: Tag[] = [];
  readonly #flushes: (() => void)[] = [];
  readonly #reassembly = new Reassembly(2 ** 30);
  #taken = 0;

  constructor(limits: Partial<LinkLimits> = {}) {
    this.outbox = new Outbox(
      { ...LINK_LIMITS, ...limits },
      (bytes, head = new Uint8Array(0)) => {
        const frame = new Uint8Array(head.length + bytes.length);
        frame.set(head);
        frame.set(bytes, head.length);
        this.frames.push(frame);
      },
      (flush) => this.#flushes.push(flush),
    );
  }

  add(pair: string, n: number, byteLength: number): void {
    const body = { pair, n, filler: new Uint8Array(byteLength) };
    const message = encodeMessage(body);
    this.outbox.add(message, () => pair);
  }

  /** Ends the sender's macrotask. */
  flush(): void {
    for (const flush of this.#flushes.splice(0)) flush();
  }

  /** The receiver consumes a frame; false if there is none. */
  take(): boolean {
    const frame = this.frames.shift();
    if (frame === undefined) return false;
    this.#taken += frame.length;
    if (frame[0] === FRAME.MESSAGE) this.#receive(frame);
    else if (frame[0] === FRAME.BATCH) readBatch(frame, (message) => this.#receive(message));
    else {
      const message = this.#reassembly.add(readFragment(frame));
      if (message !== undefined) this.#receive(message);
    }
    this.outbox.acknowledge(this.#taken);
    return true;
  }

  takeAll(): void {
    this.flush();
    while (this.take());
  }

  get inSocketBytes(): number {
    return this.frames.reduce((sum, frame) => sum + frame.length, 0);
  }

  #receive(message: Uint8Array): void {
    const { pair, n } = decodeMessage(message) as Tag;
    this.received.push({ pair, n });
  }
}

function numbersOf(received: readonly Tag[], pair: string): number[] {
  return received.filter((tag) => tag.pair === pair).map(({ n }) => n);
}

Deno.test("small messages of one macrotask share a frame, and a single one is a frame by itself", () => {
  const wire = new Wire();
  for (let n = 0; n < 10; n++) wire.add("a", n, 100);
  assertEquals(wire.frames.length, 0);
  wire.flush();
  assertEquals(wire.frames.map((frame) => frame[0]), [FRAME.BATCH]);
  wire.takeAll();
  wire.add("a", 10, 100);
  wire.flush();
  assertEquals(wire.frames.map((frame) => frame[0]), [FRAME.MESSAGE]);
  wire.takeAll();
  assertEquals(numbersOf(wire.received, "a"), Array.from({ length: 11 }, (_, n) => n));
});

Deno.test("a message of 4 MiB is sent whole, a larger one in fragments that others overtake", () => {
  const wire = new Wire();
  wire.add("whole", 0, 4 * MIB - 1000);
  assertEquals(wire.frames.map((frame) => frame[0]), [FRAME.MESSAGE]);
  wire.takeAll();
  wire.add("large", 1, 64 * MIB);
  wire.add("small", 2, 10);
  wire.add("medium", 3, 100_000);
  wire.flush();
  wire.takeAll();
  assertEquals(wire.received.map(({ pair }) => pair), ["whole", "small", "medium", "large"]);
});

Deno.test("messages of a pair never overtake one another, whatever their sizes", () => {
  const sizes = [10, 5_000, 20_000, 3 * MIB, 5 * MIB, 9 * MIB];
  const command = fc.oneof(
    { weight: 5, arbitrary: fc.record({ pair: fc.integer({ max: 2, min: 0 }), size: fc.nat(5) }) },
    { weight: 3, arbitrary: fc.constant("take" as const) },
    { weight: 2, arbitrary: fc.constant("flush" as const) },
  );
  fc.assert(
    fc.property(fc.array(command, { maxLength: 25 }), (commands) => {
      const wire = new Wire();
      const sent = [0, 0, 0];
      for (const step of commands) {
        if (step === "take") wire.take();
        else if (step === "flush") wire.flush();
        else wire.add(`pair ${step.pair}`, sent[step.pair]!++, sizes[step.size]!);
      }
      wire.takeAll();
      for (const [pair, count] of sent.entries()) {
        const expected = Array.from({ length: count }, (_, n) => n);
        assertEquals(numbersOf(wire.received, `pair ${pair}`), expected);
      }
      assertEquals(wire.outbox.bytes, 0);
    }),
    { numRuns: 40 },
  );
});

Deno.test("a large message waits for earlier messages of its pair, in a batch or in the queue", () => {
  const gathered = new Wire();
  gathered.add("a", 0, 10);
  gathered.add("a", 1, 5 * MIB);
  gathered.takeAll();
  assertEquals(numbersOf(gathered.received, "a"), [0, 1]);
  const queued = new Wire();
  for (let n = 0; n < 40; n++) queued.add("filler", n, MIB);
  queued.add("a", 0, 10);
  queued.add("a", 1, 5 * MIB);
  queued.takeAll();
  assertEquals(numbersOf(queued.received, "a"), [0, 1]);
});

Deno.test("a stream of other messages does not starve a large one", () => {
  const wire = new Wire();
  for (let n = 0; n < 4; n++) wire.add("stream", n, 3 * MIB);
  wire.add("large", 0, 5 * MIB);
  for (let n = 4; n < 40; n++) {
    wire.add("stream", n, 3 * MIB);
    wire.take();
  }
  assertEquals(numbersOf(wire.received, "large"), [0]);
  wire.takeAll();
  assertEquals(numbersOf(wire.received, "stream"), Array.from({ length: 40 }, (_, n) => n));
});

Deno.test("the socket gets at most a window and a frame more than was acknowledged", () => {
  const wire = new Wire();
  for (let n = 0; n < 60; n++) wire.add("a", n, MIB);
  wire.add("b", 0, 40 * MIB);
  for (let taken = 0; wire.frames.length > 0; taken++) {
    assert(wire.inSocketBytes <= WINDOW_BYTES + 4 * MIB, `${wire.inSocketBytes} bytes`);
    wire.take();
  }
  assertEquals(wire.received.length, 61);
});

Deno.test("ready waits from the high mark to the low one, and bytes count unacknowledged messages", async () => {
  const wire = new Wire({ highWaterBytes: 3 * MIB, lowWaterBytes: MIB });
  await wire.outbox.ready();
  for (let n = 0; n < 4; n++) wire.add("a", n, MIB);
  assert(wire.outbox.bytes > 4 * MIB);
  let isReady = false;
  const ready = wire.outbox.ready().then(() => isReady = true);
  for (let left = 4; left > 1; left--) {
    await Promise.resolve();
    assertEquals(isReady, false, `${left} MiB are left`);
    wire.take();
  }
  wire.take();
  await ready;
  assertEquals(wire.outbox.bytes, 0);
});

Deno.test("closing resumes all waiting senders, and sends nothing more", async () => {
  const wire = new Wire({ highWaterBytes: 10, lowWaterBytes: 5 });
  for (let n = 0; n < 20; n++) wire.add("a", n, MIB);
  wire.add("a", 20, 10);
  const before = wire.frames.length;
  const ready = wire.outbox.ready();
  wire.outbox.close();
  await ready;
  wire.flush();
  assertEquals([wire.frames.length, wire.outbox.bytes], [before, 0]);
});

Deno.test("an acknowledgement of unsent bytes, or that goes back, is refused", () => {
  const wire = new Wire();
  wire.add("a", 0, 20_000);
  const { length } = wire.frames[0]!;
  for (const bytes of [length + 1, -1, NaN]) {
    assertEquals(
      assertThrows(() => wire.outbox.acknowledge(bytes), LeatError).code,
      "invalid_argument",
    );
  }
  wire.outbox.acknowledge(length);
  assertThrows(() => wire.outbox.acknowledge(length - 1), LeatError);
});
