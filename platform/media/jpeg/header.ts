/** Reads the markers of a JPEG (ITU-T T.81, annex B), and explains decoding failures. */

import { LeatError } from "../../../core/error.ts";
import { beginsWith } from "../image_format.ts";

/** The frame header: size in pixels, and 1 component for grey, 3 for colour, 4 for CMYK. */
export interface JpegHeader {
  readonly width: number;
  readonly height: number;
  readonly components: number;
  /** The marker of the frame header, which says how the image is coded. */
  readonly process: number;
  /** Bits of a sample. */
  readonly precision: number;
  /** Pixels of a block of coded units (iMCU) from left to right. The library crops at its multiples. */
  readonly blockWidth: number;
  /** Whether an Adobe program wrote it. In its CMYK, 255 is no ink. */
  readonly isAdobe: boolean;
  /**
   * Whether several scans make up the image: it is progressive, or its components are not
   * interleaved. Decoding then holds the coefficients of the whole image in memory.
   */
  readonly hasManyScans: boolean;
}

const MARKER = 0xff;
const START_OF_IMAGE = 0xd8;
const END_OF_IMAGE = 0xd9;
const START_OF_SCAN = 0xda;
/** APP14, in which Adobe programs write their name. */
const ADOBE_SEGMENT = 0xee;
const ADOBE = [...new TextEncoder().encode("Adobe")];
/** 0xc0 to 0xcf start a frame, except these: Huffman tables, an extension, conditioning. */
const NO_FRAMES: ReadonlySet<number> = new Set([0xc4, 0xc8, 0xcc]);
const PROGRESSIVE_FRAMES: ReadonlySet<number> = new Set([0xc2, 0xc6, 0xca, 0xce]);
/** Pixels of a coded unit, and bytes of a component in the frame header. */
const [UNIT_WIDTH, COMPONENT_BYTES] = [8, 3];

/** Whether bytes begin like a JPEG, as far as there are any. */
export function isJpeg(bytes: Uint8Array): boolean {
  return beginsWith(bytes, [0xff, START_OF_IMAGE]);
}

/**
 * Finds the frame header, and reads on to the first scan.
 * @param bytes begin like a JPEG.
 * @throws {LeatError} `data_loss` for a JPEG that ends or breaks off before its frame header.
 */
export function readJpegHeader(bytes: Uint8Array): JpegHeader {
  let at = 2, isAdobe = false;
  while (at + 4 <= bytes.length) {
    if (bytes[at] !== 0xff) throw broken(bytes, `there is no marker at byte ${at}`);
    const marker = bytes[at + 1]!;
    if (marker === 0xff) {
      at++; // fill byte
      continue;
    }
    if (marker === START_OF_SCAN || marker === END_OF_IMAGE) {
      throw broken(bytes, `it has no frame header before byte ${at}`);
    }
    const length = bytes[at + 2]! << 8 | bytes[at + 3]!;
    if (length < 2) throw broken(bytes, `the segment at byte ${at} claims ${length} bytes`);
    if (marker >= 0xc0 && marker <= 0xcf && !NO_FRAMES.has(marker)) {
      return { ...readFrame(bytes, at), isAdobe };
    }
    if (marker === ADOBE_SEGMENT && beginsWith(bytes, ADOBE, at + 4)) isAdobe = true;
    at += 2 + length;
  }
  throw broken(bytes, "it is truncated before its frame header");
}

/** Counts the scans, up to `max` + 1. Compressed data contains no start-of-scan marker. */
export function countScans(bytes: Uint8Array, max: number): number {
  let count = 0;
  for (
    let at = bytes.indexOf(MARKER);
    at >= 0 && count <= max;
    at = bytes.indexOf(MARKER, at + 1)
  ) {
    if (bytes[at + 1] === START_OF_SCAN) count++;
  }
  return count;
}

/** The error for a JPEG whose header is valid, but which the library refused. */
export function damagedJpeg(bytes: Uint8Array, header: JpegHeader, cause: unknown): LeatError {
  const why = hasEnd(bytes)
    ? "its compressed data is damaged"
    : "it is truncated: its end-of-image marker is missing";
  return new LeatError(
    "data_loss",
    `Damaged JPEG of ${header.width} × ${header.height} pixels, ${bytes.length} bytes: ${why}.`,
    { cause },
  );
}

function readFrame(bytes: Uint8Array, at: number): Omit<JpegHeader, "isAdobe"> {
  if (at + 10 > bytes.length) throw broken(bytes, "it is truncated within its frame header");
  const height = bytes[at + 5]! << 8 | bytes[at + 6]!;
  const width = bytes[at + 7]! << 8 | bytes[at + 8]!;
  const components = bytes[at + 9]!;
  const process = bytes[at + 1]!, precision = bytes[at + 4]!;
  if (width === 0 || height === 0) {
    throw broken(bytes, `its frame header claims ${width} × ${height} pixels`);
  }
  const hasManyScans = PROGRESSIVE_FRAMES.has(process) || !isInterleaved(bytes, at, components);
  const blockWidth = UNIT_WIDTH * largestFactor(bytes, at, components);
  return { width, height, components, process, precision, blockWidth, hasManyScans };
}

/** The largest horizontal sampling factor of the components. */
function largestFactor(bytes: Uint8Array, at: number, components: number): number {
  let largest = 1;
  for (let i = 0; i < components; i++) {
    largest = Math.max(largest, (bytes[at + 11 + COMPONENT_BYTES * i] ?? 0) >> 4);
  }
  return largest;
}

/**
 * Whether the first scan after the frame header at `at` has all components. Also false if the library
 * might find another scan first, because it skips bytes between segments.
 */
function isInterleaved(bytes: Uint8Array, at: number, components: number): boolean {
  while (at + 5 <= bytes.length) {
    if (bytes[at] !== 0xff) return false;
    const marker = bytes[at + 1]!;
    if (marker === 0xff) {
      at++; // fill byte
      continue;
    }
    if (marker === START_OF_SCAN) return bytes[at + 4]! >= components;
    const length = bytes[at + 2]! << 8 | bytes[at + 3]!;
    if (length < 2 || isBare(marker)) return false;
    at += 2 + length;
  }
  return false;
}

/** Whether a marker has no segment: stuffing, TEM, restarts, start and end of the image. */
function isBare(marker: number): boolean {
  return marker <= 0x01 || (marker >= 0xd0 && marker <= END_OF_IMAGE);
}

/** Whether the end-of-image marker is last. Some writers pad the end with zeros. */
function hasEnd(bytes: Uint8Array): boolean {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end >= 2 && bytes[end - 2] === 0xff && bytes[end - 1] === END_OF_IMAGE;
}

function broken(bytes: Uint8Array, why: string): LeatError {
  return new LeatError("data_loss", `Damaged JPEG of ${bytes.length} bytes: ${why}.`);
}
