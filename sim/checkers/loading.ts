/**
 * Checks that a reader of a growing folder receives one of the streams saved there, in order, and its
 * end only after the save is complete.
 */
import type { Findings } from "./checker.ts";

/** The position of a reader, and the indices of the streams that it may be reading. */
export interface LoadingPosition {
  readonly position: number;
  readonly streams: readonly number[];
}

/** Watches the readers of one folder. */
export class LoadingChecker {
  readonly #streams: readonly (readonly string[])[];
  readonly #isWhole: () => boolean;
  readonly #findings: Findings;
  #delivered = 0;

  /**
   * @param streams The streams that may be saved there. Each element is a text that identifies it.
   * @param isWhole Whether the saved dataset is complete now.
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

  get delivered(): number {
    return this.#delivered;
  }

  /** The initial position. */
  get start(): LoadingPosition {
    return { position: 0, streams: this.#streams.map((_, number) => number) };
  }

  /** Records that a reader at a position received an element. Returns its next position. */
  took({ position, streams }: LoadingPosition, element: string, reader: string): LoadingPosition {
    this.#delivered++;
    const matching = streams.filter((number) => this.#streams[number]![position] === element);
    if (matching.length === 0) {
      const wanted = streams.map((number) => this.#streams[number]![position] ?? "the end");
      this.#findings.add(`${reader} took ${element} at ${position}, where ${wanted} is`);
    }
    return { position: position + 1, streams: matching };
  }

  /** Records that a reader reached the end. */
  ended({ position, streams }: LoadingPosition, reader: string): void {
    const what = `${reader} came to the end after ${position} elements`;
    if (!this.#isWhole()) this.#findings.add(`${what}, though the save is not finished`);
    const lengths = streams.map((number) => this.#streams[number]!.length);
    if (!lengths.includes(position)) this.#findings.add(`${what}, of ${lengths}`);
  }
}
