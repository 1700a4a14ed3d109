/** Fixes the bytes of envelopes and frames by the committed `vectors/frames.json`. */
import { LeatError } from "../../../core/error.ts";
import { decodeMessage } from "../../../transport/codec.ts";
import { asEnvelope } from "../../../transport/envelopes.ts";
import { FRAME, readAck, readBatch, readFragment } from "../../../transport/web_socket/frames.ts";
import { readInSlot, readSlotFile, readSlotFreed } from "../../../transport/web_socket/slots.ts";
import { byeReason, readHello } from "../../../transport/hello.ts";
import { assertEquals, assertInstanceOf, assertThrows } from "../../assert.ts";
import { describe } from "../vectors/cases.ts";
import {
  ACKNOWLEDGED,
  BATCHED,
  BYE,
  FRAGMENTED,
  type FrameVectors,
  HELLOS,
  makeFrameVectors,
} from "../vectors/frame_cases.ts";

const FILE = new URL("../vectors/frames.json", import.meta.url);
const vectors: FrameVectors = JSON.parse(await Deno.readTextFile(FILE));

/** The committed frames of that name, or those that begin with it. */
function frames(name: string): Uint8Array[] {
  const found = vectors.frames.filter((frame) => frame.name.startsWith(name));
  return found.map(({ hex }) => Uint8Array.fromHex(hex));
}

Deno.test("envelopes and frames are written as committed, byte for byte", () => {
  assertEquals(makeFrameVectors(), vectors);
});

Deno.test("the committed envelopes and frames are of every kind", () => {
  const kinds = vectors.envelopes.map(({ value }) => (value as { kind: string }).kind);
  const wanted = ["tell", "ask", "reply", "failure", "watch", "unwatch", "down"];
  assertEquals([...new Set(kinds)].sort(), wanted.sort());
  const firsts = new Set(vectors.frames.map(({ hex }) => Number.parseInt(hex.slice(0, 2), 16)));
  assertEquals([...firsts].sort(), Object.values(FRAME).sort());
});

Deno.test("asEnvelope reads the committed envelopes", () => {
  for (const { name, hex, value } of vectors.envelopes) {
    assertEquals(describe(asEnvelope(decodeMessage(Uint8Array.fromHex(hex)))), value, name);
  }
});

Deno.test("readHello and byeReason read the committed first and last messages", () => {
  const hellos = frames("hello").map((hello, i) => readHello(hello, HELLOS[i]!.role));
  assertEquals(hellos, [...HELLOS]);
  const [bye] = frames("bye");
  const reason = byeReason(decodeMessage(bye!));
  assertInstanceOf(reason, LeatError);
  assertEquals(
    { code: reason.code, message: reason.message, details: reason.details },
    { code: BYE.code, message: BYE.message, details: BYE.details },
  );
});

Deno.test("readBatch, readFragment and readAck read the committed frames", () => {
  const messages: Uint8Array[] = [];
  readBatch(frames("batch")[0]!, (message) => messages.push(message.slice()));
  assertEquals(messages, [...BATCHED]);
  const { message, id, bytes } = FRAGMENTED;
  const parts = frames("fragment").map(readFragment);
  assertEquals(
    parts.map(({ data, ...part }) => ({ ...part, data: data.slice() })),
    parts.map((_, i) => ({
      ...{ id, offset: i * bytes, total: message.length },
      data: message.slice(i * bytes, (i + 1) * bytes),
    })),
  );
  assertEquals(parts.length, Math.ceil(message.length / bytes));
  assertEquals(readAck(frames("acknowledgement")[0]!), ACKNOWLEDGED);
});

Deno.test("readBatch refuses empty messages, which take memory and no bytes", () => {
  const frame = new Uint8Array(64);
  frame[0] = FRAME.BATCH;
  new DataView(frame.buffer).setUint32(1, 1);
  assertThrows(() => readBatch(frame, () => {}), LeatError, "message 0 is empty");
});

Deno.test("readSlotFile, readInSlot and readSlotFreed read the committed frames", () => {
  assertEquals(readSlotFile(frames("slot file")[0]!), "0123456789abcdef");
  assertEquals(readInSlot(frames("in slot")[0]!), { slot: 5, length: 70_000 });
  assertEquals(readSlotFreed(frames("slot freed")[0]!), 5);
});
