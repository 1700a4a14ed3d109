/** Parses the records of a pax header (POSIX, "pax Interchange Format"). */

/** The longest digits of a length: those of the largest header that is read. */
const LENGTH_DIGITS_MAX = 8;
const SPACE = 0x20;
const NEWLINE = 0x0a;
const ZERO = 0x30;
const NINE = 0x39;

/**
 * Parses records of the form `LENGTH KEY=VALUE\n`, where `LENGTH` is the number of bytes of the whole
 * record. A value may contain newlines. Of several records with one key, the last one counts. Zeros
 * after the last record are padding.
 *
 * @returns The values by key; undefined if a record is damaged.
 */
export function paxRecords(bytes: Uint8Array): ReadonlyMap<string, string> | undefined {
  const records = new Map<string, string>();
  const decoder = new TextDecoder();
  for (let start = 0; start < bytes.length && bytes[start] !== 0;) {
    const { length, keyAt } = lengthAt(bytes, start);
    const end = start + length;
    const equals = bytes.indexOf(0x3d, keyAt);
    if (equals <= keyAt || equals >= end || bytes[end - 1] !== NEWLINE) return undefined;
    const key = decoder.decode(bytes.subarray(keyAt, equals));
    records.set(key, decoder.decode(bytes.subarray(equals + 1, end - 1)));
    start = end;
  }
  return records;
}

/** Reads a record's length, which is 0 if there is none, and returns where its key begins. */
function lengthAt(bytes: Uint8Array, start: number): { length: number; keyAt: number } {
  let length = 0;
  for (let at = start; at < start + LENGTH_DIGITS_MAX; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === SPACE) return { length, keyAt: at + 1 };
    if (byte < ZERO || byte > NINE) break;
    length = 10 * length + byte - ZERO;
  }
  return { length: 0, keyAt: start };
}
