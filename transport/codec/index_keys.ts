/** Keys of decoded objects that V8 treats as array indices. */

/** Whether a key may be an index. V8 stores those in an array with a slot for each smaller index. */
export function isIndexLike(key: string): boolean {
  const code = key.charCodeAt(0);
  return code >= 0x30 && code <= 0x39;
}

/** The largest key that counts as an index. */
const LAST_INDEX = 2 ** 32 - 2;

/**
 * Makes V8 store the index keys of an object in a hash table. In an array, `{"999": 0}`, which has
 * six bytes in a message, would take twelve thousand.
 */
export function makeSparse(object: Record<string, unknown>): void {
  object[LAST_INDEX] = 0;
  delete object[LAST_INDEX];
}
