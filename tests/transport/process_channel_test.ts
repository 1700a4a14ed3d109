/**
 * The channel between two processes: both of its ends here, with real files and pipes in memory, and
 * a far end that keeps to no rule.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import {
  PIPED_BYTES_MAX,
  ProcessChannel,
  UNTRUSTED_ENVELOPE_BYTES_MAX,
} from "../../transport/process/channel.ts";
import { streamReader, streamWriter } from "../../transport/process/pipes.ts";
import {
  readableSlots,
  SLOT_BYTES_MAX,
  SLOTS,
  writableSlots,
} from "../../transport/process/slots.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";

const PIPED = 0xffff_ffff;
const FREED = 0x8000_0000;

/** Two pipes and two files, and a channel at the near end. */
class Ends implements AsyncDisposable {
  readonly near: ProcessChannel;
  /** The other pipe's ends. */
  readonly #out = new TransformStream<Uint8Array, Uint8Array>();
  readonly #in = new TransformStream<Uint8Array, Uint8Array>();
  readonly #folder: TempFolder;

  private constructor(folder: TempFolder) {
    this.#folder = folder;
    for (const name of ["up", "down"]) {
      Deno.writeFileSync(`${folder.path}/${name}`, new Uint8Array());
    }
    this.near = new ProcessChannel({
      incoming: streamReader(this.#in.readable),
      outgoing: streamWriter(this.#out.writable),
      incomingSlots: readableSlots(this.path("up")),
      outgoingSlots: writableSlots(this.path("down")),
    }, { envelopeBytesMax: UNTRUSTED_ENVELOPE_BYTES_MAX });
  }

  static async open(): Promise<Ends> {
    return new Ends(await TempFolder.make());
  }

  path(name: string): string {
    return `${this.#folder.path}/${name}`;
  }

  /** A channel at the far end. */
  far(): ProcessChannel {
    return new ProcessChannel({
      incoming: streamReader(this.#out.readable),
      outgoing: streamWriter(this.#in.writable),
      incomingSlots: readableSlots(this.path("down")),
      outgoingSlots: writableSlots(this.path("up")),
    });
  }

  /** Writes bytes at the far end, as they are, and ends the pipe where it is told to. */
  async tell(bytes: Uint8Array, ends = false): Promise<void> {
    const writer = this.#in.writable.getWriter();
    await writer.write(bytes).catch(() => {});
    if (ends) await writer.close().catch(() => {});
    writer.releaseLock();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.near.close();
    await this.#folder[Symbol.asyncDispose]();
  }
}

function header(length: number, place: number): Uint8Array {
  return new Uint8Array(new Uint32Array([length, place]).buffer);
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}

Deno.test("ProcessChannel delivers messages of all sizes in order, through the pipe and through slots", async () => {
  await using ends = await Ends.open();
  const far = ends.far();
  const sizes = [0, 1, 255, 256, PIPED_BYTES_MAX - 200, PIPED_BYTES_MAX, 1_000_003, 9_000_001, 7];
  const count = 4 * sizes.length;
  const came: unknown[] = [];
  const all = Promise.withResolvers<void>();
  far.start((message) => {
    if (came.push(message) === count) all.resolve();
  });
  ends.near.start(() => {});
  const sizeOf = (i: number) => sizes[i % sizes.length]!;
  for (let i = 0; i < count; i++) {
    ends.near.send({ i, bytes: new Uint8Array(sizeOf(i)).fill(i), list: [1n, "text", null] });
  }
  await all.promise;
  for (const [i, message] of came.entries()) {
    const { bytes, ...rest } = message as { bytes: Uint8Array };
    assertEquals(rest as unknown, { i, list: [1n, "text", null] });
    assertEquals(bytes.byteLength, sizeOf(i));
    assert(bytes.every((byte) => byte === i % 256), `bytes of message ${i}`);
  }
  far.close();
  assertEquals((await ends.near.closed).code, "unavailable");
});

Deno.test("ProcessChannel leaves room before a payload from a slot, and aligns it", async () => {
  await using ends = await Ends.open();
  const far = ends.far();
  const came = Promise.withResolvers<Payload>();
  far.start((message) => came.resolve((message as { frame: Payload }).frame));
  const frame = encodeMessage({ x: new Float32Array(100_000).fill(1) }, { roomForEnvelope: true });
  ends.near.send({ frame: new Payload(frame) });
  const { bytes } = await came.promise;
  assertEquals(bytes.byteOffset % 64, 0);
  assert(bytes.byteOffset >= 1_024);
  assertEquals(bytes.byteOffset + bytes.byteLength, bytes.buffer.byteLength);
  far.close();
});

Deno.test("ProcessChannel is closed by whatever is no message, with why, and allocates nothing for it", async () => {
  const message = encodeMessage({ a: 1 });
  const large = encodeMessage({ a: "x".repeat(UNTRUSTED_ENVELOPE_BYTES_MAX) });
  const cases: [bytes: Uint8Array, file: Uint8Array, said: string][] = [
    [header(PIPED_BYTES_MAX + 1, PIPED), message, "a piped message of"],
    [header(SLOT_BYTES_MAX + 1, 0), message, "in slot 0"],
    [header(4, SLOTS), message, `in slot ${SLOTS}`],
    [header(1, FREED), message, "in slot"],
    [header(0, FREED + SLOTS), message, "in slot"],
    [header(0, FREED), message, "freed twice"],
    [header(message.length + 1, 0), message, "A slot is shorter"],
    [header(large.length, 0), large, "an envelope of"],
    [joined(header(3, PIPED), Uint8Array.of(1, 2, 3)), message, ""],
    [joined(header(0, PIPED)), message, ""],
  ];
  for (const [i, [bytes, file, said]] of cases.entries()) {
    await using ends = await Ends.open();
    Deno.writeFileSync(ends.path("up"), file);
    const heard: unknown[] = [];
    ends.near.start((message) => heard.push(message));
    await ends.tell(bytes);
    const why = await ends.near.closed;
    assert(why.code !== "unavailable", `case ${i}: ${why.message}`);
    assertStringIncludes(why.message, said, `case ${i}`);
    assertEquals(heard, []);
  }
});

Deno.test("ProcessChannel tells an end amid a message from one behind it", async () => {
  for (const [length, code] of [[8, "internal"], [0, "unavailable"], [5, "unavailable"]] as const) {
    await using ends = await Ends.open();
    ends.near.start(() => {});
    await ends.tell(header(4, PIPED).subarray(0, length), true);
    assertEquals((await ends.near.closed).code, code, `${length} bytes`);
  }
});

Deno.test("ProcessChannel closes where its receiver throws, and sends nothing afterwards", async () => {
  await using ends = await Ends.open();
  ends.near.start(() => {
    throw new LeatError("internal", "no such method");
  });
  const message = encodeMessage({ a: 1 });
  await ends.tell(joined(header(message.length, PIPED), message));
  assertEquals((await ends.near.closed).message, "no such method");
  ends.near.send({ a: 1 });
});
