/**
 * What was used lately, by its name, without a note of every use.
 *
 * @module
 */

/**
 * A map of the `count` names that were used last, at least, and of twice as many at most: beyond them
 * all go that have not been used since as many others came.
 */
export class Recent<T> {
  readonly #count: number;
  readonly #forgotten: (values: Iterable<T>) => void;
  #used = new Map<string, T>();
  /** Those that were not used since `used` was begun. */
  #before = new Map<string, T>();

  /** @param forgotten Told what is forgotten. */
  constructor(count: number, forgotten: (values: Iterable<T>) => void = () => {}) {
    this.#count = count;
    this.#forgotten = forgotten;
  }

  /** What was set under the name, which is a use of it. */
  get(name: string): T | undefined {
    const used = this.#used.get(name);
    if (used !== undefined) return used;
    const before = this.#before.get(name);
    if (before !== undefined) {
      this.#before.delete(name);
      this.set(name, before);
    }
    return before;
  }

  set(name: string, value: T): void {
    if (this.#used.size >= this.#count && !this.#used.has(name)) {
      this.#forgotten(this.#before.values());
      this.#before = this.#used;
      this.#used = new Map();
    }
    this.#used.set(name, value);
  }
}
