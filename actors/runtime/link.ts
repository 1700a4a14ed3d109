/** The interface of carriers to the actor runtime: a link moves envelopes between two nodes. */
import { LeatError } from "../../core/error.ts";
import type { Envelope } from "./envelope.ts";
import type { Identity } from "./identity.ts";

/** Names one incarnation of a node. */
export interface NodeId {
  readonly node: string;
  /** 64 random bits drawn at node start, in hexadecimal. */
  readonly incarnation: string;
}

/**
 * A two-way connection between two nodes. It guarantees only this: an accepted envelope arrives at
 * most once, envelopes of one (source, target) pair arrive in order, and `closed` always settles.
 */
export interface Link {
  readonly remote: NodeId;
  /** The proved identity of the other end. */
  readonly identity: Identity;
  /** Settles (never rejects) once, when either side closed the link or it broke; says why. */
  readonly closed: Promise<LeatError>;
  /**
   * Settles when the link holds no more resources in this process. If absent, a closed link holds none.
   */
  readonly released?: Promise<void>;
  /** Bytes accepted and, as far as the carrier can tell, not yet received by the other node. */
  readonly bufferedBytes: number;
  /** Registers the receiver and begins delivery; called once. Envelopes that arrive before wait. */
  start(receive: (envelope: Envelope) => void): void;
  /**
   * Accepts an envelope. Returns false if the link is closed.
   * @param senderKeepsBody The body is then copied instead of transferred. Default: transferred.
   * @throws LeatError `resource_exhausted` when the envelope is larger than the link carries,
   * `invalid_argument` when its body is not plain data.
   */
  send(envelope: Envelope, senderKeepsBody?: boolean): boolean;
  /** Resolves when the link can accept more, or is closed. */
  ready(): Promise<void>;
  /** Closes the link at once; envelopes not yet sent are lost. */
  close(reason?: LeatError): void;
}

/** The `details.reason` of a link that was closed at its other end. */
const CLOSED_THERE = "closed_there";

/** Marks the error of a link that the other end's node or operating system closed. */
export function closedThere({ code, message, details, cause }: LeatError): LeatError {
  return new LeatError(code, message, { cause, details: { ...details, reason: CLOSED_THERE } });
}

/**
 * Whether a link was closed at its other end, as far as its carrier can tell, or because the other
 * node's token was withdrawn: either way only the other node can open another.
 */
export function isClosedThere({ code, details }: LeatError): boolean {
  // A node that stops sends `cancelled`.
  return code === "cancelled" || code === "unauthenticated" || details?.reason === CLOSED_THERE;
}

/** The `details.reason` for a node name that a connector has no address for. */
const UNKNOWN_NODE = "unknown_node";

/** The error for an unknown node name. A node that only dials out may reconnect by itself. */
export function unknownNode(message: string): LeatError {
  return new LeatError("not_found", message, { details: { reason: UNKNOWN_NODE } });
}

/** Whether an error says that the node, and not the requested item, was not found. */
export function isUnknownNode({ details }: LeatError): boolean {
  return details?.["reason"] === UNKNOWN_NODE;
}

/** Opens links to nodes that this node has no link to. */
export interface Connector {
  /**
   * @param local The dialling node.
   * @param signal Aborts when that node stops.
   * @throws LeatError `unavailable` when the node cannot be reached now, `unauthenticated` when it
   * refuses this one, `not_found` ({@linkcode unknownNode}) for an unknown name.
   */
  connect(node: string, local: NodeId, signal?: AbortSignal): Promise<Link>;
}
