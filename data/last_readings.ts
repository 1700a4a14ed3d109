/**
 * What services have called those that read their streams: so that they know who comes for the next epoch.
 *
 * @module
 */

/** One reader of a stream in one epoch, as the service calls it. */
export interface Reading {
  /** The service's own name, as ids of another one mean something else. */
  readonly clusterId: string;
  readonly clientId: number;
}

/**
 * Of each stream, as whom an iteration has read it last; where it has not, as whom one of its dataset has.
 * So an iterator that goes on reading is known by what it was itself, and the next one of the dataset by
 * what the one before it was.
 */
export class LastReadings {
  readonly #readings = new Map<string, Reading>();
  readonly #dataset: LastReadings | undefined;

  /** @param dataset Those of the dataset that is iterated over. */
  constructor(dataset?: LastReadings) {
    this.#dataset = dataset;
  }

  of(stream: string): Reading | undefined {
    return this.#readings.get(stream) ?? this.#dataset?.of(stream);
  }

  note(stream: string, reading: Reading): void {
    this.#readings.set(stream, reading);
    this.#dataset?.note(stream, reading);
  }

  /** Whoever comes next is nobody whom services know. */
  clear(): void {
    this.#readings.clear();
  }
}
