/**
 * Detects that the process of a client or worker is gone, sooner than by the heartbeat timeout.
 *
 * - Its node reports that the actor has ended: a client is gone at once. A worker has a grace time,
 *   in which it may restart.
 * - The connection was closed from its side, by the end of its process, or by a proxy or firewall.
 *   A live member reconnects within seconds, so it is gone only after a grace time. The grace time
 *   ends as soon as its node reconnects. The dispatcher must not wait for a request: if the member
 *   repeats an old one, the runtime may answer it alone.
 * - The connection timed out, or has no route. That says nothing about the member, so only the
 *   heartbeat timeout counts.
 *
 * Nothing is journaled: a restarted dispatcher watches a member from its next heartbeat on.
 */
import type { ActorContext, WatchEnd } from "../../runtime/actor.ts";
import type { FencedRef } from "../../runtime/ref.ts";

/** A watch on a member's actor, or the wait for its node to reconnect. */
interface Watch {
  readonly incarnation: string;
  stop: () => void;
}

/** The links to clients by id, or to workers by name. */
export class MemberLinks<K> {
  /** By member: when its grace time began, in monotonic ms. Deleted when it reconnects. */
  readonly closedAtMs = new Map<K, number>();
  readonly #context: ActorContext;
  readonly #onEnded: (key: K) => void;
  readonly #watches = new Map<K, Watch>();

  /** @param onEnded Called when a member's actor has ended. */
  constructor(context: ActorContext, onEnded: (key: K) => void) {
    this.#context = context;
    this.#onEnded = onEnded;
  }

  /** Watches the member's actor, unless it is watched already. Ends a grace time. */
  watch(key: K, actor: FencedRef): void {
    const wasClosed = this.closedAtMs.delete(key);
    const { incarnation } = actor;
    const known = this.#watches.get(key);
    if (known?.incarnation === incarnation && !wasClosed) return;
    known?.stop();
    const watch: Watch = { incarnation, stop: () => {} };
    this.#watches.set(key, watch);
    // Without a connection, `#watchEnded` runs before this call returns.
    watch.stop = this.#context.watch(
      actor,
      (_error, end) => this.#watchEnded(key, actor, end),
    );
  }

  forget(key: K): void {
    this.closedAtMs.delete(key);
    this.#watches.get(key)?.stop();
    this.#watches.delete(key);
  }

  #watchEnded(key: K, actor: FencedRef, end: WatchEnd): void {
    // The member's next heartbeat starts a new watch.
    this.#watches.delete(key);
    if (end === "ended") this.#onEnded(key);
    else if (end === "closed") this.#closed(key, actor);
  }

  /** When the node reconnects, a new watch finds out whether the member still exists. */
  #closed(key: K, actor: FencedRef): void {
    this.closedAtMs.set(key, this.#context.world.nowMs());
    const stop = this.#context.whenLinked(actor.node, () => this.watch(key, actor));
    this.#watches.set(key, { incarnation: actor.incarnation, stop });
  }
}
