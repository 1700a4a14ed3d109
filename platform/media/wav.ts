/**
 * WAV files: RIFF chunks with PCM or float samples (Microsoft's and IBM's "Multimedia Programming
 * Interface", 1991, and its WAVE_FORMAT_EXTENSIBLE).
 *
 * Leat decodes them itself because the libraries have faults: they refuse 32-bit or extensible files, scale
 * positive and negative samples differently, or trust the counts of irrelevant chunks.
 */

import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import type { DecodedAudio } from "../../data/host.ts";

/** Limit of the decoded samples, which are up to four times as large as those in the file. */
const WAV_BYTES_MAX = 2 * 1024 * 1024 * 1024;

interface WavFormat {
  readonly code: number;
  readonly channels: number;
  readonly sampleRate: number;
  readonly bits: number;
}

/** The length of data that a writer to a pipe did not know, as ffmpeg writes it. */
const UNKNOWN_LENGTH = 0xffff_ffff;

const CHUNK_HEADER_BYTES = 8;
/** RIFF, length, WAVE. */
const RIFF_HEADER_BYTES = 12;
/** The length of the file counts the bytes after it. */
const RIFF_LENGTH_END = 8;
const FORMAT_BYTES_MIN = 16;
const FORMAT_BYTES_EXTENSIBLE = 40;
/** The offset of the code of an extensible format. */
const SUBFORMAT_OFFSET = 24;

const PCM = 1;
const FLOAT = 3;
const EXTENSIBLE = 0xfffe;
/** Other codes, for error messages. */
const CODECS: Readonly<Record<number, string>> = {
  2: "Microsoft ADPCM",
  6: "A-law",
  7: "µ-law",
  17: "IMA ADPCM",
  49: "GSM 6.10",
  85: "MP3",
};

/** Converts a sample to -1 up to 1; negative integers reach one step further than positive ones. */
type Reader = (view: DataView, at: number) => number;

const READERS: Readonly<Record<string, Reader>> = {
  [`${PCM}/8`]: (view, at) => (view.getUint8(at) - 128) / 2 ** 7,
  [`${PCM}/16`]: (view, at) => view.getInt16(at, true) / 2 ** 15,
  [`${PCM}/24`]: (view, at) =>
    (view.getInt8(at + 2) * 2 ** 16 + view.getUint16(at, true)) / 2 ** 23,
  [`${PCM}/32`]: (view, at) => view.getInt32(at, true) / 2 ** 31,
  [`${FLOAT}/32`]: (view, at) => view.getFloat32(at, true),
  [`${FLOAT}/64`]: (view, at) => view.getFloat64(at, true),
};

/**
 * Decodes the samples of a WAV file to float32 of shape [frames, channels]: integers from -1 to below 1,
 * floats unchanged.
 *
 * @param bytesMax Maximum bytes of the decoded samples.
 * @throws {LeatError} `data_loss` for a damaged or truncated file, `invalid_argument` for other
 * files, `unimplemented` for compressed samples, integers of other than 8, 16, 24 or 32 bits, and
 * floats of other than 32 or 64 bits; `resource_exhausted` beyond `bytesMax`.
 */
export function decodeWav(bytes: Uint8Array, bytesMax = WAV_BYTES_MAX): DecodedAudio {
  requireWav(bytes);
  let format: WavFormat | undefined;
  for (const { name, chunk } of chunksOf(bytes)) {
    if (name === "fmt ") format = readFormat(chunk, bytes);
    if (name !== "data") continue;
    if (format === undefined) throw damaged(bytes, "its data comes before its format");
    return readSamples(chunk, format, bytes, bytesMax);
  }
  throw damaged(bytes, "it has no data chunk");
}

function requireWav(bytes: Uint8Array): void {
  if (bytes.length === 0) throw new LeatError("data_loss", "Not a WAV file: there are no bytes.");
  const text = (start: number, end: number) => String.fromCharCode(...bytes.subarray(start, end));
  const isRiff = "RIFF".startsWith(text(0, 4)) && "WAVE".startsWith(text(8, 12));
  if (!isRiff) {
    throw new LeatError(
      "invalid_argument",
      `Not a WAV file: ${bytes.length} bytes that begin with ${bytes.subarray(0, 4).toHex()}.`,
    );
  }
  if (bytes.length < RIFF_HEADER_BYTES) throw damaged(bytes, "it is truncated within its header");
}

/**
 * The chunks in order. Data of unknown length last to the end of the file. Any other chunk that claims
 * more bytes than there are is damage. The length of the whole file is read only to tell data of unknown
 * length from empty data.
 */
function* chunksOf(bytes: Uint8Array): Generator<{ name: string; chunk: DataView }> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = RIFF_HEADER_BYTES; at + CHUNK_HEADER_BYTES <= bytes.length;) {
    const name = String.fromCharCode(...bytes.subarray(at, at + 4));
    const start = at + CHUNK_HEADER_BYTES;
    const claimed = view.getUint32(at + 4, true);
    // A writer that was stopped leaves the lengths of the data and the file as it began them.
    const isUnfinished = claimed === 0 && RIFF_LENGTH_END + view.getUint32(4, true) <= start;
    const isUnknown = name === "data" && (claimed === UNKNOWN_LENGTH || isUnfinished);
    const length = isUnknown ? bytes.length - start : claimed;
    if (start + length > bytes.length) {
      throw damaged(
        bytes,
        `its ${JSON.stringify(name)} chunk at byte ${at} claims ${length} bytes, ${
          bytes.length - start
        } are left`,
      );
    }
    yield { name, chunk: new DataView(bytes.buffer, bytes.byteOffset + start, length) };
    at = start + length + length % 2; // chunks begin at even offsets
  }
}

function readFormat(chunk: DataView, bytes: Uint8Array): WavFormat {
  if (chunk.byteLength < FORMAT_BYTES_MIN) {
    throw damaged(bytes, `its format chunk has ${chunk.byteLength} bytes`);
  }
  const code = chunk.getUint16(0, true);
  const isExtensible = code === EXTENSIBLE && chunk.byteLength >= FORMAT_BYTES_EXTENSIBLE;
  const format = {
    code: isExtensible ? chunk.getUint16(SUBFORMAT_OFFSET, true) : code,
    channels: chunk.getUint16(2, true),
    sampleRate: chunk.getUint32(4, true),
    bits: chunk.getUint16(14, true),
  };
  if (format.channels === 0 || format.sampleRate === 0) {
    throw damaged(bytes, `it claims ${format.channels} channels at ${format.sampleRate} Hz`);
  }
  return format;
}

function readSamples(
  chunk: DataView,
  { code, channels, sampleRate, bits }: WavFormat,
  bytes: Uint8Array,
  bytesMax: number,
): DecodedAudio {
  const read = READERS[`${code}/${bits}`];
  if (read === undefined) {
    const codec = code === PCM ? "PCM" : code === FLOAT ? "float" : CODECS[code] ?? `codec ${code}`;
    throw new LeatError(
      "unimplemented",
      `A WAV file of ${bits}-bit ${codec} is not decoded; convert it to 16-bit PCM.`,
    );
  }
  const sampleBytes = bits / 8;
  if (chunk.byteLength % (sampleBytes * channels) !== 0) {
    throw damaged(
      bytes,
      `its ${chunk.byteLength} bytes of data are no whole frames of ${
        sampleBytes * channels
      } bytes`,
    );
  }
  const decodedBytes = chunk.byteLength / sampleBytes * Float32Array.BYTES_PER_ELEMENT;
  if (decodedBytes > bytesMax) {
    throw new LeatError(
      "resource_exhausted",
      `The samples of a WAV file take ${decodedBytes} bytes as float32, more than ${bytesMax} ` +
        "(WAV_BYTES_MAX); divide it into shorter files.",
    );
  }
  const samples = new Float32Array(chunk.byteLength / sampleBytes);
  for (let i = 0; i < samples.length; i++) samples[i] = read(chunk, i * sampleBytes);
  const shape = [samples.length / channels, channels];
  return { samples: new Tensor("float32", shape, samples), sampleRate };
}

function damaged(bytes: Uint8Array, why: string): LeatError {
  return new LeatError("data_loss", `Damaged WAV file of ${bytes.length} bytes: ${why}.`);
}
