/** Protocols: interfaces of functions from a plain-data request to a plain-data answer. */
import type { Identity } from "./identity.ts";
import type { FencedRef } from "./ref.ts";

/** The names of a protocol's methods. */
export type MethodOf<P> = Extract<keyof P, string>;

export type RequestOf<P, M extends keyof P> = P[M] extends
  (request: infer R, ...rest: never[]) => unknown ? R : never;

export type AnswerOf<P, M extends keyof P> = P[M] extends (...args: never[]) => infer A ? Awaited<A>
  : never;

/** What a handler receives in addition to the request. */
export interface Delivery {
  /** From which actor it comes. Its node is the one at the other end of the link. */
  readonly source: FencedRef;
  /** The identity that was proved at the other end of that link, which no actor there can forge. */
  readonly sender: Identity;
  /** When the asker stops waiting, on this node's monotonic clock in ms; Infinity for a tell. */
  readonly deadlineMs: number;
}

/**
 * An actor's behaviour, a function for each method. Its synchronous part runs alone; other messages
 * are handled while a promised answer is pending. A thrown `LeatError` is an answer; any other
 * error is a bug: the asker gets `internal`, the actor dies and its supervisor decides.
 */
export type Handlers<P> = {
  readonly [M in MethodOf<P>]: (
    request: RequestOf<P, M>,
    delivery: Delivery,
  ) => AnswerOf<P, M> | Promise<AnswerOf<P, M>>;
};
