/** Two nodes whose link loses messages. */
import type { Envelope } from "../../../actors/runtime/envelope.ts";
import type { Identity } from "../../../actors/runtime/identity.ts";
import type { Link, NodeId } from "../../../actors/runtime/link.ts";
import type { LeatError } from "../../../core/error.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { TestNode } from "./nodes.ts";

/** A link that loses the messages it is told to. */
export class LossyLink implements Link {
  readonly remote: NodeId;
  readonly identity: Identity;
  readonly closed: Promise<LeatError>;
  readonly #inner: Link;
  readonly #loses: (envelope: Envelope) => boolean;

  constructor(inner: Link, loses: (envelope: Envelope) => boolean) {
    this.#inner = inner;
    this.#loses = loses;
    this.remote = inner.remote;
    this.identity = inner.identity;
    this.closed = inner.closed;
  }
  get bufferedBytes(): number {
    return this.#inner.bufferedBytes;
  }
  start(receive: (envelope: Envelope) => void): void {
    this.#inner.start((envelope) => this.#loses(envelope) || receive(envelope));
  }
  send(envelope: Envelope, senderKeepsBody?: boolean): boolean {
    return this.#inner.send(envelope, senderKeepsBody);
  }
  ready(): Promise<void> {
    return this.#inner.ready();
  }
  close(reason?: LeatError): void {
    this.#inner.close(reason);
  }
}

export function lossyPair(loses: (envelope: Envelope) => boolean) {
  const a = new TestNode("a");
  const b = new TestNode("b");
  const [toB, toA] = inlinePair(a.system.world, a.system.id, b.system.world, b.system.id);
  a.system.attach(new LossyLink(toB, loses));
  b.system.attach(toA);
  return {
    a,
    b,
    async [Symbol.asyncDispose]() {
      await a.system.stop();
      await b.system.stop();
    },
  };
}
