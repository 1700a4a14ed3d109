/**
 * A WebSocket on a TCP connection of this process, for both sides.
 *
 * Deno's own is not used, for three reasons. It leaves Nagle's algorithm on and writes the head of a
 * frame separately from its payload, so that every message above 1 KB waits up to 40 ms for an
 * acknowledgement. It buffers as many bytes as a frame claims. And it cannot abandon a vanished
 * peer, so that the process lives until TCP gives up, a quarter of an hour later.
 */
import { joined } from "../../core/bytes.ts";
import { shownText } from "../../core/shown_text.ts";
import { LeatError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import type { Random, Timer, World } from "../../actors/runtime/world.ts";
import { buffersBeingWritten } from "../payload.ts";
import { closeConnection, type Conn, writeAll } from "./connection.ts";
import { FRAME_BYTES_MAX, malformed } from "./frames.ts";
import { PLACED_HEAD_BYTES, type Socket, type SocketEvents } from "./socket.ts";
import {
  broken,
  clientFrame,
  type FrameHead,
  isControl,
  OPCODE,
  readFrameHead,
  type Sender,
  serverFrame,
  unmask,
} from "./socket_frames.ts";

/** Frames that fit this buffer are read through it, many at a time; a larger one into its own. */
const READ_BUFFER_BYTES = 128 * 2 ** 10;
/**
 * After a large frame another large one is likely. Then only its head is read through the buffer:
 * payload bytes in the buffer would have to be copied out again.
 */
const HEAD_READ_BYTES = 64;
/** Consecutive reads before timers and other sockets run. */
const READS_PER_TURN = 16;
/** Limit of the frames of one message: each takes memory besides its bytes. */
const PARTS_MAX = 4_096;
/** Time limit for the other side to answer a close, in ms. */
const CLOSE_TIMEOUT_MS = 500;

/** The other side has closed the connection regularly. */
class PeerClosed extends Error {}

/** A payload is released early if its receiver has got it, for example over another connection. */
const RELEASED = new LeatError("aborted", "A message was released before it was sent");

/** A frame, or one of its two parts. */
interface Part {
  readonly bytes: Uint8Array;
  /** The length when `send` was called. `bytes` becomes empty if its payload is released. */
  readonly length: number;
}

/** A frame that a newer one of the same kind replaces while it waits. */
interface Newest {
  readonly kind: string;
  readonly opcode: number;
  payload: Uint8Array;
}

/** Errors of a connection that the other side, or its operating system, has closed. */
const PEER_ERRORS = [
  PeerClosed,
  Deno.errors.UnexpectedEof,
  Deno.errors.ConnectionReset,
  Deno.errors.BrokenPipe,
];

/** The state of a connection after the upgrade. */
interface FramedSocketOptions {
  /** Draws the masking keys of a client's frames; servers do not mask. */
  readonly masks?: Random;
  /** Bytes that came after the upgrade: the first frames of the other side, or parts of them. */
  readonly first: Uint8Array;
}

export class FramedSocket implements Socket {
  readonly released: Promise<void>;
  readonly #release: () => void;
  readonly #world: World;
  readonly #conn: Conn;
  readonly #masks: Random | undefined;
  readonly #peer: Sender;
  readonly #writes = new Fifo<Part | Newest>();
  /** Those in `#writes`, by kind. */
  readonly #newest = new Map<string, Newest>();
  #events: SocketEvents | undefined;
  #bytesMax = FRAME_BYTES_MAX;
  #state: "open" | "closing" | "closed" = "open";
  #closeTimer: Timer | undefined;
  /** Why the other side closed. The answer to its close frame is the last frame of this side. */
  #goodbye: string | undefined;
  #writing = false;
  #bufferedAmount = 0;
  /** The unread bytes are those from `#start` up to `#end`. */
  #buffer = new Uint8Array(READ_BUFFER_BYTES);
  #start = 0;
  #end = 0;
  #reads = 0;
  #wasLarge = false;
  /** The frames so far of a fragmented message. */
  #parts: Uint8Array[] = [];
  #partsBytes = 0;
  #partsOpcode = 0;

  /** @param conn The socket owns it from now on. If it is closed already, so is the socket. */
  constructor(world: World, conn: Conn, { masks, first }: FramedSocketOptions) {
    this.#world = world;
    this.#conn = conn;
    this.#masks = masks;
    this.#peer = masks === undefined ? "client" : "server";
    this.#buffer.set(first);
    this.#end = first.length;
    const released = Promise.withResolvers<void>();
    this.released = released.promise;
    this.#release = released.resolve;
  }

  get bufferedAmount(): number {
    return this.#bufferedAmount;
  }

  listen(events: SocketEvents, bytesMax: number = FRAME_BYTES_MAX): void {
    const isFirst = this.#events === undefined;
    this.#events = events;
    this.#bytesMax = bytesMax;
    if (isFirst) this.#readAll();
  }

  send(bytes: Uint8Array, head?: Uint8Array): void {
    if (this.#state !== "open") return;
    if (bytes.length === 0) this.#failed(RELEASED);
    else this.#write(OPCODE.BINARY, bytes, head);
  }

  sendNewest(bytes: Uint8Array): void {
    if (this.#state === "open") this.#writeNewest(`message ${bytes[0]}`, OPCODE.BINARY, bytes);
  }

  close(): void {
    if (this.#state !== "open") return;
    this.#write(OPCODE.CLOSE, new Uint8Array([0x03, 0xe8]));
    this.#state = "closing";
    this.#closeTimer = this.#world.timer(CLOSE_TIMEOUT_MS, () => this.#closed("closed", false));
  }

  drop(): void {
    this.#closed("dropped", false);
  }

  #write(opcode: number, payload: Uint8Array, head?: Uint8Array): void {
    for (const part of this.#partsOf(opcode, payload, head)) {
      this.#bufferedAmount += part.length;
      this.#writes.push({ bytes: part, length: part.length });
    }
    if (!this.#writing) this.#writeAll();
  }

  /**
   * Bounds the memory for a peer that sends pings without reading: each waiting frame takes far more
   * than its few bytes. An answer to the last ping is enough (RFC 6455, section 5.5.3).
   */
  #writeNewest(kind: string, opcode: number, payload: Uint8Array): void {
    const queued = this.#newest.get(kind);
    if (queued !== undefined) {
      queued.payload = payload;
      return;
    }
    if (!this.#writing) return this.#write(opcode, payload);
    const newest = { kind, opcode, payload };
    this.#newest.set(kind, newest);
    this.#writes.push(newest);
  }

  #partsOf(opcode: number, payload: Uint8Array, head?: Uint8Array): readonly Uint8Array[] {
    return this.#masks === undefined
      ? serverFrame(opcode, payload, head)
      : [clientFrame(opcode, payload, this.#masks.int(2 ** 32), head)];
  }

  async #writeAll(): Promise<void> {
    this.#writing = true;
    try {
      for (let part = this.#writes.shift(); part !== undefined; part = this.#writes.shift()) {
        if ("kind" in part) {
          this.#newest.delete(part.kind);
          const { opcode, payload } = part;
          for (const bytes of this.#partsOf(opcode, payload)) await writeAll(this.#conn, bytes);
          continue;
        }
        const { bytes, length } = part;
        if (bytes.length !== length) throw RELEASED;
        buffersBeingWritten.add(bytes.buffer);
        await writeAll(this.#conn, bytes);
        if (bytes.length !== length) throw RELEASED;
        buffersBeingWritten.delete(bytes.buffer);
        this.#bufferedAmount -= length;
      }
    } catch (error) {
      this.#failed(error);
    }
    this.#writing = false;
    if (this.#goodbye !== undefined) this.#closed(this.#goodbye, true);
  }

  async #readAll(): Promise<void> {
    try {
      while (this.#goodbye === undefined && this.#state !== "closed") {
        const head = readFrameHead(this.#buffer, this.#start, this.#end, this.#peer);
        if (head === undefined) await this.#readMore();
        else await this.#readFrame(head);
      }
    } catch (error) {
      if (error instanceof LeatError && this.#state === "open") await this.#broken(error);
      else this.#failed(error);
    }
  }

  /** Ends a connection whose other side has violated the protocol. */
  async #broken(error: LeatError): Promise<void> {
    this.#events?.broken?.(error);
    this.close();
    // Closing a connection with unread bytes would discard what was sent last.
    try {
      while (this.#state !== "closed") await this.#read(this.#buffer);
    } catch (end) {
      this.#failed(end);
    }
  }

  async #readMore(): Promise<void> {
    this.#buffer.copyWithin(0, this.#start, this.#end);
    this.#end -= this.#start;
    this.#start = 0;
    const isHead = this.#wasLarge && this.#end < HEAD_READ_BYTES;
    const until = isHead ? HEAD_READ_BYTES : this.#buffer.length;
    this.#end += await this.#read(this.#buffer.subarray(this.#end, until));
  }

  async #read(into: Uint8Array): Promise<number> {
    // A read that finds bytes may return without yielding to the event loop.
    if (++this.#reads % READS_PER_TURN === 0) {
      await new Promise<void>((resolve) => this.#world.macrotask(resolve));
    }
    const count = await this.#conn.read(into);
    if (count === null) throw new PeerClosed("the other side closed the connection");
    if (this.#state === "open") this.#events?.progress?.();
    return count;
  }

  async #readFrame(head: FrameHead): Promise<void> {
    const { headBytes, payloadBytes } = head;
    // A ping between the frames of a message is no part of it.
    const messageBytes = payloadBytes + (isControl(head.opcode) ? 0 : this.#partsBytes);
    if (messageBytes > this.#bytesMax) {
      throw malformed(`${messageBytes} bytes, more than ${this.#bytesMax}`);
    }
    const start = this.#start + headBytes;
    if (headBytes + payloadBytes <= this.#buffer.length) {
      if (start + payloadBytes > this.#end) return await this.#readMore();
      this.#start = start + payloadBytes;
      this.#wasLarge = false;
      this.#take(head, this.#buffer.slice(start, this.#start));
      return;
    }
    if (start + PLACED_HEAD_BYTES > this.#end) return await this.#readMore();
    this.#wasLarge = true;
    const first = this.#buffer.slice(start, start + PLACED_HEAD_BYTES);
    const place = this.#placeOf(head, first);
    if (place === undefined) {
      const memory = this.#events?.memory?.(payloadBytes) ?? payloadBytes;
      const payload = new Uint8Array(memory as ArrayBuffer);
      await this.#fill(payload, start);
      this.#take(head, payload);
    } else {
      await this.#fill(place, start + PLACED_HEAD_BYTES);
      if (this.#state === "open") this.#events?.placed?.(first, place);
    }
  }

  /** Where the receiver wants the rest of a frame. Only for an unmasked frame that is a whole message. */
  #placeOf({ opcode, isLast, key, payloadBytes }: FrameHead, first: Uint8Array) {
    if (opcode !== OPCODE.BINARY || !isLast || key !== 0 || this.#partsOpcode !== 0) return;
    return this.#state === "open" ? this.#events?.place?.(first, payloadBytes) : undefined;
  }

  /** Fills `bytes` with what has been read from `start` on, and with what follows. */
  async #fill(bytes: Uint8Array, start: number): Promise<void> {
    bytes.set(this.#buffer.subarray(start, this.#end));
    let length = this.#end - start;
    this.#start = this.#end = 0;
    while (length < bytes.length) length += await this.#read(bytes.subarray(length));
  }

  #take({ opcode, isLast, key }: FrameHead, payload: Uint8Array): void {
    unmask(payload, key);
    switch (opcode) {
      case OPCODE.TEXT:
      case OPCODE.BINARY:
        if (this.#partsOpcode !== 0) throw broken("a message inside of another");
        if (isLast) return this.#message(opcode, payload);
        this.#partsOpcode = opcode;
        return this.#addPart(payload);
      case OPCODE.CONTINUATION:
        if (this.#partsOpcode === 0) throw broken("a continuation of nothing");
        this.#addPart(payload);
        if (isLast) this.#messageOfParts();
        return;
      case OPCODE.PING:
        if (this.#state === "open") this.#writeNewest("pong", OPCODE.PONG, payload);
        return;
      case OPCODE.PONG:
        return;
      case OPCODE.CLOSE:
        return this.#closedByPeer(payload);
      default:
        throw broken(`a frame of kind ${opcode}`);
    }
  }

  #addPart(payload: Uint8Array): void {
    if (payload.length === 0) return;
    if (this.#parts.length >= PARTS_MAX) throw broken(`a message in more than ${PARTS_MAX} frames`);
    this.#parts.push(payload);
    this.#partsBytes += payload.length;
  }

  #messageOfParts(): void {
    const message = joined(this.#parts);
    const opcode = this.#partsOpcode;
    this.#parts = [];
    this.#partsBytes = 0;
    this.#partsOpcode = 0;
    this.#message(opcode, message);
  }

  #message(opcode: number, payload: Uint8Array): void {
    if (this.#state !== "open") return;
    const data = opcode === OPCODE.TEXT ? new TextDecoder().decode(payload) : payload;
    this.#events?.message(data);
  }

  #closedByPeer(payload: Uint8Array): void {
    const code = payload.length < 2 ? 1005 : payload[0]! << 8 | payload[1]!;
    const reason = new TextDecoder().decode(payload.subarray(2));
    this.close();
    this.#goodbye = reason === "" ? `WebSocket code ${code}` : shownText(reason);
    if (!this.#writing) this.#closed(this.#goodbye, true);
  }

  #failed(error: unknown): void {
    const isByPeer = PEER_ERRORS.some((kind) => error instanceof kind);
    this.#closed(error instanceof Error ? error.message : String(error), isByPeer);
  }

  #closed(why: string, isByPeer: boolean): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#closeTimer?.cancel();
    while (this.#writes.shift() !== undefined);
    closeConnection(this.#conn);
    this.#release();
    this.#events?.closed(why, isByPeer);
  }
}
