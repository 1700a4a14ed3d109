/**
 * Checks what a reader of a folder is given that is still being written: one of the streams that are
 * saved there, each element in its place, and its end only when all of it is there.
 *
 * @module
 */
import type { Findings } from "./checker.ts";

/** How far a reader is: which streams it may be at, as numbers, and at which place of theirs. */
export interface LoadingPlace {
  readonly position: number;
  readonly streams: readonly number[];
}

/** See the module. */
export class LoadingChecker {
  readonly #streams: readonly (readonly string[])[];
  readonly #isWhole: () => boolean;
  readonly #findings: Findings;
  #delivered = 0;

  /**
   * @param streams What may be saved there, each element by a text that tells it from others.
   * @param isWhole Whether there is a saved dataset now.
   */
  constructor(
    streams: readonly (readonly string[])[],
    isWhole: () => boolean,
    findings: Findings,
  ) {
    this.#streams = streams;
    this.#isWhole = isWhole;
    this.#findings = findings;
  }

  /** Elements that were given in all. */
  get delivered(): number {
    return this.#delivered;
  }

  /** Where all begin. */
  get start(): LoadingPlace {
    return { position: 0, streams: this.#streams.map((_, number) => number) };
  }

  /** A reader at a place has taken an element; answers where it is then. */
  took({ position, streams }: LoadingPlace, element: string, reader: string): LoadingPlace {
    this.#delivered++;
    const left = streams.filter((number) => this.#streams[number]![position] === element);
    if (left.length === 0) {
      const wanted = streams.map((number) => this.#streams[number]![position] ?? "the end");
      this.#findings.add(`${reader} took ${element} at ${position}, where ${wanted} is`);
    }
    return { position: position + 1, streams: left };
  }

  /** A reader has come to the end. */
  ended({ position, streams }: LoadingPlace, reader: string): void {
    const what = `${reader} came to the end after ${position} elements`;
    if (!this.#isWhole()) this.#findings.add(`${what}, though the save is not finished`);
    const lengths = streams.map((number) => this.#streams[number]!.length);
    if (!lengths.includes(position)) this.#findings.add(`${what}, of ${lengths}`);
  }
}
