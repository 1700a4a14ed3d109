/**
 * Envelopes: what travels between actors, on every carrier. An envelope is plain data; opaque
 * blocks of bytes in its body are {@linkcode Payload}s, which each carrier moves in its own way.
 *
 * @module
 */
import type { WireError } from "../../core/error.ts";
import type { FencedRef, Ref } from "./ref.ts";

/** Fields of every envelope. */
interface Common {
  readonly source: FencedRef;
  readonly target: Ref;
  /** Counts the envelopes of this (source life, target) pair from 1; receivers drop what is not newer. */
  readonly number: number;
}

/** A message that wants no answer. */
export interface TellEnvelope extends Common {
  readonly kind: "tell";
  readonly method: string;
  readonly body: unknown;
}

/** How many open asks an ask tells of. */
export const OPEN_MAX = 16;

/** A message that wants an answer within `timeoutMs`. */
export interface AskEnvelope extends Common {
  readonly kind: "ask";
  readonly id: number;
  readonly method: string;
  readonly body: unknown;
  readonly timeoutMs: number;
  /**
   * Present when the asker may send the same `id` again: the receiver then remembers the answer,
   * and forgets all answers to this source whose id is below the mark.
   */
  readonly settledBelow?: number;
  /**
   * Present when asks between the mark and this one are settled: the ids of the lowest open ones, this
   * one's the last unless they are {@linkcode OPEN_MAX}. All others below the last are settled too, so
   * that one ask that waits long does not have the answers to all after it kept.
   */
  readonly open?: readonly number[];
}

/** The answer to an ask. */
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

/** Asks to be told when the target dies, or no longer to be. */
export interface WatchEnvelope extends Common {
  readonly kind: "watch" | "unwatch";
  readonly id: number;
}

/** Tells a watcher that what it watched is gone. */
export interface DownEnvelope extends Common {
  readonly kind: "down";
  readonly id: number;
  readonly error: WireError;
}

/** What travels between actors. */
export type Envelope =
  | TellEnvelope
  | AskEnvelope
  | ReplyEnvelope
  | FailureEnvelope
  | WatchEnvelope
  | DownEnvelope;

/** The (source, target) pair within which order is kept. */
export function pairOf(envelope: Envelope): string {
  return `${envelope.source.path} ${envelope.target.path}`;
}
