/** A link over a WebSocket after the handshake. */
import { LeatError } from "../../core/error.ts";
import { type Envelope, pairOf } from "../../actors/runtime/envelope.ts";
import type { Identity } from "../../actors/runtime/identity.ts";
import { closedThere, type Link, type NodeId } from "../../actors/runtime/link.ts";
import type { Timer, World } from "../../actors/runtime/world.ts";
import { decodeMessage, encodeMessage, FramePool } from "../codec.ts";
import { asEnvelope } from "../envelopes.ts";
import { byeReason, writeBye } from "../hello.ts";
import { encodingError, LINK_LIMITS, type LinkLimits } from "../limits.ts";
import { ENVELOPE_BYTES_MAX } from "./envelope_limits.ts";
import {
  type Fragment,
  FRAME,
  FRAME_BYTES_MAX,
  malformed,
  readAck,
  readBatch,
  readFragment,
  readFragmentHead,
  writeAck,
} from "./frames.ts";
import { HeldFrames } from "./held_frames.ts";
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
import { hasBound, isClogged, type Unread } from "./unread.ts";

/** How often a link checks whether it has received anything, and pings if not, in ms. */
const HEARTBEAT_MS = 5_000;
/**
 * Checks in a row without a byte until the other side counts as dead: not time, so that a busy
 * thread does not blame its peers.
 */
const SILENT_BEATS_MAX = 4;
/** Consumed bytes are acknowledged at once from this many on, */
const ACK_BYTES = WINDOW_BYTES / 8;
/** and otherwise after this delay, in ms. */
const ACK_DELAY_MS = 10;
/** Memory of received elements that were released, for later ones on any link of this thread. */
const received = new FramePool();

const PING = new Uint8Array([FRAME.PING]);
const PONG = new Uint8Array([FRAME.PONG]);

/** Options of links; omitted fields have defaults. */
export interface WebSocketLinkOptions {
  readonly limits?: Partial<LinkLimits>;
  /** Interval of liveness checks; the link closes after four without a byte. Default 5,000 ms. */
  readonly heartbeatMs?: number;
}

export class WebSocketLink implements Link {
  readonly remote: NodeId;
  readonly identity: Identity;
  readonly closed: Promise<LeatError>;
  readonly released: Promise<void>;
  readonly #settle: (error: LeatError) => void;
  readonly #world: World;
  readonly #socket: Socket;
  /** The name that the other end calls itself. */
  readonly #ownName: string;
  /** The prefix of its actors' incarnations. */
  readonly #lifePrefix: string;
  readonly #messageBytesMax: number;
  readonly #heartbeatMs: number;
  readonly #outbox: Outbox;
  readonly #reassembly: Reassembly;
  readonly #near: NearListener | undefined;
  #outgoingSlots: OutgoingSlots | undefined;
  readonly #incomingSlots: IncomingSlots | undefined;
  #receive: ((envelope: Envelope) => void) | undefined;
  /** Frames that came before `start` or while too much waits for the peer, and those after them. */
  readonly #held = new HeldFrames();
  readonly #unread: Unread | undefined;
  #bytesTaken = 0;
  #bytesAcknowledged = 0;
  #ackTimer: Timer | undefined;
  #beatTimer: Timer;
  #heard = true;
  #silentBeats = 0;
  #isClosed = false;

  /** @param socket is open, and owned by the link from now on. */
  constructor(world: World, socket: Socket, peer: Peer, options: WebSocketLinkOptions = {}) {
    const limits = { ...LINK_LIMITS, ...options.limits };
    this.#world = world;
    this.#socket = socket;
    this.remote = peer.remote;
    this.identity = peer.identity;
    this.#ownName = peer.ownName;
    this.#lifePrefix = `${peer.remote.incarnation}-`;
    this.#messageBytesMax = Math.min(limits.messageBytesMax, peer.messageBytesMax);
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS;
    const { identity, incompleteBytesOf: of } = peer;
    const bytesOfAll = of && hasBound(identity) ? () => of(identity) : undefined;
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
      memory: (byteLength) => received.take(byteLength),
      message: (data) => this.#arrived(data),
      place: (head, byteLength) => this.#place(head, byteLength),
      placed: (head, rest) => this.#placed(head, rest),
      closed: (why, isByPeer) => this.#end(this.#heldBye() ?? this.#lost(why, isByPeer)),
    });
    this.#beatTimer = this.#beatLater();
    this.#near = peer.near;
    this.#unread = peer.unread;
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
    return this.#outbox.bytes;
  }

  start(receive: (envelope: Envelope) => void): void {
    this.#receive = receive;
    if (this.#held.length > 0) this.#world.macrotask(() => this.#openHeld());
  }

  send(envelope: Envelope): boolean {
    if (this.#isClosed) return false;
    const message = this.#encode(envelope);
    this.#outbox.add(this.#outgoingSlots?.put(message) ?? message, () => pairOf(envelope));
    return true;
  }

  ready(): Promise<void> {
    return this.#outbox.ready();
  }

  close(reason = new LeatError("cancelled", "The link was closed")): void {
    if (this.#isClosed) return;
    this.#socket.send(writeBye(reason));
    this.#end(reason);
  }

  #encode(envelope: Envelope): Uint8Array {
    const bytesMax = this.#messageBytesMax;
    try {
      return encodeMessage(envelope, { bytesMax, inPlaceBytesMax: bytesMax });
    } catch (error) {
      throw encodingError(error, envelope, bytesMax);
    }
  }

  #arrived(data: Uint8Array | string): void {
    this.#handle(() => {
      if (typeof data === "string") throw malformed("text");
      if (data.length > FRAME_BYTES_MAX) {
        throw malformed(`${data.length} bytes, more than ${FRAME_BYTES_MAX}`);
      }
      this.#frame(data);
    });
  }

  /** The bytes of a fragment are read to where its message is put together. */
  #place(head: Uint8Array, byteLength: number): Uint8Array | undefined {
    if (head[0] !== FRAME.FRAGMENT || !this.#isOpening) return undefined;
    const dataBytes = byteLength - head.length;
    return this.#handle(() => this.#reassembly.place(readFragmentHead(head), dataBytes));
  }

  #placed(head: Uint8Array, data: Uint8Array): void {
    this.#handle(() => {
      this.#addFragment({ ...readFragmentHead(head), data });
      this.#taken(head.length + data.length);
    });
  }

  /** Handles what has arrived. An error ends the link. */
  #handle<T>(handler: () => T): T | undefined {
    if (this.#isClosed) return undefined;
    this.#heard = true;
    try {
      return handler();
    } catch (error) {
      this.close(this.#broken(error));
      return undefined;
    }
  }

  /** Whether frames are opened as they arrive. */
  get #isOpening(): boolean {
    return this.#receive !== undefined && this.#held.length === 0 && !this.#isClogged;
  }

  /** Whether too much waits for a peer that does not read. */
  get #isClogged(): boolean {
    return isClogged(this.#outbox.bytes, this.identity, this.#unread);
  }

  #frame(frame: Uint8Array): void {
    switch (frame[0]) {
      case FRAME.ACK:
        this.#outbox.taken(readAck(frame));
        return this.#openHeld();
      case FRAME.PING:
        // A peer that sends pings without reading gets no answers.
        if (this.#socket.bufferedAmount < WINDOW_BYTES) this.#socket.send(PONG);
        return;
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
      while (this.#held.length > 0 && !this.#isClosed && !this.#isClogged) {
        this.#open(this.#held.shift()!);
      }
    } catch (error) {
      this.close(this.#broken(error));
    }
  }

  #open(frame: Uint8Array): void {
    switch (frame[0]) {
      case FRAME.MESSAGE:
        this.#deliver(frame);
        break;
      case FRAME.BATCH:
        readBatch(frame, (message) => {
          if (message[0] === FRAME.MESSAGE) this.#deliver(message);
          else this.#openOfSlots(message);
        });
        break;
      case FRAME.FRAGMENT:
        this.#addFragment(readFragment(frame));
        break;
      default:
        this.#openOfSlots(frame);
    }
    this.#taken(frame.length);
  }

  /** What processes of one host say about their slots. */
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

  /** Sends what is no envelope, in order with those. */
  #tell(frame: Uint8Array): void {
    this.#outbox.add(frame, () => "");
  }

  #addFragment(fragment: Fragment): void {
    const message = this.#reassembly.add(fragment);
    if (message !== undefined) this.#deliver(message);
  }

  #deliver(bytes: Uint8Array, cameInSlot = false): void {
    if (this.#isClosed) return;
    this.#checkEnvelope(bytes);
    const message = decodeMessage(bytes, { pool: received, cameInSlot });
    const reason = byeReason(message);
    if (reason !== undefined) return this.#end(reason);
    const envelope = asEnvelope(message);
    this.#receive!(this.#named(envelope));
  }

  /** @throws LeatError `resource_exhausted` for a long envelope, before it takes more memory. */
  #checkEnvelope(bytes: Uint8Array): void {
    const { role, name } = this.identity;
    const bytesMax = ENVELOPE_BYTES_MAX[role];
    if (bytes.length <= bytesMax) return;
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
    if (length <= bytesMax) return;
    throw new LeatError(
      "resource_exhausted",
      `An envelope of ${length} bytes from "${name}", over the limit of ${bytesMax} for a ${role}`,
    );
  }

  /** Names the source as this node dialled it, so that answers go over this link. */
  #named(envelope: Envelope): Envelope {
    const { source } = envelope;
    const { node } = this.remote;
    if (!source.incarnation.startsWith(this.#lifePrefix)) {
      throw malformed(
        `a message of an actor of another life, "${source.incarnation.slice(0, 80)}"`,
      );
    }
    if (source.node === node) return envelope;
    if (source.node === this.#ownName) return { ...envelope, source: { ...source, node } };
    throw malformed(`a message in the name of another node, "${source.node.slice(0, 80)}"`);
  }

  #taken(bytes: number): void {
    this.#bytesTaken += bytes;
    if (this.#bytesTaken - this.#bytesAcknowledged >= ACK_BYTES) this.#acknowledge();
    else if (!this.#isClosed) {
      this.#ackTimer ??= this.#world.timer(ACK_DELAY_MS, () => this.#acknowledge());
    }
  }

  #acknowledge(): void {
    this.#ackTimer?.cancel();
    this.#ackTimer = undefined;
    if (this.#isClosed || this.#bytesAcknowledged === this.#bytesTaken) return;
    this.#bytesAcknowledged = this.#bytesTaken;
    this.#socket.send(writeAck(this.#bytesTaken));
  }

  #beatLater(): Timer {
    return this.#world.timer(this.#heartbeatMs, () => this.#beat());
  }

  #beat(): void {
    this.#silentBeats = this.#heard ? 0 : this.#silentBeats + 1;
    if (this.#silentBeats >= SILENT_BEATS_MAX) {
      const silentMs = this.#silentBeats * this.#heartbeatMs;
      const error = `${this.remote.node} has said nothing for ${silentMs} ms`;
      this.close(new LeatError("unavailable", error));
      return;
    }
    if (!this.#heard) this.#socket.send(PING);
    this.#heard = false;
    this.#beatTimer = this.#beatLater();
  }

  #end(reason: LeatError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#beatTimer.cancel();
    this.#ackTimer?.cancel();
    this.#outbox.close();
    this.#reassembly.clear();
    this.#outgoingSlots?.close();
    this.#incomingSlots?.close();
    this.#held.clear();
    this.#socket.close();
    this.#settle(reason);
  }

  /** Why the peer closed the link before its last frames were opened. */
  #heldBye(): LeatError | undefined {
    const frame = this.#held.last;
    if (frame?.[0] !== FRAME.MESSAGE) return undefined;
    try {
      this.#checkEnvelope(frame);
      return byeReason(decodeMessage(frame));
    } catch {
      return undefined;
    }
  }

  #lost(why: string, isByPeer: boolean): LeatError {
    const text = `The connection to ${this.remote.node} broke: ${why}`;
    const error = new LeatError("unavailable", text);
    return isByPeer ? closedThere(error) : error;
  }

  #broken(error: unknown): LeatError {
    const { code, message } = LeatError.from(error, "internal");
    const why = `${this.remote.node} sent what no node sends: ${message}`;
    return new LeatError(code, why, { cause: error });
  }
}
