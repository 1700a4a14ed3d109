/** Inspection: events of the runtime for tests, traces and status pages. */
import type { LeatError } from "../../core/error.ts";
import type { Envelope } from "./envelope.ts";
import type { ActorAddress, FencedRef } from "./ref.ts";

/** Why an envelope was not delivered. */
export type DropReason =
  | "not_newer"
  | "no_such_actor"
  | "restarting"
  | "stale_incarnation"
  | "mailbox_full"
  | "expired"
  | "malformed"
  | "not_permitted"
  | "unreachable"
  | "too_large"
  | "unwanted_reply";

export type InspectionEvent =
  | { readonly type: "send"; readonly envelope: Envelope }
  | { readonly type: "deliver"; readonly envelope: Envelope }
  | { readonly type: "drop"; readonly envelope: Envelope; readonly reason: DropReason }
  | { readonly type: "gap"; readonly envelope: Envelope; readonly missing: number }
  | { readonly type: "start"; readonly ref: FencedRef }
  | { readonly type: "stop"; readonly ref: FencedRef; readonly error: LeatError | undefined }
  | { readonly type: "restart"; readonly ref: FencedRef; readonly delayMs: number }
  | { readonly type: "give_up"; readonly ref: FencedRef; readonly error: LeatError }
  | { readonly type: "link_up"; readonly node: string }
  | { readonly type: "link_down"; readonly node: string; readonly error: LeatError };

export type Observer = (event: InspectionEvent) => void;

/** The visible state of a living actor. */
export interface ActorInfo {
  /** Where it runs. */
  readonly ref: Required<ActorAddress>;
  /** The `kind` of its spec, or else its name. */
  readonly kind: string;
  /** It handles messages only while it is `running`. */
  readonly state: "starting" | "running" | "stopping";
  /** Messages that wait for it. */
  readonly mailboxLength: number;
}

/** Messages that a node holds; each count is bounded. */
export interface HeldMessages {
  /** In mailboxes. */
  readonly waiting: number;
  /** Asks made here that have no answer yet. */
  readonly openAsks: number;
  /** Answers kept for askers that may ask again. */
  readonly keptAnswers: number;
  /** Asks that actors here are handling. */
  readonly beingAnswered: number;
}

/** Passes events to observers; costs one check when there are none. */
export class Inspector {
  readonly #observers = new Set<Observer>();
  /** Whether there are observers: callers check it before they create an event. */
  active = false;

  /** Adds an observer. Returns a function that removes it. */
  observe(observer: Observer): () => void {
    this.#observers.add(observer);
    this.active = true;
    return () => {
      this.#observers.delete(observer);
      this.active = this.#observers.size > 0;
    };
  }

  emit(event: InspectionEvent): void {
    for (const observer of this.#observers) observer(event);
  }
}
