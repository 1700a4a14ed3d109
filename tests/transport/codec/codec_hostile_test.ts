/**
 * The codec against messages that no writer writes: each is refused with the code in
 * `docs/wire.md`, at little cost.
 */

import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { Tensor, tensor } from "../../../core/tensor.ts";
import { decodeMessage, encodeMessage, ENVELOPE_DEPTH_MAX } from "../../../transport/codec.ts";
import { assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";

/** A message of this envelope (hexadecimal, spaces ignored), and of these payloads. */
function message(envelopeHex: string, ...payloads: Uint8Array[]): Uint8Array {
  const envelope = Uint8Array.fromHex(envelopeHex.replaceAll(/\s/g, ""));
  const bytes = [0xce, ...uint32(envelope.length), ...envelope];
  for (const payload of payloads) {
    while ((bytes.length + 5) % 64 !== 0) bytes.push(0xc0);
    bytes.push(0xc6, ...uint32(payload.length), ...payload);
  }
  return new Uint8Array(bytes);
}

function uint32(value: number): number[] {
  return [value >>> 24, value >>> 16 & 0xff, value >>> 8 & 0xff, value & 0xff];
}

function refused(code: LeatErrorCode, part: string, frame: Uint8Array): void {
  const error = assertThrows(() => decodeMessage(frame), LeatError) as LeatError;
  assertEquals(error.code, code, error.message);
  assertStringIncludes(error.message, part);
}

const EIGHT = new Uint8Array(8);

Deno.test("decodeMessage reads what other writers may write: long forms, float32, bin, every integer", () => {
  const frame = message(
    "dc 0009 ca3fc00000 c40101 c500020102 d9 01 61 cc01 cd0001 d0ff d1ffff c9 00000004 50 00000000",
    EIGHT,
  );
  const decoded = decodeMessage(frame) as unknown[];
  assertEquals(decoded.slice(0, 8), [
    1.5,
    new Uint8Array([1]),
    new Uint8Array([1, 2]),
    "a",
    1,
    1,
    -1,
    -1,
  ]);
});

Deno.test("decodeMessage reports the expected and the present number of bytes", () => {
  const frame = encodeMessage({ t: tensor(new Float64Array(16)) });
  refused("data_loss", "needs 128 bytes, 100 are there", frame.slice(0, frame.length - 28));
  refused("data_loss", "needs 5 bytes, 3 are there", frame.slice(0, 3));
});

Deno.test("decodeMessage refuses lengths without data before allocating memory", () => {
  refused("data_loss", "4294967295 values", message("dd ffffffff"));
  refused("data_loss", "8589934590 values", message("df ffffffff"));
  refused("data_loss", "4294967295 bytes", message("db ffffffff 61"));
  refused("data_loss", "4294967295 bytes", message("c6 ffffffff 61"));
  refused("data_loss", "4294967295 bytes", message("c9 ffffffff 54"));
  refused("data_loss", "the envelope", new Uint8Array([0xce, 0xff, 0xff, 0xff, 0xff, 0x01]));
  const cut = message("c0", EIGHT);
  cut.set([0xff, 0xff, 0xff, 0xff], 60);
  refused("data_loss", "payload 0", cut);
});

Deno.test("a bool tensor holds only 0 and 1 in a message", () => {
  const frame = encodeMessage(tensor([true, false]));
  frame[frame.length - 1] = 2;
  refused("invalid_argument", "neither 0 nor 1", frame);
  const odd = new Tensor("bool", [1], new Uint8Array([255]));
  const error = assertThrows(() => encodeMessage({ odd }), LeatError, "$.odd");
  assertEquals(error.code, "invalid_argument");
});

Deno.test("decodeMessage refuses trailing bytes, in the envelope and after the message", () => {
  refused("invalid_argument", "continues after its value", message("c0 c0"));
  const frame = encodeMessage({ t: tensor([1]) });
  const longer = new Uint8Array(frame.length + 64);
  longer.set(frame);
  refused("invalid_argument", "nil", longer);
  refused("data_loss", "header of payload 1", longer.slice(0, frame.length + 1));
  refused("data_loss", "header of payload 0", new Uint8Array([...message("01"), 0xc0]));
});

Deno.test("decodeMessage refuses a message that does not begin with its envelope's length", () => {
  refused("invalid_argument", "0xce", new Uint8Array([0x81, 0xa1, 0x61, 0x01, 0xc0]));
});

Deno.test("decodeMessage refuses repeated keys, __proto__, and keys that are not strings", () => {
  refused("invalid_argument", "twice", message("82 a161 01 a161 02"));
  refused("invalid_argument", "__proto__", message("81 a95f5f70726f746f5f5f 80"));
  refused("invalid_argument", "strings", message("81 01 01"));
  assertEquals(({} as Record<string, unknown>)["polluted"], undefined);
});

Deno.test("decodeMessage refuses text that is not UTF-8, as value, key and tensor", () => {
  refused("invalid_argument", "UTF-8", message("a2 c328"));
  refused("invalid_argument", "UTF-8", message("a3 eda080"));
  refused("invalid_argument", "UTF-8", message("81 a1ff 01"));
  const offsets = new Uint8Array(new Uint32Array([0, 1]).buffer);
  const strings = message("c70a 54 00000000 0c 01 00000001", offsets, new Uint8Array([0xff]));
  refused("invalid_argument", "UTF-8", strings);
});

Deno.test("decodeMessage refuses structure deeper than its limit without overflowing the stack", () => {
  refused("invalid_argument", "ENVELOPE_DEPTH_MAX", message("91".repeat(100_000) + "c0"));
  refused(
    "invalid_argument",
    "ENVELOPE_DEPTH_MAX",
    message("81a161".repeat(ENVELOPE_DEPTH_MAX + 1) + "c0"),
  );
});

Deno.test("decodeMessage refuses tokens and extensions that the format does not have", () => {
  refused("invalid_argument", "0xc1", message("c1"));
  // Extensions that msgpackr's own reader would follow: records, bundled strings, references,
  // dates.
  for (
    const foreign of ["d472 40 91 a161 01", "d662 ffffff00", "d669 00000001 90", "d6ff 00000000"]
  ) {
    refused("invalid_argument", "extension type", message(foreign));
  }
  refused("invalid_argument", "of 6 bytes", message("c706 50 00000000 0000", EIGHT));
  refused("invalid_argument", "0x54", message("c704 54 00000000 0a 01 00000001", EIGHT));
});

Deno.test("decodeMessage refuses payloads named twice, never, or not there", () => {
  refused("invalid_argument", "second time", message("92 c70450 00000000 c70450 00000000", EIGHT));
  refused("invalid_argument", "never named", message("01", EIGHT));
  refused("data_loss", "names payload 1", message("c70450 00000001", EIGHT));
});

Deno.test("decodeMessage refuses a payload that is not aligned, not padded with nil, or not a bin32", () => {
  const frame = message("c70450 00000000", EIGHT);
  const unaligned = new Uint8Array([...frame.slice(0, 11), 0xc6, 0, 0, 0, 8, ...EIGHT]);
  refused("data_loss", "header of payload 0", unaligned);
  const dirty = frame.slice();
  dirty[20] = 0;
  refused("invalid_argument", "byte 20", dirty);
  const wrongToken = frame.slice();
  wrongToken[59] = 0xc4;
  refused("invalid_argument", "bin32", wrongToken);
});

Deno.test("decodeMessage refuses tensors whose shape, dtype or rank does not fit", () => {
  refused("invalid_argument", "shape [2]", message("c70a54 00000000 0a 01 00000002", EIGHT));
  refused(
    "invalid_argument",
    "whole number",
    message("c70a54 00000000 0a 01 00000001", EIGHT.slice(1)),
  );
  refused("invalid_argument", "dtype 99", message("c70654 00000000 63 00", EIGHT));
  refused("invalid_argument", "33 axes", message("c70654 00000000 01 21", EIGHT));
  refused("invalid_argument", "typed array", message("c70541 00000000 0b", EIGHT));
  refused("invalid_argument", "typed array", message("c70541 00000000 0c", EIGHT));
  const huge = "ffffffff".repeat(32);
  refused("invalid_argument", "elements", message(`c78654 00000000 01 20 ${huge}`, EIGHT));
});

Deno.test("decodeMessage refuses offsets and row splits that are out of order", () => {
  const block = new Uint8Array(4);
  const strings = "c70a54 00000000 0c 01 00000002";
  for (const offsets of [[0, 5, 4], [0, 3, 2], [1, 2, 4], [0, 4, 5]]) {
    refused(
      "invalid_argument",
      "off",
      message(strings, new Uint8Array(new Uint32Array(offsets).buffer), block),
    );
  }
  refused(
    "invalid_argument",
    "offsets",
    message("c70a54 00000000 0c 01 00000000", new Uint8Array(0), block),
  );
  const ragged = "c70e52 00000000 00000001 01 01 00000004";
  for (const splits of [[0n, 5n, 4n], [0n, 2n], [1n, 4n], []]) {
    refused(
      "invalid_argument",
      "split",
      message(ragged, new Uint8Array(new BigInt64Array(splits).buffer), block),
    );
  }
});

Deno.test("decodeMessage reads the next message normally after a refusal", () => {
  assertThrows(() => decodeMessage(message("92 c1")), LeatError);
  assertEquals(decodeMessage(encodeMessage({ fine: [1, "x"] })), { fine: [1, "x"] });
});
