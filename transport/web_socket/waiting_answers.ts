/** Messages of one link that wait until its peer, or others of its identity, have read more. */
import { Fifo } from "../../core/fifo.ts";
import { type PreparedMessage, prepareMessage } from "../codec.ts";
import type { Unread } from "./unread.ts";

/** The memory of a waiting message besides its envelope. */
const MESSAGE_BYTES = 256;

interface Waiting {
  readonly message: PreparedMessage;
  readonly pair: string;
  readonly bytes: number;
}

export class WaitingAnswers {
  readonly #unread: Unread;
  readonly #resume: () => void;
  readonly #later = new Fifo<Waiting>();
  #next: Waiting | undefined;
  /** The number of waiting messages of each pair. */
  readonly #pairs = new Map<string, number>();

  #bytes = 0;

  /** @param resume is called when some messages may be sent. */
  constructor(unread: Unread, resume: () => void) {
    this.#unread = unread;
    this.#resume = resume;
  }

  /** The size of the messages, once they are encoded. */
  get bytes(): number {
    return this.#bytes;
  }

  get isEmpty(): boolean {
    return this.#next === undefined;
  }

  /**
   * Keeps a message that may not be sent yet, or that must not overtake another of its pair.
   * @param linkBytes How many bytes wait for the peer.
   * @returns `false` if the message may be sent now.
   * @throws LeatError as `prepareMessage` and `Unread.wait` do.
   */
  keep(value: unknown, pairOf: () => string, linkBytes: number, bytesMax: number): boolean {
    if (this.isEmpty && this.#unread.isFree(linkBytes)) return false;
    const pair = pairOf();
    const isBehind = this.#pairs.has(pair);
    if (!isBehind && this.#unread.isFree(linkBytes)) return false;
    const message = prepareMessage(value, { bytesMax });
    if (!isBehind && this.#unread.mayTake(linkBytes, message.byteLength)) return false;
    const bytes = message.envelopeBytes + MESSAGE_BYTES;
    this.#unread.wait(bytes);
    this.#bytes += message.byteLength;
    const waiting = { message, pair, bytes };
    this.#pairs.set(pair, (this.#pairs.get(pair) ?? 0) + 1);
    if (this.#next === undefined) {
      this.#next = waiting;
      this.#unread.remember(this.#resume);
    } else this.#later.push(waiting);
    return true;
  }

  /** Takes the next message, if it may be sent; `linkBytes` wait for the peer. */
  next(linkBytes: number): Waiting | undefined {
    const next = this.#next;
    if (next === undefined || !this.#unread.mayTake(linkBytes, next.message.byteLength)) return;
    this.#drop(next);
    return next;
  }

  /** Drops all messages: the link is closed. */
  clear(): void {
    while (this.#next !== undefined) this.#drop(this.#next);
  }

  #drop({ message, pair, bytes }: Waiting): void {
    this.#bytes -= message.byteLength;
    this.#unread.waited(bytes);
    const left = this.#pairs.get(pair)! - 1;
    if (left === 0) this.#pairs.delete(pair);
    else this.#pairs.set(pair, left);
    this.#next = this.#later.shift();
    if (this.#next === undefined) this.#unread.forget(this.#resume);
  }
}
