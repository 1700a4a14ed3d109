/** Keys of decoded objects that V8 takes for positions in an array. */

/** Whether a key may be a number, which V8 keeps in an array of all numbers up to it. */
export function isIndexLike(key: string): boolean {
  const code = key.charCodeAt(0);
  return code >= 0x30 && code <= 0x39;
}

/** The largest key that counts as a number. */
const LAST_INDEX = 2 ** 32 - 2;

/**
 * Makes V8 keep the numbers among the keys of an object in a table. In an array the six bytes of
 * `{"999": 0}` would take twelve thousand.
 */
export function makeSparse(object: Record<string, unknown>): void {
  object[LAST_INDEX] = 0;
  delete object[LAST_INDEX];
}
