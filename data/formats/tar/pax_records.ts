/**
 * Parses the records of a pax header (POSIX, "pax Interchange Format"). The tar library passes over
 * a record that is damaged, or whose value has a newline.
 */
import { utf8Text } from "../../../core/bytes.ts";

/** The lengths of records within the largest header that is read have at most seven digits. */
const LENGTH = /^\d{1,7}$/;
const NEWLINE = 0x0a;
const SPACE = 0x20;
const EQUALS = 0x3d;

/**
 * Parses records of the form `LENGTH KEY=VALUE\n`, where `LENGTH` is the number of bytes of the whole
 * record. A value may contain newlines. Of several records with one key, the last one counts. Zeros
 * after the last record are padding.
 *
 * @returns The values by key; undefined if a record is damaged.
 */
export function paxRecords(bytes: Uint8Array): ReadonlyMap<string, string> | undefined {
  const records = new Map<string, string>();
  const textOf = (from: number, to: number) => headerText(bytes.subarray(from, to));
  for (let start = 0; start < bytes.length && bytes[start] !== 0;) {
    const space = bytes.indexOf(SPACE, start);
    const length = space < 0 ? "" : textOf(start, space);
    if (!LENGTH.test(length)) return undefined;
    const end = start + Number(length);
    const key = space + 1, equals = bytes.indexOf(EQUALS, key);
    if (equals <= key || equals >= end || bytes[end - 1] !== NEWLINE) return undefined;
    records.set(textOf(key, equals), textOf(equals + 1, end - 1));
    start = end;
  }
  return records;
}

/**
 * The text of a header: UTF-8, or else Latin-1. No archive says which other encoding it has. Latin-1
 * has a character of its own for each byte, so names of one encoding stay different.
 */
export function headerText(bytes: Uint8Array): string {
  return utf8Text(bytes) ?? new TextDecoder("latin1").decode(bytes);
}
