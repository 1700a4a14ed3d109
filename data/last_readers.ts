/**
 * As whom services knew those that read their streams: so that they know who comes for the next epoch.
 *
 * @module
 */
import { hex64, type Host } from "./host.ts";

/** Who reads a stream in one epoch, as its service knows it. */
export interface ReaderId {
  /** The service's own name: to another one the number means somebody else. */
  readonly clusterId: string;
  /** Who comes later has a greater one. */
  readonly clientId: number;
}

/**
 * As whom an iteration has read each stream last, or, where it has not, one of its dataset. So an iterator
 * that goes on is known by what it was itself, and the next one of the dataset by what the one before was.
 */
export class LastReaders {
  readonly #readers = new Map<string, ReaderId>();
  readonly #dataset: LastReaders | undefined;
  #isRestored = false;
  #restoration: string | undefined;

  /** @param dataset Those of the dataset that is iterated over. */
  constructor(dataset?: LastReaders) {
    this.#dataset = dataset;
  }

  of(stream: string): ReaderId | undefined {
    const known = this.#readers.get(stream);
    return known ?? (this.#isRestored ? undefined : this.#dataset?.of(stream));
  }

  /** Answers of services may overtake one another. */
  note(stream: string, reader: ReaderId): void {
    const known = this.#readers.get(stream);
    const isOlder = known?.clusterId === reader.clusterId && known.clientId > reader.clientId;
    if (!isOlder) this.#readers.set(stream, reader);
    this.#dataset?.note(stream, reader);
  }

  /** It goes on as the one that was saved, whoever it was itself: services do not know it yet. */
  restored(): void {
    this.#readers.clear();
    this.#isRestored = true;
  }

  /**
   * Names what all streams are opened by that are opened for one restored iteration: some may be before a
   * service has said as whom the first is read.
   */
  restoration(host: Host): string {
    return this.#restoration ??= hex64(host);
  }
}
