/** Reads the source of a pipeline on this host, for workers that run the operators above it (p'1). */
import type { Feed } from "../../actors/client/feed.ts";
import { LeatError } from "../../core/error.ts";
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import type { GivenElements } from "../../data/operators/sources/given.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import { bytesOfElement } from "../figures.ts";

/** An answer ends with the element that reaches one of these limits. */
const BYTES_MAX = 1 << 20;
const ELEMENTS_MAX = 256;
/** At first, the limit of the splits that are open while nobody waits for them. */
const OPEN_MAX = 64;

export type OpenSource = (split: number) => DatasetIterator<unknown>;

interface OpenSplit {
  readonly iterator: DatasetIterator<unknown>;
  /** How many elements were read. */
  read: number;
  /** How many requests wait for an answer. Closing the iterator would cut their answers short. */
  pending: number;
  /** Requests of one split are answered in order. */
  last: Promise<unknown>;
}

/** Answers the requests of tasks for elements of the source. */
export class SourceReader {
  readonly #open: OpenSource;
  /** By split, the least recently requested first. */
  readonly #splits = new Map<number, OpenSplit>();
  /** The splits that were closed to make room, and were not requested since. */
  readonly #evicted = new Set<number>();
  /** Grows when a task continues an evicted split: more splits are in use than it allows. */
  #openMax = OPEN_MAX;
  #disposed = false;

  constructor(open: OpenSource) {
    this.#open = open;
  }

  readonly read: Feed["readSource"] = (split, from) => {
    if (this.#disposed) return Promise.reject(new LeatError("cancelled", "The reader has ended"));
    const opened = this.#splits.get(split) ?? this.#openAt(split, from);
    this.#splits.delete(split);
    this.#splits.set(split, opened);
    opened.pending++;
    const answer = opened.last.then(() => this.#readFrom(split, opened, from));
    opened.last = answer.catch(() => {
      // After a failure of reading the iterator would give an end that is not the split's.
      if (this.#splits.get(split) === opened) this.#close(split);
    }).then(() => opened.pending--);
    return answer;
  };

  dispose(): void {
    this.#disposed = true;
    for (const split of [...this.#splits.keys()]) this.#close(split);
  }

  #openAt(split: number, from: number): OpenSplit {
    if (this.#evicted.delete(split) && from > 0) this.#openMax++;
    const iterator = this.#open(split);
    this.#makeRoom();
    return { iterator, read: 0, pending: 0, last: Promise.resolve() };
  }

  /** Closes idle splits until one more may be open. Exceeds the limit if too few are idle. */
  #makeRoom(): void {
    for (const [split, { pending }] of this.#splits) {
      if (this.#splits.size < this.#openMax) return;
      if (pending > 0) continue;
      this.#close(split);
      this.#evicted.add(split);
    }
  }

  #close(split: number): void {
    this.#splits.get(split)?.iterator.return();
    this.#splits.delete(split);
  }

  async #readFrom(
    split: number,
    opened: OpenSplit,
    from: number,
  ): Promise<{ readonly given: Payload }> {
    // Closed since: what its iterator gives is not the split's end. Rejects if this is disposed.
    if (this.#splits.get(split) !== opened) return await this.read(split, from);
    // The task's runner died, and another runner starts the split again.
    if (from < opened.read) {
      this.#close(split);
      return await this.read(split, from);
    }
    while (opened.read < from) if (await next(opened) === undefined) break;
    const items: GivenElements["items"][number][] = [];
    for (let bytes = 0; bytes < BYTES_MAX && items.length < ELEMENTS_MAX;) {
      const item = await next(opened);
      if (item === undefined) {
        if (this.#splits.get(split) !== opened) return await this.read(split, from);
        this.#close(split);
        return encoded({ items, isLast: true });
      }
      items.push(item);
      bytes += "element" in item ? bytesOfElement(item.element) : 0;
    }
    return encoded({ items, isLast: false });
  }
}

async function next(opened: OpenSplit): Promise<GivenElements["items"][number] | undefined> {
  try {
    const { done, value } = await opened.iterator.next();
    if (done === true) return undefined;
    opened.read++;
    return { element: value };
  } catch (error) {
    if (error instanceof ReadingFailure) throw error.reason;
    opened.read++;
    return { error: LeatError.from(error).toWire() };
  }
}

function encoded(given: GivenElements): { readonly given: Payload } {
  const frame = encodeMessage(given, { roomForEnvelope: true });
  return { given: new Payload(frame, { isAlone: true }) };
}
