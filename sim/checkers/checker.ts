/**
 * Checkers watch a run and say what was promised and not kept. They know nothing of how the code
 * under test works.
 *
 * @module
 */

/** Violations that are listed; the rest are counted. */
const VIOLATIONS_MAX = 10;

/** Where a checker puts down what it has found. */
export interface Findings {
  add(what: string): void;
}

/** A list of broken promises, of all checkers of a run. */
export class Violations {
  readonly #found: string[] = [];
  readonly #checkers = new Set<string>();
  #count = 0;

  /** Where the checker of that name puts down what it finds. */
  by(checker: string): Findings {
    return { add: (what) => this.#add(checker, what) };
  }

  get count(): number {
    return this.#count;
  }

  /** Those that have found something, in the order in which they did. */
  get checkers(): readonly string[] {
    return [...this.#checkers];
  }

  /** The first few, each with its checker's name before it, and how many more there are. */
  list(): string[] {
    const more = this.#count - this.#found.length;
    return more === 0 ? [...this.#found] : [...this.#found, `… and ${more} more`];
  }

  #add(checker: string, what: string): void {
    this.#checkers.add(checker);
    if (++this.#count <= VIOLATIONS_MAX) this.#found.push(`${checker}: ${what}`);
  }
}
