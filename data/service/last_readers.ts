/**
 * The identities under which services knew the readers of their streams, so that they recognise the
 * reader of the next epoch.
 */
import { hex64, type Host } from "../host.ts";

/** The reader of a stream in one epoch, as its service knows it. */
export interface KnownReader {
  /** The service's own name: in another service the number means a different reader. */
  readonly clusterId: string;
  /** Increases with each new reader. */
  readonly clientId: number;
}

/**
 * The identity under which an iteration last read each stream, or else an iteration of its dataset.
 * So a continued iterator is recognised by its own identity, and the dataset's next one by the
 * previous one's.
 */
export class LastReaders {
  readonly #readers = new Map<string, KnownReader>();
  readonly #dataset: LastReaders | undefined;
  #isRestored = false;
  /** The restore of this iteration, or of the last restored one before it. */
  #restoring: Restoring | undefined;

  /** @param dataset The last readers of the dataset that is iterated over. */
  constructor(dataset?: LastReaders) {
    this.#dataset = dataset;
    this.#restoring = dataset === undefined ? undefined : dataset.#restoring;
  }

  of(stream: string): KnownReader | undefined {
    const known = this.#readers.get(stream);
    return known ?? (this.#isRestored ? undefined : this.#dataset?.of(stream));
  }

  /** Answers of services may arrive out of order. */
  note(stream: string, reader: KnownReader): void {
    const known = this.#readers.get(stream);
    const isOlder = known?.clusterId === reader.clusterId && known.clientId > reader.clientId;
    if (!isOlder) this.#readers.set(stream, reader);
    this.#dataset?.note(stream, reader);
  }

  /** It continues under the identity of the saved iterator: no service has seen its own. */
  restored(): void {
    this.#readers.clear();
    this.#isRestored = true;
    this.#restoring = { opened: new Set(), name: undefined };
  }

  /** The dataset continues after a restored iteration, which may have been at its end and open no stream. */
  goesOnAfter(iteration: LastReaders): void {
    this.#readers.clear();
    this.#restoring = iteration.#restoring;
  }

  /**
   * To be called when the stream of that name is opened. Returns whether this is the first time
   * since the iteration, or an earlier one, was restored: then another process may still read as
   * the saved one.
   */
  opensRestored(name: string): boolean {
    const opened = this.#restoring?.opened;
    if (opened === undefined || opened.has(name)) return false;
    opened.add(name);
    return true;
  }

  /**
   * An id for all streams opened for one restored iteration. Some may open before a service has
   * assigned an identity to the first.
   */
  restoration(host: Host): string {
    if (this.#restoring === undefined) return hex64(host);
    return this.#restoring.name ??= hex64(host);
  }
}

/** What everything that continues after a restore needs to know of it. */
interface Restoring {
  readonly opened: Set<string>;
  name: string | undefined;
}
