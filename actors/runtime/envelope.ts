/**
 * Envelopes: the messages between actors, on every carrier. An envelope is plain data; opaque
 * blocks of bytes in its body are {@linkcode Payload}s, which each carrier moves in its own way.
 */
import type { WireError } from "../../core/error.ts";
import type { FencedRef, Ref } from "./ref.ts";

interface Common {
  readonly source: FencedRef;
  readonly target: Ref;
  /** Counts a source incarnation's envelopes to a target, from 1. Receivers drop old numbers. */
  readonly number: number;
}

/** A message without an answer. */
export interface TellEnvelope extends Common {
  readonly kind: "tell";
  readonly method: string;
  readonly body: unknown;
}

/** Limit of the ids in `AskEnvelope.open`. */
export const OPEN_MAX = 16;

/** A message to be answered within `timeoutMs`. */
export interface AskEnvelope extends Common {
  readonly kind: "ask";
  readonly id: number;
  readonly method: string;
  readonly body: unknown;
  readonly timeoutMs: number;
  /**
   * Present if the ask may be repeated: the receiver then keeps its answer. This source's asks with
   * ids below this number are settled, so the receiver drops its answers to them.
   */
  readonly settledBelow?: number;
  /**
   * The ids of the lowest unanswered asks, and of this one if there are fewer than {@linkcode OPEN_MAX};
   * left out if these ids are consecutive. All other asks below the last id are settled. So one slow
   * ask does not keep the answers to all later ones in memory.
   */
  readonly open?: readonly number[];
}

export interface ReplyEnvelope extends Common {
  readonly kind: "reply";
  readonly id: number;
  readonly body: unknown;
}

/** The refusal of an ask. */
export interface FailureEnvelope extends Common {
  readonly kind: "failure";
  readonly id: number;
  readonly error: WireError;
}

/** Subscribes to the death of the target, or unsubscribes. */
export interface WatchEnvelope extends Common {
  readonly kind: "watch" | "unwatch";
  readonly id: number;
}

/** Tells a watcher that its target is gone. */
export interface DownEnvelope extends Common {
  readonly kind: "down";
  readonly id: number;
  readonly error: WireError;
}

/** A message between actors. */
export type Envelope =
  | TellEnvelope
  | AskEnvelope
  | ReplyEnvelope
  | FailureEnvelope
  | WatchEnvelope
  | DownEnvelope;

/** Names the envelope's source and target. Envelopes with the same name keep their order. */
export function pairOf(envelope: Envelope): string {
  return `${envelope.source.path} ${envelope.target.path}`;
}
