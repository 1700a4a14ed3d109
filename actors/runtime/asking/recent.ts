/** A map of recently used names that need not record every use. */

/** A map of at least the `count` names used last, and at most twice as many. */
export class Recent<T> {
  readonly #count: number;
  readonly #forgotten: (values: Iterable<T>) => void;
  #used = new Map<string, T>();
  /** Entries not used since `used` was begun. */
  #before = new Map<string, T>();

  /** @param forgotten Receives the dropped values. */
  constructor(count: number, forgotten: (values: Iterable<T>) => void = () => {}) {
    this.#count = count;
    this.#forgotten = forgotten;
  }

  /** The value under the name; this is a use of it. */
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
