/**
 * The seam between the actor runtime and its carriers: a link moves envelopes between two nodes.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Envelope } from "./envelope.ts";
import type { Identity } from "./identity.ts";

/** Names one life of a node. */
export interface NodeId {
  readonly node: string;
  /** 64 random bits drawn at node start, in hexadecimal. */
  readonly incarnation: string;
}

/**
 * A two-way connection between two nodes. It promises little: an accepted envelope arrives at most
 * once, envelopes of one (source, target) pair arrive in order, and `closed` always settles.
 */
export interface Link {
  /** The node at the other end. */
  readonly remote: NodeId;
  /** Who the other end has proved to be. */
  readonly identity: Identity;
  /** Settles (never rejects) once, when either side closed the link or it broke; says why. */
  readonly closed: Promise<LeatError>;
  /**
   * Settles, some time after `closed`, when nothing of the link is left in this process. Absent
   * where that is so as soon as it is closed.
   */
  readonly released?: Promise<void>;
  /** Bytes accepted and, as far as the carrier can tell, not yet taken by the node at the other end. */
  readonly bufferedBytes: number;
  /** Registers the receiver and begins delivery; called once. Envelopes before it are kept. */
  start(receive: (envelope: Envelope) => void): void;
  /**
   * Accepts an envelope. False: the link is closed, and the envelope is lost.
   *
   * @param kept The sender keeps the body, to send it again: what a carrier would move to the
   * receiver it must copy. Default false.
   * @throws LeatError `resource_exhausted` when the envelope is larger than the link carries,
   * `invalid_argument` when its body is not plain data.
   */
  send(envelope: Envelope, kept?: boolean): boolean;
  /** Resolves when the link has room again, or is closed. */
  ready(): Promise<void>;
  /** Closes the link at once; envelopes not yet sent are lost. */
  close(reason?: LeatError): void;
}

/** The `details.reason` of a link that was closed at its other end. */
const CLOSED_THERE = "closed_there";

/** Says of the reason for which a link is closed that its other end was, by its node or its machine. */
export function closedThere({ code, message, details, cause }: LeatError): LeatError {
  return new LeatError(code, message, { cause, details: { ...details, reason: CLOSED_THERE } });
}

/** Whether a link was closed at its other end, as far as its carrier can tell. */
export function isClosedThere({ code, details }: LeatError): boolean {
  // A node that stops says so.
  return code === "cancelled" || details?.reason === CLOSED_THERE;
}

/** The `details.reason` of what a connector says of a node that it has no way to. */
const NO_WAY = "no_way";

/** Nothing is known here by that name. A node that only dials out may come back by itself. */
export function noWay(message: string): LeatError {
  return new LeatError("not_found", message, { details: { reason: NO_WAY } });
}

/** Whether a node was not found, and not what was asked of it. */
export function isNoWay({ details }: LeatError): boolean {
  return details?.["reason"] === NO_WAY;
}

/** Opens links to nodes that this node has none to. */
export interface Connector {
  /**
   * @param local Who dials.
   * @throws LeatError `unavailable` when the node cannot be reached now, `unauthenticated` when it
   * refuses this one, `not_found` ({@linkcode noWay}) when nothing is known by that name.
   */
  connect(node: string, local: NodeId): Promise<Link>;
}
