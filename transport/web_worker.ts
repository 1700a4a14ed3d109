/**
 * The carrier between threads: a `MessagePort` that connects two of them directly. An envelope is
 * sent by structured clone as a flat array. An actor's reference is sent once, and then replaced by
 * a number. Payloads are transferred.
 */
import { LeatError, type WireError } from "../core/error.ts";
import { Fifo } from "../core/fifo.ts";
import type { Envelope } from "../actors/runtime/envelope.ts";
import { SAME_PROCESS } from "../actors/runtime/identity.ts";
import type { Link, NodeId } from "../actors/runtime/link.ts";
import type { Ref } from "../actors/runtime/ref.ts";
import { LINK_LIMITS, type LinkLimits, messageTooLarge } from "./limits.ts";
import { joinThreadBody, ThreadBody, type ThreadPart } from "./thread_body.ts";
import { WaterMarks } from "./water_marks.ts";

/** Limit of the references that a link numbers. Beyond it both ends start over. */
const REFS_MAX = 4_096;
/** Approximate bytes of an envelope besides its body. */
const ENVELOPE_BYTES = 128;

/** The kind of a frame, its first item. */
const FRAME = {
  /** [, ref]: defines the reference of the next number. */
  REF: 0,
  /** []: numbers start over from 0. */
  REFS_AGAIN: 1,
  /** [, bytes]: the receiver has consumed `bytes` bytes since the last TAKEN. */
  TAKEN: 2,
  /** [, bytes]: send TAKEN at the latest after `bytes` bytes. */
  TAKE_EVERY: 3,
  /** [, error]: the link is closed. */
  GOODBYE: 4,
  /** [, bytes, source, target, number, …]: an envelope. */
  ENVELOPE: 5,
} as const;

/**
 * A link over one end of a `MessageChannel` whose other end is on the thread of `remote`.
 *
 * A port does not report the death of the thread at its other end: the link's owner must close it.
 */
export function portLink(
  port: MessagePort,
  remote: NodeId,
  limits: Partial<LinkLimits> = {},
): Link {
  return new PortLink(port, remote, { ...LINK_LIMITS, ...limits });
}

/** A received envelope, and the size that its sender counts for it. */
interface Arrival {
  readonly envelope: Envelope;
  readonly bytes: number;
}

type EnvelopeFrame = [
  frame: typeof FRAME.ENVELOPE,
  bytes: number,
  source: number,
  target: number,
  number: number,
  kind: Envelope["kind"],
  id: number,
  method: string | undefined,
  body: unknown,
  parts: readonly ThreadPart[] | undefined,
  timeoutMs: number | undefined,
  settledBelow: number | undefined,
  error: WireError | undefined,
  open: readonly number[] | undefined,
];

type Frame =
  | [frame: typeof FRAME.REF, ref: Ref]
  | [frame: typeof FRAME.REFS_AGAIN]
  | [frame: typeof FRAME.TAKEN, bytes: number]
  | [frame: typeof FRAME.TAKE_EVERY, bytes: number]
  | [frame: typeof FRAME.GOODBYE, error: WireError]
  | EnvelopeFrame;

class PortLink implements Link {
  readonly remote: NodeId;
  readonly identity = SAME_PROCESS;
  readonly closed: Promise<LeatError>;
  readonly #settle: (error: LeatError) => void;
  readonly #port: MessagePort;
  readonly #limits: LinkLimits;
  readonly #buffered: WaterMarks;
  readonly #sentRefs = new RefNumbers();
  readonly #knownRefs: Ref[] = [];
  readonly #arrivals = new Fifo<Arrival>();
  #receive: ((envelope: Envelope) => void) | undefined;
  #taken = 0;
  #takeEvery = Infinity;
  #isClosed = false;

  constructor(port: MessagePort, remote: NodeId, limits: LinkLimits) {
    this.#port = port;
    this.remote = remote;
    this.#limits = limits;
    this.#buffered = new WaterMarks(limits);
    const closed = Promise.withResolvers<LeatError>();
    this.closed = closed.promise;
    this.#settle = closed.resolve;
    port.onmessage = ({ data }) => this.#arrived(data as Frame);
    port.onmessageerror = () => {
      this.close(new LeatError("data_loss", `A message from ${remote.node} is unreadable`));
    };
    this.#post([FRAME.TAKE_EVERY, Math.ceil(limits.lowWaterBytes / 2)]);
  }

  get bufferedBytes(): number {
    return this.#buffered.bytes;
  }

  start(receive: (envelope: Envelope) => void): void {
    this.#receive = receive;
    for (let arrival = this.#arrivals.shift(); arrival !== undefined;) {
      this.#deliver(arrival);
      arrival = this.#arrivals.shift();
    }
  }

  send(envelope: Envelope, senderKeepsBody = false): boolean {
    if (this.#isClosed) return false;
    const body = "body" in envelope ? new ThreadBody(envelope.body, senderKeepsBody) : undefined;
    const bytes = ENVELOPE_BYTES + (body?.bytes ?? 0);
    const { messageBytesMax } = this.#limits;
    if (bytes > messageBytesMax) throw messageTooLarge(envelope, bytes, messageBytesMax);
    this.#post(this.#frameOf(envelope, body, bytes), body?.transfer);
    this.#buffered.add(bytes);
    return true;
  }

  ready(): Promise<void> {
    return this.#buffered.ready();
  }

  close(reason = new LeatError("cancelled", "The link was closed")): void {
    if (this.#isClosed) return;
    this.#post([FRAME.GOODBYE, reason.toWire()]);
    this.#end(reason);
  }

  #frameOf(envelope: Envelope, body: ThreadBody | undefined, bytes: number): EnvelopeFrame {
    if (this.#sentRefs.size + 2 > REFS_MAX) {
      this.#sentRefs.clear();
      this.#post([FRAME.REFS_AGAIN]);
    }
    return [
      FRAME.ENVELOPE,
      bytes,
      this.#numberOf(envelope.source),
      this.#numberOf(envelope.target),
      envelope.number,
      envelope.kind,
      "id" in envelope ? envelope.id : 0,
      "method" in envelope ? envelope.method : undefined,
      body?.value,
      body === undefined || body.parts.length === 0 ? undefined : body.parts,
      "timeoutMs" in envelope ? envelope.timeoutMs : undefined,
      "settledBelow" in envelope ? envelope.settledBelow : undefined,
      "error" in envelope ? envelope.error : undefined,
      "open" in envelope ? envelope.open : undefined,
    ];
  }

  #numberOf(ref: Ref): number {
    const known = this.#sentRefs.find(ref);
    if (known !== undefined) return known;
    const { node, path, incarnation } = ref;
    this.#post([
      FRAME.REF,
      incarnation === undefined ? { node, path } : { node, path, incarnation },
    ]);
    return this.#sentRefs.add(ref);
  }

  #post(frame: Frame, transfer?: Transferable[]): void {
    try {
      if (transfer === undefined || transfer.length === 0) this.#port.postMessage(frame);
      else this.#port.postMessage(frame, transfer);
    } catch (error) {
      throw new LeatError("invalid_argument", `A message cannot be copied: ${error}`, {
        cause: error,
      });
    }
  }

  #arrived(frame: Frame): void {
    if (this.#isClosed) return;
    switch (frame[0]) {
      case FRAME.ENVELOPE:
        this.#deliverOrKeep({ envelope: this.#envelopeOf(frame), bytes: frame[1] });
        break;
      case FRAME.REF:
        this.#knownRefs.push(frame[1]);
        break;
      case FRAME.REFS_AGAIN:
        this.#knownRefs.length = 0;
        break;
      case FRAME.TAKEN:
        this.#buffered.remove(frame[1]);
        break;
      case FRAME.TAKE_EVERY:
        this.#takeEvery = frame[1];
        break;
      case FRAME.GOODBYE:
        this.#end(LeatError.fromWire(frame[1]));
        break;
    }
  }

  #deliverOrKeep(arrival: Arrival): void {
    if (this.#receive === undefined) this.#arrivals.push(arrival);
    else this.#deliver(arrival);
  }

  #deliver({ envelope, bytes }: Arrival): void {
    this.#taken += bytes;
    if (this.#taken >= this.#takeEvery) {
      this.#post([FRAME.TAKEN, this.#taken]);
      this.#taken = 0;
    }
    this.#receive!(envelope);
  }

  #envelopeOf(frame: EnvelopeFrame): Envelope {
    const kind = frame[5];
    const parts = frame[9];
    const envelope: Record<string, unknown> = {
      kind,
      source: this.#knownRefs[frame[2]],
      target: this.#knownRefs[frame[3]],
      number: frame[4],
    };
    if (kind !== "tell") envelope.id = frame[6];
    if (kind === "tell" || kind === "ask") envelope.method = frame[7];
    if (kind === "tell" || kind === "ask" || kind === "reply") {
      envelope.body = parts === undefined ? frame[8] : joinThreadBody(frame[8], parts);
    } else if (kind === "failure" || kind === "down") envelope.error = frame[12];
    if (kind === "ask") {
      envelope.timeoutMs = frame[10];
      if (frame[11] !== undefined) envelope.settledBelow = frame[11];
      if (frame[13] !== undefined) envelope.open = frame[13];
    }
    return envelope as unknown as Envelope;
  }

  #end(reason: LeatError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#port.onmessage = null;
    this.#port.close();
    while (this.#arrivals.shift() !== undefined);
    this.#buffered.release();
    this.#settle(reason);
  }
}

/** The numbers of references that were sent over a link. */
class RefNumbers {
  #byObject = new WeakMap<Ref, number>();
  readonly #byText = new Map<string, number>();

  get size(): number {
    return this.#byText.size;
  }

  find(ref: Ref): number | undefined {
    const known = this.#byObject.get(ref);
    if (known !== undefined) return known;
    const number = this.#byText.get(textOf(ref));
    if (number !== undefined) this.#byObject.set(ref, number);
    return number;
  }

  add(ref: Ref): number {
    const number = this.#byText.size;
    this.#byText.set(textOf(ref), number);
    this.#byObject.set(ref, number);
    return number;
  }

  clear(): void {
    this.#byObject = new WeakMap();
    this.#byText.clear();
  }
}

function textOf({ node, path, incarnation = "" }: Ref): string {
  return `${node} ${path} ${incarnation}`;
}
