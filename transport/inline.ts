/**
 * The carrier between two nodes on one thread: it copies bodies, hands over payloads, and makes
 * every delivery a macrotask of the receiver, so that nothing runs within the sender's message
 * handling.
 */
import { LeatError } from "../core/error.ts";
import { Fifo } from "../core/fifo.ts";
import { copyBody } from "../actors/runtime/body.ts";
import type { Envelope } from "../actors/runtime/envelope.ts";
import { SAME_PROCESS } from "../actors/runtime/identity.ts";
import type { Link, NodeId } from "../actors/runtime/link.ts";
import type { World } from "../actors/runtime/world.ts";
import { envelopeBytes, LINK_LIMITS, type LinkLimits, messageTooLarge } from "./limits.ts";
import { WaterMarks } from "./water_marks.ts";

/**
 * Two ends of a link between two nodes of this thread.
 * @returns The end for node A (its `remote` is B), and the end for node B.
 */
export function inlinePair(
  worldA: World,
  idA: NodeId,
  worldB: World,
  idB: NodeId,
  limits: Partial<LinkLimits> = {},
): [Link, Link] {
  const all = { ...LINK_LIMITS, ...limits };
  const toB = new InlineLink(worldA, idB, all);
  const toA = new InlineLink(worldB, idA, all);
  toB.join(toA);
  toA.join(toB);
  return [toB, toA];
}

/** A message that waits for the receiver. */
interface Arrival {
  readonly envelope: Envelope;
  readonly bytes: number;
}

class InlineLink implements Link {
  readonly remote: NodeId;
  readonly identity = SAME_PROCESS;
  readonly closed: Promise<LeatError>;
  readonly #settle: (error: LeatError) => void;
  readonly #world: World;
  readonly #limits: LinkLimits;
  readonly #buffered: WaterMarks;
  readonly #arrivals = new Fifo<Arrival>();
  #peer!: InlineLink;
  #receive: ((envelope: Envelope) => void) | undefined;
  #delivering = false;
  #isClosed = false;

  constructor(world: World, remote: NodeId, limits: LinkLimits) {
    this.#world = world;
    this.remote = remote;
    this.#limits = limits;
    this.#buffered = new WaterMarks(limits);
    const closed = Promise.withResolvers<LeatError>();
    this.closed = closed.promise;
    this.#settle = closed.resolve;
  }

  get bufferedBytes(): number {
    return this.#buffered.bytes;
  }

  join(peer: InlineLink): void {
    this.#peer = peer;
  }

  start(receive: (envelope: Envelope) => void): void {
    this.#receive = receive;
    this.#wake();
  }

  send(envelope: Envelope, senderKeepsBody = false): boolean {
    if (this.#isClosed) return false;
    const bytes = envelopeBytes(envelope);
    const { messageBytesMax } = this.#limits;
    if (bytes > messageBytesMax) throw messageTooLarge(envelope, bytes, messageBytesMax);
    const copy = "body" in envelope
      ? { ...envelope, body: copyBody(envelope.body, senderKeepsBody) }
      : envelope;
    this.#buffered.add(bytes);
    this.#peer.#arrivals.push({ envelope: copy, bytes });
    this.#peer.#wake();
    return true;
  }

  ready(): Promise<void> {
    return this.#buffered.ready();
  }

  close(reason = new LeatError("cancelled", "The link was closed")): void {
    if (this.#isClosed) return;
    this.#end(reason);
    const peer = this.#peer;
    peer.#world.macrotask(() => peer.#end(reason));
  }

  #wake(): void {
    if (this.#delivering || this.#receive === undefined || this.#arrivals.length === 0) return;
    this.#delivering = true;
    this.#world.macrotask(() => this.#deliver());
  }

  #deliver(): void {
    this.#delivering = false;
    for (let left = this.#arrivals.length; left > 0; left--) {
      const arrival = this.#arrivals.shift();
      if (arrival === undefined || this.#isClosed) return;
      this.#peer.#release(arrival.bytes);
      this.#receive!(arrival.envelope);
    }
    this.#wake();
  }

  #release(bytes: number): void {
    if (!this.#isClosed) this.#buffered.remove(bytes);
  }

  #end(reason: LeatError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    while (this.#arrivals.shift() !== undefined);
    this.#buffered.release();
    this.#settle(reason);
  }
}
