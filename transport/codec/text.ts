/** The texts of messages. */
import { LeatError } from "../../core/error.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @throws {LeatError} `invalid_argument` for bytes that are not UTF-8. */
export function textOf(bytes: Uint8Array, at: number): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw new LeatError("invalid_argument", `text at byte ${at} of a message is not UTF-8`, {
      cause,
    });
  }
}

/** Names of fields recur: a short one is looked up by its bytes instead of created again. */
const INTERNED_LENGTH_MAX = 32;
const INTERN_SLOTS = 1024;
const internTable = new Array<string>(INTERN_SLOTS).fill("");

/** The string of `length` bytes from `at` on; `undefined` if it is long, or not all ASCII. */
export function shortText(bytes: Uint8Array, at: number, length: number): string | undefined {
  if (length > INTERNED_LENGTH_MAX) return undefined;
  let hash = length;
  let all = 0;
  for (let i = at; i < at + length; i++) {
    const byte = bytes[i]!;
    all |= byte;
    hash = Math.imul(hash, 31) + byte | 0;
  }
  if (all >= 0x80) return undefined;
  const slot = (hash ^ hash >>> 15) & (INTERN_SLOTS - 1);
  const known = internTable[slot]!;
  if (known.length === length && sameAscii(known, bytes, at)) return known;
  const codes: number[] = [];
  for (let i = at; i < at + length; i++) codes.push(bytes[i]!);
  return internTable[slot] = String.fromCharCode(...codes);
}

function sameAscii(text: string, bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) !== bytes[at + i]) return false;
  }
  return true;
}
