/** Writes valid and invalid tar archives directly from the format's description. */

import { concat } from "./reading.ts";

const BLOCK_BYTES = 512;

export interface TarEntry {
  readonly name: string | Uint8Array;
  readonly contents?: string | Uint8Array;
  /** The folder of its name, in its own header field. */
  readonly prefix?: string | Uint8Array;
  /** Default: a file. */
  readonly type?: string;
  /** The size in the header; beyond 8 GiB it is written in binary. */
  readonly claims?: bigint;
}

const text = (value: string) => new TextEncoder().encode(value);

/** Two blocks of zeros. */
export const TAR_END = new Uint8Array(2 * BLOCK_BYTES);

export function tarHeader(
  { name, contents = "", prefix = "", type = "0", claims }: TarEntry,
): Uint8Array<ArrayBuffer> {
  const size = claims ?? BigInt(bytesOf(contents).length);
  const block = new Uint8Array(BLOCK_BYTES);
  block.set(bytesOf(name), 0);
  block.set(text("0000644\0"), 100);
  block.set(text("0001750\0"), 108);
  block.set(text("0001750\0"), 116);
  if (size < 8n ** 11n) block.set(text(`${size.toString(8).padStart(11, "0")}\0`), 124);
  else {
    block[124] = 0x80;
    new DataView(block.buffer).setBigUint64(128, size);
  }
  block.set(text("14371573407\0"), 136);
  block.set(text(type), 156);
  block.set(text("ustar\x0000"), 257);
  block.set(bytesOf(prefix), 345);
  block.set(text("        "), 148);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.set(text(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
  return block;
}

/** A member: header, contents and padding. */
export function tarMember(entry: TarEntry): Uint8Array<ArrayBuffer> {
  const contents = bytesOf(entry.contents ?? "");
  const padding = new Uint8Array((BLOCK_BYTES - contents.length % BLOCK_BYTES) % BLOCK_BYTES);
  return concat(tarHeader(entry), contents, padding);
}

/** An archive with its end. */
export function tar(...entries: readonly TarEntry[]): Uint8Array<ArrayBuffer> {
  return concat(...entries.map(tarMember), TAR_END);
}

/** A pax header with records about the next member. */
export function paxHeader(records: Record<string, string>, type = "x"): TarEntry {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`;
    let length = text(rest).length + 1;
    while (`${length}`.length + text(rest).length !== length) length++;
    return `${length}${rest}`;
  });
  return { name: "PaxHeaders/x", type, contents: lines.join("") };
}

/** A GNU header with the name of the next member. */
export function longName(name: string, type = "L"): TarEntry {
  return { name: "././@LongLink", type, contents: `${name}\0` };
}

function bytesOf(contents: string | Uint8Array): Uint8Array {
  return typeof contents === "string" ? text(contents) : contents;
}
