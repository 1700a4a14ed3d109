/** A peer that asks, and reads no answer by itself: a link without a network. */
import type { Identity } from "../../actors/runtime/identity.ts";
import type { World } from "../../actors/runtime/world.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import {
  fragmentHead,
  FRAME,
  readBatch,
  readFragmentHead,
  writeAck,
  writeBatch,
} from "../../transport/web_socket/frames.ts";
import { WebSocketLink } from "../../transport/web_socket/link.ts";
import type { Peer } from "../../transport/web_socket/peer.ts";
import { Reassembly } from "../../transport/web_socket/reassembly.ts";
import type { Socket, SocketEvents } from "../../transport/web_socket/socket.ts";
import { Unread } from "../../transport/web_socket/unread.ts";

export const ANSWER = new Uint8Array(2 ** 20);
export const CLIENT: Identity = { name: "team", role: "client" };
export const SOURCE = { node: "attacker", path: "/client", incarnation: "1-1" };
export const TARGET = { node: "ws://node", path: "/worker", incarnation: "2-1" };

interface AskerOptions extends Pick<Partial<Peer>, "unread" | "held" | "incompleteBytesOf"> {
  /** The body of each answer; null: `answer` answers. Default 1 MiB. */
  readonly answer?: unknown;
}

/** A connection whose client sends what a test says, and acknowledges nothing by itself. */
export class Asker implements Socket {
  readonly bufferedAmount = 0;
  readonly released = Promise.resolve();
  readonly link: WebSocketLink;
  /** The numbers of the requests that have been answered. */
  readonly answered: number[] = [];
  isClosed = false;
  bytes = 0;
  #events!: SocketEvents;
  #asked = 0;

  /** The numbers of the requests that `answer` has to answer. */
  readonly open: number[] = [];
  /** The numbers of the requests whose answers were sent to the end. */
  readonly received: number[] = [];
  readonly #parts = new Reassembly(2 ** 30);

  constructor(identity: Identity, options: AskerOptions = {}) {
    const { answer = ANSWER, unread = new Unread(identity), ...more } = options;
    this.link = new WebSocketLink(world, this, {
      remote: { node: "attacker", incarnation: "1" },
      ...{ ownName: "attacker", identity, messageBytesMax: 2 ** 30, unread },
      ...{ incompleteBytesOf: () => this.link.incompleteBytes, ...more },
    });
    this.link.start((envelope) => {
      const { number } = envelope;
      if (answer === null) this.open.push(number);
      else this.answer(number, answer);
    });
  }

  answer(number: number, body: unknown): void {
    this.answered.push(number);
    const reply = { kind: "reply", source: TARGET, target: SOURCE, number, id: number } as const;
    this.link.send({ ...reply, body });
  }

  listen(events: SocketEvents): void {
    this.#events = events;
  }

  /** Acknowledgements of requests, which nobody acknowledges, and answers to pings. */
  sendNewest(): void {}

  send(bytes: Uint8Array, head?: Uint8Array): void {
    this.bytes += bytes.length + (head?.length ?? 0);
    if (head !== undefined) this.#read(this.#parts.add({ ...readFragmentHead(head), data: bytes }));
    else if (bytes[0] === FRAME.BATCH) readBatch(bytes, (message) => this.#read(message));
    else if (bytes[0] === FRAME.MESSAGE) this.#read(bytes);
  }

  #read(message: Uint8Array | undefined): void {
    if (message !== undefined) this.received.push((decodeMessage(message) as { id: number }).id);
  }

  close(): void {
    this.isClosed = true;
  }

  drop(): void {
    this.isClosed = true;
  }

  ask(count: number, body?: unknown): void {
    for (let i = 0; i < count; i++) {
      const number = ++this.#asked;
      const ask = { kind: "ask", source: SOURCE, target: TARGET, number, id: number };
      this.#events.message(encodeMessage({ ...ask, method: "get", timeoutMs: 1_000, body }));
    }
  }

  /** Sends requests in one frame. */
  askAtOnce(count: number, body: unknown = null): void {
    const asks = Array.from({ length: count }, () => {
      const number = ++this.#asked;
      const ask = { kind: "ask", source: SOURCE, target: TARGET, number, id: number };
      return encodeMessage({ ...ask, method: "get", timeoutMs: 1_000, body });
    });
    this.#events.message(writeBatch(asks));
  }

  sendFrame(frame: Uint8Array): void {
    this.#events.message(frame);
  }

  /** Sends the beginning of a message. */
  begin(total: number): void {
    const head = fragmentHead(1, 0, total);
    this.#events.message(Uint8Array.of(...head, 0));
  }

  /** Acknowledges what was sent, until no more comes. */
  acknowledge(): void {
    for (let before = -1; before !== this.bytes;) {
      before = this.bytes;
      this.#events.message(writeAck(before));
    }
  }
}

const world = {
  timer: () => ({ cancel: () => {} }),
  macrotask: (fn: () => void) => fn(),
} as unknown as World;
