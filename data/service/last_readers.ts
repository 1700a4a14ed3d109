/**
 * As whom services knew those that read their streams: so that they know who comes for the next epoch.
 *
 * @module
 */
import { hex64, type Host } from "../host.ts";

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
  /** That of the iteration, or of the one before it that was restored last. */
  #restoring: Restoring | undefined;

  /** @param dataset Those of the dataset that is iterated over. */
  constructor(dataset?: LastReaders) {
    this.#dataset = dataset;
    this.#restoring = dataset === undefined ? undefined : dataset.#restoring;
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
    this.#restoring = { opened: new Set(), name: undefined };
  }

  /** The dataset goes on after an iteration that was restored: it may have been at its end, and open nothing. */
  goesOnAfter(iteration: LastReaders): void {
    this.#readers.clear();
    this.#restoring = iteration.#restoring;
  }

  /**
   * To be called when the stream of that name is opened: whether it is the first time since the iteration,
   * or one before it, was restored. Then the one that was saved may still be read by another process.
   */
  opensRestored(name: string): boolean {
    const opened = this.#restoring?.opened;
    if (opened === undefined || opened.has(name)) return false;
    opened.add(name);
    return true;
  }

  /**
   * Names what all streams are opened by that are opened for one restored iteration: some may be before a
   * service has said as whom the first is read.
   */
  restoration(host: Host): string {
    if (this.#restoring === undefined) return hex64(host);
    return this.#restoring.name ??= hex64(host);
  }
}

/** What is to be known of a restoring by all that goes on after it. */
interface Restoring {
  /** The streams that were opened since. */
  readonly opened: Set<string>;
  name: string | undefined;
}
