/**
 * The identities under which services know the readers of their streams. With the identity of the last
 * epoch, a service recognises the reader of the next one.
 */
import { hex64, type Host } from "../host.ts";

/** The reader of a stream in one epoch, as its service knows it. */
export interface KnownReader {
  /** The name of the service: `clientId` is valid only there. */
  readonly clusterId: string;
  /** Increases with each new reader. */
  readonly clientId: number;
}

/**
 * For each stream, the identity under which this iteration last read it or, if it has not, the last
 * iteration of the same dataset. Services recognise by it a continued iterator, and the next one.
 */
export class LastReaders {
  readonly #readers = new Map<string, KnownReader>();
  readonly #dataset: LastReaders | undefined;
  #isRestored = false;
  /** The restore of this iteration, or of the last restored iteration before it. */
  #restoring: Restoring | undefined;

  /** @param dataset The last readers of the iteration's dataset. */
  constructor(dataset?: LastReaders) {
    this.#dataset = dataset;
    this.#restoring = dataset === undefined ? undefined : dataset.#restoring;
  }

  of(stream: string): KnownReader | undefined {
    const known = this.#readers.get(stream);
    return known ?? (this.#isRestored ? undefined : this.#dataset?.of(stream));
  }

  /** Ignores an older reader of the same service: answers may arrive out of order. */
  note(stream: string, reader: KnownReader): void {
    const known = this.#readers.get(stream);
    const isOlder = known?.clusterId === reader.clusterId && known.clientId > reader.clientId;
    if (!isOlder) this.#readers.set(stream, reader);
    this.#dataset?.note(stream, reader);
  }

  /** Call when this iteration was restored: it continues under the saved iterator's identities. */
  restored(): void {
    this.#readers.clear();
    this.#isRestored = true;
    this.#restoring = { joined: new Set(), name: undefined };
  }

  /**
   * Call for the dataset whose `iteration` was restored. A restored iteration may open no stream.
   */
  resumeAfter(iteration: LastReaders): void {
    this.#readers.clear();
    this.#restoring = iteration.#restoring;
  }

  /**
   * Call when the stream `name` is opened. Unless its service already knows that this iteration, or
   * an earlier one, was restored, returns the function to call once the service has answered. Until
   * then another process may still read under the identity of the saved iterator.
   */
  opensRestored(name: string): (() => void) | undefined {
    const joined = this.#restoring?.joined;
    if (joined === undefined || joined.has(name)) return undefined;
    // A stream may be closed before its service has heard of it: then the next one tells.
    return () => joined.add(name);
  }

  /**
   * An id for all streams that one restored iteration opens. They cannot use an identity of the
   * service: some open before the service has assigned the first one.
   */
  restoration(host: Host): string {
    if (this.#restoring === undefined) return hex64(host);
    return this.#restoring.name ??= hex64(host);
  }
}

/** A restore. All iterations that continue from it share this object. */
interface Restoring {
  /** The streams whose service has admitted a reader since the restore. */
  readonly joined: Set<string>;
  /** See `restoration()`. */
  name: string | undefined;
}
