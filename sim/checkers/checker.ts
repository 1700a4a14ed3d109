/**
 * Checkers watch a run and report broken promises. They do not depend on how the code under test works.
 */

/** Maximum number of violations listed. The others are only counted. */
const VIOLATIONS_MAX = 10;

/** Collects the findings of one checker. */
export interface Findings {
  add(what: string): void;
}

/** The broken promises that all checkers of a run found. */
export class Violations {
  readonly #found: string[] = [];
  readonly #checkers = new Set<string>();
  #count = 0;

  /** Returns the collection of a checker's findings. */
  by(checker: string): Findings {
    return { add: (what) => this.#add(checker, what) };
  }

  get count(): number {
    return this.#count;
  }

  /** The checkers with findings, in the order of their first finding. */
  get checkers(): readonly string[] {
    return [...this.#checkers];
  }

  /** Returns the first violations, each with its checker's name, and the number of the others. */
  list(): string[] {
    const more = this.#count - this.#found.length;
    return more === 0 ? [...this.#found] : [...this.#found, `… and ${more} more`];
  }

  #add(checker: string, what: string): void {
    this.#checkers.add(checker);
    if (++this.#count <= VIOLATIONS_MAX) this.#found.push(`${checker}: ${what}`);
  }
}
