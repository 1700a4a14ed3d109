/**
 * The carrier between two processes of one host: small messages through two pipes, large ones
 * through slots of two shared files. A hostile process may have written every byte that arrives;
 * the codec and the limits here decide what becomes an envelope. `docs/wire.md` specifies the
 * format.
 */
import { LeatError } from "../../core/error.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { Identity } from "../../actors/runtime/identity.ts";
import { closedThere, type Link, type NodeId } from "../../actors/runtime/link.ts";
import { decodeMessage, encodeBlocks, encodeMessage, type FramePool } from "../codec.ts";
import { asEnvelope } from "../envelopes.ts";
import {
  byeReason,
  type Hello,
  HELLO_BYTES_MAX,
  type LinkSide,
  readHello,
  writeBye,
  writeHello,
} from "../hello.ts";
import {
  encodingError,
  LINK_LIMITS,
  type LinkLimits,
  STRUCTURE_PER_ENVELOPE_BYTE,
} from "../limits.ts";
import { broken, type Header, HEADER_BYTES, pipedFrames, PipeInput, readHeader } from "./frames.ts";
import { ProcessOutbox } from "./outbox.ts";
import { LENT_SLOTS_MAX, SLOT_BYTES_MAX, SLOTS } from "./slots.ts";
import { closeStreams, type ProcessStreams, writeQuietly } from "./streams.ts";

/** Limit of the bytes of an untrusted process's envelope: bulk data is sent as payloads. */
export const UNTRUSTED_ENVELOPE_BYTES_MAX = 2 ** 20;

/** Space before a message from a slot, so that its payload can be forwarded without a copy. */
const ROOM_BYTES = 1_024;

/** Untrusted: a process may run any user's functions. */
const OTHER_PROCESS: Identity = { name: "another process", role: "viewer" };

export interface ProcessLinkOptions {
  /** Default for `messageBytesMax`: a slot of 1 GiB + 1 MiB, which fits the largest element. */
  readonly limits?: Partial<LinkLimits>;
  /** The permissions of the other process. Default: read-only. */
  readonly identity?: Identity;
  /**
   * Limit of a decoded envelope, in bytes. It also limits a message's structure, by
   * `STRUCTURE_PER_ENVELOPE_BYTE`. Default: the limit of a message, and no limit of its structure.
   */
  readonly envelopeBytesMax?: number;
  /** Receives the buffer of a large message once it is written, if the sender gave it away. Default: none. */
  readonly recycle?: (buffer: ArrayBuffer) => void;
  /** Provides the memory for messages from slots, and gets it back once they are released. */
  readonly pool?: FramePool;
  /**
   * Lets the other process keep as many slots as its hello says, and use the messages in place.
   * Large payloads are then written to a slot straight from the sender's memory, so senders must
   * neither change nor reuse what they have sent. Default `false`.
   */
  readonly lendsSlots?: boolean;
}

/**
 * Opens the link to another process with a handshake.
 * @param streams Owned by the link from now on.
 * @param local The id of this process.
 * @param role `"dialler"` is the started process, `"listener"` the process that started it.
 * @throws {LeatError} `unavailable` when the other process ends first, `failed_precondition` when
 * it speaks another version, `internal` or `invalid_argument` for anything that is no hello.
 */
export async function openProcessLink(
  streams: ProcessStreams,
  local: NodeId,
  role: LinkSide,
  options: ProcessLinkOptions = {},
): Promise<Link> {
  const limits = { ...LINK_LIMITS, messageBytesMax: SLOT_BYTES_MAX, ...options.limits };
  const messageBytesMax = Math.min(limits.messageBytesMax, SLOT_BYTES_MAX);
  const input = new PipeInput(streams.incoming);
  try {
    const hello = writeHello({ ...local, role, messageBytesMax });
    writeQuietly(streams.outgoing, pipedFrames([hello]));
    const peer = await helloOf(input, role === "dialler" ? "listener" : "dialler");
    return new ProcessLink(streams, input, peer, { ...limits, messageBytesMax }, options);
  } catch (cause) {
    const error = LeatError.from(cause);
    writeQuietly(streams.outgoing, pipedFrames([writeBye(error)]));
    closeStreams(streams);
    throw error;
  }
}

async function helloOf(input: PipeInput, from: LinkSide): Promise<Hello> {
  const taken = await input.take(HEADER_BYTES);
  if (taken === undefined) throw ended();
  const { kind, length } = readHeader(taken);
  if (kind !== "piped" || length > HELLO_BYTES_MAX) {
    throw broken("a first message that is no hello");
  }
  const bytes = await input.take(length);
  if (bytes === undefined) throw ended();
  return readHello(bytes.slice(), from);
}

/** One end of a link. Messages arrive in the order of their sending. */
class ProcessLink implements Link {
  readonly remote: NodeId;
  readonly identity: Identity;
  readonly closed: Promise<LeatError>;
  readonly #settle: (why: LeatError) => void;
  readonly #streams: ProcessStreams;
  readonly #input: PipeInput;
  readonly #outbox: ProcessOutbox;
  /** The prefix of the incarnations of the other end's actors. */
  readonly #incarnationPrefix: string;
  /** The largest message that this end sends: at most what the other end accepts. */
  readonly #sentBytesMax: number;
  readonly #receivedBytesMax: number;
  readonly #envelopeBytesMax: number;
  readonly #lendsSlots: boolean;
  readonly #pool: FramePool | undefined;
  #isClosed = false;

  constructor(
    streams: ProcessStreams,
    input: PipeInput,
    { node, incarnation, messageBytesMax, slots = SLOTS }: Hello,
    limits: LinkLimits,
    options: ProcessLinkOptions,
  ) {
    const { identity = OTHER_PROCESS, envelopeBytesMax = Infinity, recycle = () => {} } = options;
    this.#lendsSlots = options.lendsSlots === true;
    this.#pool = options.pool;
    this.identity = identity;
    this.#streams = streams;
    this.#input = input;
    this.remote = { node, incarnation };
    this.#incarnationPrefix = `${incarnation}-`;
    this.#sentBytesMax = Math.min(messageBytesMax, limits.messageBytesMax);
    this.#receivedBytesMax = limits.messageBytesMax;
    this.#envelopeBytesMax = envelopeBytesMax;
    const failed = (error: unknown) => this.#end(LeatError.from(error));
    const lent = this.#lendsSlots ? Math.min(slots, LENT_SLOTS_MAX) : SLOTS;
    this.#outbox = new ProcessOutbox(limits, streams, lent, { recycle, failed });
    const { promise, resolve } = Promise.withResolvers<LeatError>();
    this.closed = promise;
    this.#settle = resolve;
  }

  get bufferedBytes(): number {
    return this.#outbox.bytes;
  }

  /** Nothing is read before this call: pipe and slots apply backpressure to the sender. */
  start(receive: (envelope: Envelope) => void): void {
    this.#readAll(receive);
  }

  send(envelope: Envelope, senderKeepsBody = false): boolean {
    if (this.#isClosed) return false;
    this.#outbox.add(this.#encode(envelope), !senderKeepsBody && !this.#lendsSlots);
    return true;
  }

  ready(): Promise<void> {
    return this.#outbox.ready();
  }

  close(reason = new LeatError("cancelled", "The link was closed")): void {
    this.#end(reason);
  }

  #encode(envelope: Envelope): Uint8Array[] {
    const bytesMax = this.#sentBytesMax;
    try {
      if (this.#lendsSlots) return encodeBlocks(envelope, { bytesMax });
      return [encodeMessage(envelope, { bytesMax, inPlaceBytesMax: bytesMax })];
    } catch (error) {
      throw encodingError(error, envelope, bytesMax);
    }
  }

  async #readAll(receive: (envelope: Envelope) => void): Promise<void> {
    try {
      for (;;) {
        const taken = this.#input.take(HEADER_BYTES);
        const bytes = taken instanceof Promise ? await taken : taken;
        if (this.#isClosed) return;
        if (bytes === undefined) throw ended();
        const header = readHeader(bytes);
        if (header.kind === "freed") this.#outbox.freed(header.slot);
        else this.#deliver(await this.#message(header), receive);
      }
    } catch (error) {
      this.#end(LeatError.from(error));
    }
  }

  async #message(header: Header): Promise<Uint8Array> {
    const { kind, length, slot } = header;
    if (length > this.#receivedBytesMax) {
      throw broken(`a message of ${length} bytes, over ${this.#receivedBytesMax}`);
    }
    if (kind === "piped") {
      const bytes = await this.#input.take(length);
      if (bytes === undefined) throw broken("the pipe ends within a message");
      // Copied to a buffer of its own, because payloads must be aligned.
      return bytes.slice();
    }
    const byteLength = ROOM_BYTES + length;
    const memory = this.#pool?.take(byteLength) ?? new ArrayBuffer(byteLength);
    const bytes = new Uint8Array(memory, ROOM_BYTES);
    const reading = this.#streams.incomingSlots.read(slot, bytes);
    if (reading !== undefined) await reading;
    this.#outbox.sendFreed(slot);
    return bytes;
  }

  #deliver(bytes: Uint8Array, receive: (envelope: Envelope) => void): void {
    if (this.#isClosed) return;
    const envelopeBytes = bytes.length < 5
      ? 0
      : new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
    if (envelopeBytes > this.#envelopeBytesMax) {
      throw broken(`an envelope of ${envelopeBytes} bytes, over ${this.#envelopeBytesMax}`);
    }
    const message = decodeMessage(bytes, {
      bytesMax: this.#receivedBytesMax,
      structureBytesMax: STRUCTURE_PER_ENVELOPE_BYTE * this.#envelopeBytesMax,
      ...(this.#pool === undefined ? {} : { pool: this.#pool }),
    });
    const reason = byeReason(message);
    if (reason !== undefined) return this.#end(reason);
    const envelope = asEnvelope(message);
    const { node, incarnation } = envelope.source;
    if (node !== this.remote.node || !incarnation.startsWith(this.#incarnationPrefix)) {
      throw broken("a message in the name of another node, or of another incarnation");
    }
    receive(envelope);
  }

  #end(reason: LeatError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#outbox.close(writeBye(reason));
    closeStreams(this.#streams);
    this.#settle(reason);
  }
}

function ended(): LeatError {
  return closedThere(new LeatError("unavailable", "The other process has closed its end"));
}
