/**
 * Checkers watch a run and say what was promised and not kept. They know nothing of how the code
 * under test works.
 *
 * @module
 */

/** Violations that a checker lists; the rest are counted. */
const VIOLATIONS_MAX = 10;

/** A list of broken promises. */
export class Violations {
  readonly #found: string[] = [];
  #count = 0;

  add(what: string): void {
    if (++this.#count <= VIOLATIONS_MAX) this.#found.push(what);
  }

  get count(): number {
    return this.#count;
  }

  /** The first few, and how many more there are. */
  list(): string[] {
    const more = this.#count - this.#found.length;
    return more === 0 ? [...this.#found] : [...this.#found, `… and ${more} more`];
  }
}
