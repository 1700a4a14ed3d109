/**
 * The link between two processes beyond the common contract: a hostile far end, and the reuse of
 * memory.
 */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { Link } from "../../actors/runtime/link.ts";
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import { encodeMessage, FramePool } from "../../transport/codec.ts";
import { writeBye, writeHello } from "../../transport/hello.ts";
import { Payload } from "../../transport/payload.ts";
import {
  freedFrame,
  HEADER_BYTES,
  PIPED_BYTES_MAX,
  pipedFrames,
  PipeInput,
} from "../../transport/process/frames.ts";
import {
  openProcessLink,
  type ProcessLinkOptions,
  UNTRUSTED_ENVELOPE_BYTES_MAX,
} from "../../transport/process/link.ts";
import type { PipeReader } from "../../transport/process/streams.ts";
import { LENT_SLOTS_MAX, SLOT_BYTES_MAX, SLOTS } from "../../transport/process/slots.ts";
import { streamWriter } from "../../platform/process/pipes.ts";
import { readableSlots, writableSlots } from "../../platform/process/slot_files.ts";
import { SlotFolder } from "../../platform/process/slot_folder.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { until } from "../lib/until.ts";

const PIPED = 0xffff_ffff;
const FREED = 0x8000_0000;
const NEAR = { node: "near", incarnation: "00000000000000aa" };
const FAR = { node: "far", incarnation: "00000000000000bb" };
const HELLO = { ...FAR, role: "dialler", messageBytesMax: 2 ** 30 } as const;

function chunksOf(stream: ReadableStream<Uint8Array>): PipeReader {
  const reader = stream.getReader();
  return {
    read: async () => (await reader.read()).value,
    close: () => void reader.cancel().catch(() => {}),
  };
}

/** Two pipes in memory and two files, with access to both ends. */
class Ends implements AsyncDisposable {
  readonly #out = new TransformStream<Uint8Array, Uint8Array>();
  readonly #in = new TransformStream<Uint8Array, Uint8Array>();
  readonly folder = new SlotFolder();
  readonly #links: Link[] = [];

  async near(options?: ProcessLinkOptions): Promise<Link> {
    const { incoming, outgoing } = this.folder;
    const streams = {
      incoming: chunksOf(this.#in.readable),
      outgoing: streamWriter(this.#out.writable),
      incomingSlots: readableSlots(incoming),
      outgoingSlots: writableSlots(outgoing),
    };
    return this.#kept(await openProcessLink(streams, NEAR, "listener", options));
  }

  async far(options?: ProcessLinkOptions): Promise<Link> {
    const { incoming, outgoing } = this.folder;
    const streams = {
      incoming: chunksOf(this.#out.readable),
      outgoing: streamWriter(this.#in.writable),
      incomingSlots: readableSlots(outgoing),
      outgoingSlots: writableSlots(incoming),
    };
    return this.#kept(await openProcessLink(streams, FAR, "dialler", options));
  }

  /** Writes raw bytes at the far end, and optionally ends the pipe. */
  async tell(bytes: Uint8Array, ends = false): Promise<void> {
    const writer = this.#in.writable.getWriter();
    await writer.write(bytes).catch(() => {});
    if (ends) await writer.close().catch(() => {});
    writer.releaseLock();
  }

  /** The near end after the far end's handwritten hello. */
  async hearing(): Promise<Link> {
    const opening = this.near({ envelopeBytesMax: UNTRUSTED_ENVELOPE_BYTES_MAX });
    await this.tell(pipedFrames([writeHello(HELLO)]));
    return await opening;
  }

  /** A program without Leat at the near end. */
  program(): { input: PipeInput; write(bytes: Uint8Array): Promise<void> } {
    const writer = this.#out.writable.getWriter();
    return {
      input: new PipeInput(chunksOf(this.#in.readable)),
      write: (bytes) => writer.write(bytes),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const link of this.#links) link.close();
    await Promise.all(this.#links.map(({ closed }) => closed));
    this.folder.remove();
  }

  #kept(link: Link): Link {
    this.#links.push(link);
    return link;
  }
}

function tell(body: unknown, incarnation = `${FAR.incarnation}-1`): Envelope {
  const source = { node: "far", path: "/sender", incarnation };
  const target = { node: "near", path: "/receiver" };
  return { kind: "tell", source, target, number: 1, method: "note", body };
}

function header(length: number, place: number): Uint8Array {
  return new Uint8Array(new Uint32Array([length, place]).buffer);
}

/** The first envelope that arrives. */
function first(link: Link): Promise<Envelope> {
  return new Promise((resolve) => link.start(resolve));
}

Deno.test("process link leaves space before a payload from a slot, and aligns it", async () => {
  await using ends = new Ends();
  const [near, far] = await Promise.all([ends.near(), ends.far()]);
  const came = first(near);
  far.start(() => {});
  const frame = encodeMessage({ x: new Float32Array(100_000).fill(1) }, { roomForEnvelope: true });
  far.send(tell(new Payload(frame, { isAlone: true })));
  const { bytes } = (await came as Envelope & { body: Payload }).body;
  assertEquals(bytes, frame);
  assertEquals(bytes.byteOffset % 64, 0);
  assert(bytes.byteOffset >= 1_024);
  assertEquals(bytes.byteOffset + bytes.byteLength, bytes.buffer.byteLength);
});

Deno.test("process link reads from slots into memory of released messages", async () => {
  await using ends = new Ends();
  const pool = new FramePool();
  const [near, far] = await Promise.all([ends.near({ pool }), ends.far()]);
  far.start(() => {});
  const came: Payload[] = [];
  near.start((envelope) => came.push((envelope as Envelope & { body: Payload }).body));
  const send = async (fill: number) => {
    const frame = encodeMessage({ x: new Float32Array(100_000).fill(fill) });
    far.send(tell(new Payload(frame)));
    await until(() => came.length === fill);
    assertEquals(came[fill - 1]!.bytes, frame);
    return came[fill - 1]!;
  };
  const first = await send(1);
  const byteLength = first.bytes.buffer.byteLength;
  first.release();
  const spare = pool.take(byteLength);
  pool.give(spare);
  const second = await send(2);
  assert(second.bytes.buffer === spare);
  const third = await send(3);
  assert(third.bytes.buffer !== spare, "memory in use is not given");
  assertEquals(second.bytes.at(-1), new Uint8Array(Float32Array.of(2).buffer).at(-1));
});

Deno.test("process link recycles the memory of written messages that are not kept", async () => {
  await using ends = new Ends();
  const recycled: ArrayBuffer[] = [];
  const recycle = (buffer: ArrayBuffer) => void recycled.push(buffer);
  const [near, far] = await Promise.all([ends.near(), ends.far({ recycle })]);
  near.start(() => {});
  far.start(() => {});
  const frames = [0, 1, 2].map((i) =>
    encodeMessage(new Float32Array(100_000).fill(i), { roomForEnvelope: true })
  );
  const [own, kept, long] = frames as [Uint8Array<ArrayBuffer>, Uint8Array, Uint8Array];
  far.send(tell(new Payload(own, { isAlone: true })));
  far.send(tell(new Payload(kept, { isAlone: true })), true);
  far.send(tell(new Payload(long.slice())));
  far.send(tell("small"));
  while (far.bufferedBytes > 0) await new Promise((resolve) => setTimeout(resolve));
  assert(recycled.includes(own.buffer));
  assert(!recycled.includes(kept.buffer as ArrayBuffer));
  // The third was copied into memory of the link.
  assertEquals(recycled.length, 2);
});

Deno.test("process link is closed by an invalid message, with the reason, and delivers nothing of it", async () => {
  const message = encodeMessage(tell(1));
  const large = encodeMessage(tell("x".repeat(UNTRUSTED_ENVELOPE_BYTES_MAX)));
  // Zeros are the offsets of empty items, and cost nothing in a sparse file.
  const blocks = new Tensor("bytes", [100_000], Array(100_000).fill(new Uint8Array(0)));
  const many = encodeMessage(tell(blocks));
  const stale = encodeMessage(tell(1, "00000000000000cc-1"));
  const piped = (bytes: Uint8Array) => pipedFrames([bytes]);
  const cases: [bytes: Uint8Array, file: Uint8Array, said: string][] = [
    [header(PIPED_BYTES_MAX + 1, PIPED), message, "a piped message of"],
    [header(SLOT_BYTES_MAX + 1, 0), message, "in slot 0"],
    [header(4, SLOTS), message, `in slot ${SLOTS}`],
    [header(1, FREED), message, "in slot"],
    [header(0, FREED + SLOTS), message, `slot ${SLOTS} freed, which holds no message`],
    [header(0, FREED + LENT_SLOTS_MAX), message, "in slot"],
    [header(0, FREED), message, "slot 0 freed, which holds no message"],
    [header(message.length + 1, 0), message, "A slot is shorter"],
    [header(large.length, 0), large, "an envelope of"],
    [header(many.length, 0), many, "more structure"],
    [piped(Uint8Array.of(1, 2, 3)), message, ""],
    [piped(Uint8Array.of()), message, ""],
    [piped(encodeMessage({ ask: 1 })), message, "kind undefined"],
    [piped(stale), message, "another incarnation"],
    [piped(encodeMessage({ ...tell(1), source: NEAR })), message, "incomplete"],
    [piped(writeHello(HELLO)), message, "of kind hello"],
  ];
  for (const [i, [bytes, file, said]] of cases.entries()) {
    await using ends = new Ends();
    Deno.writeFileSync(ends.folder.incoming, file);
    const near = await ends.hearing();
    const heard: unknown[] = [];
    near.start((envelope) => heard.push(envelope));
    await ends.tell(bytes);
    const why = await near.closed;
    assert(why.code !== "unavailable", `case ${i}: ${why.message}`);
    assertStringIncludes(why.message, said, `case ${i}`);
    assertEquals(heard, []);
  }
});

Deno.test("process link is not opened by an invalid hello", async () => {
  const cases: [bytes: Uint8Array, code: string, said: string][] = [
    [header(4_097, PIPED), "internal", "no hello"],
    [header(100, 0), "internal", "no hello"],
    [pipedFrames([encodeMessage(tell(1))]), "invalid_argument", "hello"],
    [pipedFrames([writeHello({ ...HELLO, role: "listener" })]), "invalid_argument", "its role is"],
    [
      pipedFrames([encodeMessage({ ...HELLO, kind: "hello", version: 99 })]),
      "failed_precondition",
      "version 99",
    ],
    [pipedFrames([writeBye(new LeatError("aborted", "not today"))]), "aborted", "not today"],
    [new Uint8Array(), "unavailable", "closed its end"],
  ];
  for (const [bytes, code, said] of cases) {
    await using ends = new Ends();
    const refused = assertRejects(() => ends.near(), LeatError, said);
    await ends.tell(bytes, true);
    const error = await refused;
    assertEquals(error.code, code, said);
  }
});

Deno.test("process link distinguishes an end within a message from one after it", async () => {
  for (const [length, code] of [[8, "internal"], [0, "unavailable"], [5, "unavailable"]] as const) {
    await using ends = new Ends();
    const near = await ends.hearing();
    near.start(() => {});
    await ends.tell(header(4, PIPED).subarray(0, length), true);
    assertEquals((await near.closed).code, code, `${length} bytes`);
  }
});

Deno.test("process link closes if its receiver throws, and sends nothing afterwards", async () => {
  await using ends = new Ends();
  const near = await ends.hearing();
  near.start(() => {
    throw new LeatError("internal", "no such method");
  });
  await ends.tell(pipedFrames([encodeMessage(tell(1))]));
  assertEquals((await near.closed).message, "no such method");
  assertEquals(near.send(tell(1)), false);
});

Deno.test("process link refuses messages that its other end would not accept", async () => {
  await using ends = new Ends();
  const [near] = await Promise.all([
    ends.near(),
    ends.far({ limits: { messageBytesMax: 100_000 } }),
  ]);
  let refused: unknown;
  try {
    near.send(tell("x".repeat(100_000)));
  } catch (error) {
    refused = error;
  }
  assertEquals((refused as LeatError).code, "resource_exhausted");
});

Deno.test("process link lends slots until they are freed, and leaves large payloads where they are", async () => {
  await using ends = new Ends();
  const opening = ends.far({ lendsSlots: true });
  // Another program at the near end, which keeps what it reads.
  const near = ends.program();
  const messageBytesMax = 2 ** 30;
  await near.write(
    pipedFrames([writeHello({ ...NEAR, role: "listener", messageBytesMax, slots: 5 })]),
  );
  const link = await opening;
  const next = async () => {
    const header = (await near.input.take(HEADER_BYTES))!.slice();
    const [length, slot] = new Uint32Array(header.buffer);
    return { length: length!, slot: slot! };
  };
  await near.input.take((await next()).length);
  const sent = Array.from({ length: 6 }, (_, i) =>
    tell({
      x: new Uint8Array(100_000).fill(i),
      y: new Float32Array([i]),
      z: new Uint8Array(70_000).fill(i),
    }));
  link.start(() => {});
  for (const envelope of sent) link.send(envelope);
  const headers = [await next(), await next(), await next(), await next(), await next()];
  assertEquals(headers.map(({ slot }) => slot), [0, 1, 2, 3, 4]);
  // Messages in slots that are lent slow no one down; the sixth waits for a slot.
  assertEquals(link.bufferedBytes, encodeMessage(sent[5]).length);
  const slots = readableSlots(ends.folder.incoming);
  for (const { slot, length } of headers) {
    const bytes = new Uint8Array(length);
    await slots.read(slot, bytes);
    assertEquals(bytes, encodeMessage(sent[slot]!));
  }
  slots.close();
  await near.write(freedFrame(3));
  assertEquals((await next()).slot, 3);
});
