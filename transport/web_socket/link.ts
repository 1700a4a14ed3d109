/** A link over a WebSocket after the handshake. */
import { LeatError } from "../../core/error.ts";
import { type Envelope, pairOf } from "../../actors/runtime/envelope.ts";
import type { Identity } from "../../actors/runtime/identity.ts";
import { closedThere, type Link, type NodeId } from "../../actors/runtime/link.ts";
import type { Timer, World } from "../../actors/runtime/world.ts";
import { encodeMessage, FramePool } from "../codec.ts";
import { writeBye } from "../hello.ts";
import { encodingError, LINK_LIMITS, type LinkLimits } from "../limits.ts";
import { EnvelopeReader } from "./envelope_reader.ts";
import {
  type Fragment,
  FRAME,
  malformed,
  readAck,
  readBatch,
  readFragment,
  readFragmentHead,
  writeAck,
} from "./frames.ts";
import { HeldFrames } from "./held_frames.ts";
import { Liveness } from "./liveness.ts";
import { Outbox, WINDOW_BYTES } from "./outbox.ts";
import type { Peer } from "./peer.ts";
import { Reassembly } from "./reassembly.ts";
import {
  IncomingSlots,
  type NearListener,
  OutgoingSlots,
  readSlotFile,
  writeSlotFile,
} from "./slots.ts";
import type { Socket } from "./socket.ts";
import { hasBound, type Unread } from "./unread.ts";
import { WaitingAnswers } from "./waiting_answers.ts";

/** From this many consumed bytes on, they are acknowledged at once. */
const ACK_BYTES = WINDOW_BYTES / 8;
/** Fewer consumed bytes are acknowledged after this delay, in ms. */
const ACK_DELAY_MS = 10;
/** Memory of released elements, for later ones on any link of this thread. */
const received = new FramePool();

const PING = new Uint8Array([FRAME.PING]);
const PONG = new Uint8Array([FRAME.PONG]);

/** Options of links; omitted fields have defaults. */
export interface WebSocketLinkOptions {
  readonly limits?: Partial<LinkLimits>;
  /** Interval of liveness checks; the link closes after four without a byte. Default 5,000 ms. */
  readonly heartbeatMs?: number;
}

interface OpenBatch {
  readonly messages: readonly Uint8Array[];
  /** Messages that were opened. */
  opened: number;
  readonly bytes: number;
}

export class WebSocketLink implements Link {
  readonly remote: NodeId;
  readonly identity: Identity;
  readonly closed: Promise<LeatError>;
  readonly released: Promise<void>;
  readonly #settle: (error: LeatError) => void;
  readonly #world: World;
  readonly #socket: Socket;
  readonly #reader: EnvelopeReader;
  readonly #messageBytesMax: number;
  readonly #outbox: Outbox;
  readonly #reassembly: Reassembly;
  readonly #near: NearListener | undefined;
  #outgoingSlots: OutgoingSlots | undefined;
  readonly #incomingSlots: IncomingSlots | undefined;
  #receive: ((envelope: Envelope) => void) | undefined;
  /** Frames that came before `start`, or while the link is clogged, and the frames behind them. */
  readonly #held: HeldFrames;
  /** A frame of several messages, of which some are not opened yet. */
  #batch: OpenBatch | undefined;
  readonly #unread: Unread | undefined;
  readonly #waiting: WaitingAnswers | undefined;
  /** The bytes in the outbox that are counted in `#unread`. */
  #unreadBytes = 0;
  #bytesConsumed = 0;
  #bytesAcknowledged = 0;
  #ackTimer: Timer | undefined;
  readonly #liveness: Liveness;
  #isClosed = false;

  /** @param socket is open, and owned by the link from now on. */
  constructor(world: World, socket: Socket, peer: Peer, options: WebSocketLinkOptions = {}) {
    const limits = { ...LINK_LIMITS, ...options.limits };
    this.#world = world;
    this.#socket = socket;
    this.remote = peer.remote;
    this.identity = peer.identity;
    this.#reader = new EnvelopeReader(peer, received);
    this.#held = new HeldFrames(peer.held);
    this.#messageBytesMax = Math.min(limits.messageBytesMax, peer.messageBytesMax);
    const { identity, incompleteBytesOf } = peer;
    const bytesOfAll = incompleteBytesOf && hasBound(identity)
      ? () => incompleteBytesOf(identity)
      : undefined;
    this.#reassembly = new Reassembly(limits.messageBytesMax, received, bytesOfAll);
    this.#outbox = new Outbox(
      limits,
      (bytes, head) => socket.send(bytes, head),
      (flush) => world.macrotask(flush),
    );
    const closed = Promise.withResolvers<LeatError>();
    this.closed = closed.promise;
    this.#settle = closed.resolve;
    this.released = socket.released;
    socket.listen({
      progress: () => this.#liveness.noteBytes(),
      memory: (byteLength) => received.take(byteLength),
      message: (data) => this.#arrived(data),
      place: (head, byteLength) => this.#place(head, byteLength),
      placed: (head, rest) => this.#placed(head, rest),
      broken: (error) => this.close(this.#broken(error)),
      closed: (why, isByPeer) =>
        this.#end(this.#reader.byeIn(this.#held.last) ?? this.#lost(why, isByPeer)),
    });
    const silent = (silentMs: number) => {
      const error = `${this.remote.node} has said nothing for ${silentMs} ms`;
      this.close(new LeatError("unavailable", error));
    };
    const ping = () => socket.sendNewest(PING);
    this.#liveness = new Liveness(world, { ping, silent }, options.heartbeatMs);
    this.#near = peer.near;
    this.#unread = peer.unread;
    if (peer.unread !== undefined) {
      this.#waiting = new WaitingAnswers(peer.unread, () => this.#resume());
    }
    if (peer.slots === undefined) return;
    const { name, file } = peer.slots;
    this.#incomingSlots = new IncomingSlots(file, limits.messageBytesMax, received);
    this.#tell(writeSlotFile(name));
  }

  /** Bytes of messages that have begun to arrive. */
  get incompleteBytes(): number {
    return this.#reassembly.bytes;
  }

  get bufferedBytes(): number {
    return this.#outbox.bytes + (this.#waiting?.bytes ?? 0);
  }

  start(receive: (envelope: Envelope) => void): void {
    this.#receive = receive;
    if (this.#held.length > 0) this.#world.macrotask(() => this.#openHeld());
  }

  send(envelope: Envelope): boolean {
    if (this.#isClosed) return false;
    const pair = () => pairOf(envelope);
    const bytesMax = this.#messageBytesMax;
    try {
      if (this.#waiting?.keep(envelope, pair, this.#outbox.bytes, bytesMax) === true) return true;
      this.#put(encodeMessage(envelope, { bytesMax, inPlaceBytesMax: bytesMax }), pair);
      return true;
    } catch (error) {
      throw encodingError(error, envelope, bytesMax);
    }
  }

  ready(): Promise<void> {
    return this.#outbox.ready();
  }

  close(reason = new LeatError("cancelled", "The link was closed")): void {
    if (this.#isClosed) return;
    this.#socket.send(writeBye(reason));
    this.#end(reason);
  }

  #put(message: Uint8Array, pair: () => string): void {
    this.#outbox.add(this.#outgoingSlots?.put(message) ?? message, pair);
    this.#countUnread();
  }

  /** Sends waiting answers and opens held frames, as far as the bounds allow now. */
  #resume(): void {
    const inPlaceBytesMax = this.#messageBytesMax;
    try {
      for (;;) {
        const next = this.#waiting?.next(this.#outbox.bytes);
        if (next === undefined) break;
        // `undefined`: its payload was released, because the peer got it over another link.
        const message = next.message.encode({ inPlaceBytesMax });
        if (message !== undefined) this.#put(message, () => next.pair);
      }
    } catch (error) {
      // Caught, because an acknowledgement on another link may have called this, and that link is fine.
      this.close(LeatError.from(error, "internal"));
    }
    this.#openHeld();
  }

  #countUnread(): void {
    const change = this.#outbox.bytes - this.#unreadBytes;
    this.#unreadBytes += change;
    if (change !== 0) this.#unread?.change(change);
  }

  #arrived(data: Uint8Array | string): void {
    this.#handle(() => {
      if (typeof data === "string") throw malformed("text");
      this.#frame(data);
    });
  }

  /** Lets the socket read a fragment's bytes into the buffer of the whole message. */
  #place(head: Uint8Array, byteLength: number): Uint8Array | undefined {
    if (head[0] !== FRAME.FRAGMENT || !this.#isOpening) return undefined;
    const dataBytes = byteLength - head.length;
    return this.#handle(() => this.#reassembly.place(readFragmentHead(head), dataBytes));
  }

  #placed(head: Uint8Array, data: Uint8Array): void {
    this.#handle(() => {
      this.#addFragment({ ...readFragmentHead(head), data });
      this.#countConsumed(head.length + data.length);
    });
  }

  /** Handles what has arrived. An error ends the link. */
  #handle<T>(handler: () => T): T | undefined {
    if (this.#isClosed) return undefined;
    this.#liveness.noteFrame();
    try {
      return handler();
    } catch (error) {
      this.close(this.#broken(error));
      return undefined;
    }
  }

  /** Whether frames are opened as they arrive. */
  get #isOpening(): boolean {
    return this.#receive !== undefined && this.#held.length === 0 && this.#batch === undefined &&
      !this.#isClogged;
  }

  /** Whether the peer leaves too many bytes unread. Its requests then wait. */
  get #isClogged(): boolean {
    return this.#waiting?.isEmpty === false ||
      this.#unread?.isClogged(this.#outbox.bytes) === true;
  }

  #frame(frame: Uint8Array): void {
    switch (frame[0]) {
      case FRAME.ACK:
        this.#outbox.acknowledge(readAck(frame));
        this.#countUnread();
        return this.#openHeld();
      case FRAME.PING:
        return this.#socket.sendNewest(PONG);
      case FRAME.PONG:
        return;
      default:
        if (this.#isOpening) this.#open(frame);
        else this.#held.push(frame);
    }
  }

  #openHeld(): void {
    if (this.#receive === undefined) return;
    try {
      if (this.#batch !== undefined) this.#openBatch(this.#batch);
      while (
        this.#held.length > 0 && this.#batch === undefined && !this.#isClosed && !this.#isClogged
      ) this.#open(this.#held.shift()!);
    } catch (error) {
      this.close(this.#broken(error));
    }
  }

  #open(frame: Uint8Array): void {
    switch (frame[0]) {
      case FRAME.MESSAGE:
        this.#deliver(frame);
        break;
      case FRAME.BATCH: {
        const messages: Uint8Array[] = [];
        readBatch(frame, (message) => messages.push(message));
        this.#batch = { messages, opened: 0, bytes: frame.length };
        return this.#openBatch(this.#batch);
      }
      case FRAME.FRAGMENT:
        this.#addFragment(readFragment(frame));
        break;
      default:
        this.#openOfSlots(frame);
    }
    this.#countConsumed(frame.length);
  }

  /** Opens the messages of a frame, until too much waits for the peer. */
  #openBatch(batch: OpenBatch): void {
    const { messages, bytes } = batch;
    while (batch.opened < messages.length) {
      if (this.#isClosed) return;
      if (this.#isClogged) return this.#held.keepOpen(bytes);
      const message = messages[batch.opened++]!;
      if (message[0] === FRAME.MESSAGE) this.#deliver(message);
      else this.#openOfSlots(message);
    }
    // Delivering a message may have called this again, and that call may have finished the batch.
    if (this.#batch !== batch) return;
    this.#batch = undefined;
    this.#held.keepOpen(0);
    this.#countConsumed(bytes);
  }

  /** Handles a frame about slots, which only processes of one host send. */
  #openOfSlots(frame: Uint8Array): void {
    if (this.#isClosed) return;
    if (frame[0] === FRAME.SLOT_FILE && this.#near !== undefined) {
      if (this.#outgoingSlots !== undefined) throw malformed("a second slot file");
      const file = this.#near.open(readSlotFile(frame));
      if (file !== undefined) this.#outgoingSlots = new OutgoingSlots(file);
    } else if (frame[0] === FRAME.SLOT_FREED && this.#outgoingSlots !== undefined) {
      this.#outgoingSlots.freed(frame);
    } else if (frame[0] === FRAME.IN_SLOT && this.#incomingSlots !== undefined) {
      const { message, freed } = this.#incomingSlots.take(frame);
      this.#tell(freed);
      this.#deliver(message, true);
    } else throw malformed(`an unexpected first byte, ${frame[0]}`);
  }

  /** Sends a frame that is no envelope, in order with the envelopes. */
  #tell(frame: Uint8Array): void {
    this.#outbox.add(frame, () => "");
    this.#countUnread();
  }

  #addFragment(fragment: Fragment): void {
    const message = this.#reassembly.add(fragment);
    if (message !== undefined) this.#deliver(message);
  }

  #deliver(bytes: Uint8Array, cameInSlot = false): void {
    if (this.#isClosed) return;
    const envelope = this.#reader.read(bytes, cameInSlot);
    if (envelope instanceof LeatError) this.#end(envelope);
    else this.#receive!(envelope);
  }

  #countConsumed(bytes: number): void {
    this.#bytesConsumed += bytes;
    if (this.#bytesConsumed - this.#bytesAcknowledged >= ACK_BYTES) this.#acknowledge();
    else if (!this.#isClosed) {
      this.#ackTimer ??= this.#world.timer(ACK_DELAY_MS, () => this.#acknowledge());
    }
  }

  #acknowledge(): void {
    this.#ackTimer?.cancel();
    this.#ackTimer = undefined;
    if (this.#isClosed || this.#bytesAcknowledged === this.#bytesConsumed) return;
    this.#bytesAcknowledged = this.#bytesConsumed;
    this.#socket.sendNewest(writeAck(this.#bytesConsumed));
  }

  #end(reason: LeatError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#liveness.cancel();
    this.#ackTimer?.cancel();
    this.#outbox.close();
    this.#batch = undefined;
    this.#waiting?.clear();
    this.#reassembly.clear();
    this.#outgoingSlots?.close();
    this.#incomingSlots?.close();
    this.#held.clear();
    this.#countUnread();
    this.#socket.close();
    this.#settle(reason);
  }

  #lost(why: string, isByPeer: boolean): LeatError {
    const text = `The connection to ${this.remote.node} broke: ${why}`;
    const error = new LeatError("unavailable", text);
    return isByPeer ? closedThere(error) : error;
  }

  #broken(error: unknown): LeatError {
    const { code, message } = LeatError.from(error, "internal");
    const why = `${this.remote.node} sent a message that breaks the protocol: ${message}`;
    return new LeatError(code, why, { cause: error });
  }
}
