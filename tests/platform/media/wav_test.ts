/**
 * WAV files written by another library and by hand, with every kind of samples, and refused when
 * damaged.
 */

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import wavefile from "wavefile";
import { LeatError } from "../../../core/error.ts";
import { decodeWav } from "../../../platform/media/wav.ts";
import { concat } from "../../data/formats/reading.ts";

/** Two channels of a few frames. */
const LEFT = [0, 0.5, -0.5, 0.25, -1, 0.999];
const RIGHT = [1 / 3, -1 / 3, 0, 0.75, -0.75, -1];

/** Levels per unit, according to the format: the largest sample is one level short of 1. */
const LEVELS: Record<string, number> = { "8": 2 ** 7, "16": 2 ** 15, "24": 2 ** 23, "32": 2 ** 31 };

function written(bitDepth: string): Uint8Array {
  const levels = LEVELS[bitDepth];
  const toLevel = (x: number) =>
    levels === undefined
      ? x
      : Math.min(Math.round(x * levels), levels - 1) + (bitDepth === "8" ? 128 : 0);
  const wav = new wavefile.WaveFile();
  wav.fromScratch(2, 44_100, bitDepth, [LEFT.map(toLevel), RIGHT.map(toLevel)]);
  return wav.toBuffer();
}

function refusal(bytes: Uint8Array): LeatError {
  return assertThrows(() => decodeWav(bytes), LeatError) as LeatError;
}

function chunk(name: string, ...data: number[]): Uint8Array {
  const bytes = new Uint8Array(8 + data.length + data.length % 2);
  bytes.set(text(name));
  new DataView(bytes.buffer).setUint32(4, data.length, true);
  bytes.set(data, 8);
  return bytes;
}

const text = (value: string) => new TextEncoder().encode(value);

/** A RIFF file of chunks. It claims no length, which counts only for data that claim none. */
const riff = (...chunks: Uint8Array[]) =>
  concat(text("RIFF"), new Uint8Array(4), text("WAVE"), ...chunks);

/** 16-bit PCM, one channel, 8,000 Hz. */
const FORMAT = chunk("fmt ", 1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0);

Deno.test("decodeWav reads integers of 8 to 32 bits and floats as another library wrote them", () => {
  for (const bitDepth of ["8", "16", "24", "32", "32f", "64"]) {
    const { samples, sampleRate } = decodeWav(written(bitDepth));
    assertEquals(sampleRate, 44_100);
    assertEquals([samples.dtype, ...samples.shape], ["float32", LEFT.length, 2], bitDepth);
    LEFT.forEach((left, i) => {
      const tolerance = 1.01 / (LEVELS[bitDepth] ?? 2 ** 23) + 1e-7;
      assertAlmostEquals(samples.data[2 * i]!, left, tolerance, `${bitDepth}, frame ${i}`);
      assertAlmostEquals(samples.data[2 * i + 1]!, RIGHT[i]!, tolerance, `${bitDepth}, frame ${i}`);
    });
  }
});

Deno.test("decodeWav divides 16-bit samples by 32768, both above and below zero", () => {
  const data = chunk("data", 0xff, 0x7f, 0x00, 0x80, 0x01, 0x00, 0xff, 0xff);
  const { samples, sampleRate } = decodeWav(riff(FORMAT, data));
  assertEquals(sampleRate, 8_000);
  assertEquals([...samples.data], [32_767 / 32_768, -1, 1 / 32_768, -1 / 32_768]);
});

Deno.test("decodeWav skips other chunks, also of odd length, and reads extensible formats and views", () => {
  const samples = chunk("data", 0, 0x40);
  const plain = decodeWav(riff(chunk("LIST", 1, 2, 3), FORMAT, chunk("fact", 9), samples));
  assertEquals([...plain.samples.data], [0.5]);
  const extensible = new Uint8Array(48);
  extensible.set(FORMAT);
  extensible.set([40, 0, 0, 0, 0xfe, 0xff], 4);
  extensible.set([1, 0], 8 + 24);
  const file = riff(extensible, samples);
  assertEquals([...decodeWav(file).samples.data], [0.5]);
  const buffer = new Uint8Array(file.length + 7);
  buffer.set(file, 7);
  assertEquals([...decodeWav(buffer.subarray(7)).samples.data], [0.5]);
});

Deno.test("decodeWav reads a file without frames", () => {
  assertEquals(decodeWav(riff(FORMAT, chunk("data"))).samples.shape, [0, 1]);
});

Deno.test("decodeWav reads data of unknown length to the end, as a writer to a pipe leaves them", () => {
  const data = chunk("data", 0, 0x40, 0, 0xc0);
  data.fill(0xff, 4, 8);
  for (const size of [0, 0xff]) {
    const file = riff(chunk("LIST", 1, 2), FORMAT, data);
    file.fill(size, 4, 8);
    assertEquals([...decodeWav(file).samples.data], [0.5, -0.5]);
  }
  const cut = refusal(riff(FORMAT, data.slice(0, -1)));
  assertStringIncludes(cut.message, "3 bytes of data are no whole frames");
  const other = chunk("LIST", 1, 2);
  other.fill(0xff, 4, 8);
  assertStringIncludes(
    refusal(riff(other, FORMAT, data)).message,
    '"LIST" chunk at byte 12 claims',
  );
});

Deno.test("decodeWav reads data to the end that claim no bytes in a file that was not finished", () => {
  const data = chunk("data", 0, 0x40, 0, 0xc0);
  data.fill(0, 4, 8);
  const file = riff(FORMAT, data);
  const frames = (riffLength: number) => {
    new DataView(file.buffer).setUint32(4, riffLength, true);
    return [...decodeWav(file).samples.data];
  };
  // As begun by writers: without a length, and with that of the headers.
  for (const riffLength of [0, 8, file.length - 4 - 8]) {
    assertEquals(frames(riffLength), [0.5, -0.5], `${riffLength}`);
  }
  // The file is finished: the data are empty, and something else follows.
  assertEquals(frames(file.length - 8), []);
});

Deno.test("decodeWav refuses a file truncated anywhere", () => {
  const whole = written("16");
  for (let length = 0; length < whole.length; length++) {
    const error = refusal(whole.slice(0, length));
    assertEquals(error.code, "data_loss", `${length} of ${whole.length} bytes`);
  }
  assertStringIncludes(refusal(whole.slice(0, -4)).message, `claims 24 bytes, 20 are left`);
});

Deno.test("decodeWav names unsupported formats, and files of other types", () => {
  const withFormat = (at: number, value: number) => {
    const format = FORMAT.slice();
    format[8 + at] = value;
    return refusal(riff(format, chunk("data", 0, 0)));
  };
  const cases: [LeatError, string, string][] = [
    [withFormat(0, 7), "unimplemented", "16-bit µ-law"],
    [withFormat(0, 99), "unimplemented", "16-bit codec 99"],
    [withFormat(14, 12), "unimplemented", "12-bit PCM"],
    [withFormat(2, 0), "data_loss", "0 channels at 8000 Hz"],
    [withFormat(2, 3), "data_loss", "2 bytes of data are no whole frames of 6 bytes"],
    [refusal(riff(chunk("data", 0, 0), FORMAT)), "data_loss", "before its format"],
    [refusal(riff(FORMAT)), "data_loss", "no data chunk"],
    [refusal(riff(chunk("fmt ", 1, 0))), "data_loss", "format chunk has 2 bytes"],
    [refusal(text("fLaC....")), "invalid_argument", "begin with 664c6143"],
    [refusal(text("RIFF....AVI ....")), "invalid_argument", "Not a WAV file"],
    [refusal(new Uint8Array(0)), "data_loss", "no bytes"],
  ];
  for (const [error, code, message] of cases) {
    assertEquals(error.code, code, message);
    assertStringIncludes(error.message, message);
  }
});

Deno.test("decodeWav ignores wrong counts in chunks that it does not need", () => {
  // A table of four thousand million cue points in 4 bytes: a library that reads it takes minutes
  // and all memory.
  const cues = chunk("cue ", 0xff, 0xff, 0xff, 0xff);
  assert(decodeWav(riff(FORMAT, cues, chunk("data", 0, 0x40))).samples.size === 1);
});

Deno.test("decodeWav refuses samples that are larger decoded than its limit", () => {
  for (const bitDepth of ["8", "16", "64"]) {
    const bytes = written(bitDepth);
    assertEquals(decodeWav(bytes, 48).samples.data.length, 12);
    const error = assertThrows(() => decodeWav(bytes, 47), LeatError) as LeatError;
    assertEquals(error.code, "resource_exhausted");
    assertStringIncludes(error.message, "take 48 bytes as float32, more than 47 (WAV_BYTES_MAX)");
  }
});
