/**
 * Detects that a client's process is gone, sooner than by the heartbeat timeout.
 *
 * - The client's node reports that the actor has ended: the client is released.
 * - The connection was closed from the client's side, by the end of its process, or by a proxy or
 *   firewall. A live client reconnects within seconds, so the client is released only after a grace
 *   time. The grace time ends as soon as its node reconnects. The dispatcher must not wait for a
 *   request: if the client repeats an old one, the runtime may answer it alone.
 * - The connection timed out, or has no route. That says nothing about the client, so only the
 *   heartbeat timeout counts.
 *
 * Nothing is journaled: a restarted dispatcher watches a client from its next heartbeat on.
 */
import type { ActorContext, WatchEnd } from "../../runtime/actor.ts";
import type { FencedRef } from "../../runtime/ref.ts";

/** A watch on a client's actor, or the wait for its node to reconnect. */
interface Watch {
  readonly incarnation: string;
  stop: () => void;
}

export class ClientLinks {
  /** By client: when its connection was closed, in monotonic ms. Deleted when it reconnects. */
  readonly closedAtMs = new Map<number, number>();
  readonly #context: ActorContext;
  readonly #onEnded: (clientId: number) => void;
  readonly #watches = new Map<number, Watch>();

  /** @param onEnded Called when a client's actor has ended. */
  constructor(context: ActorContext, onEnded: (clientId: number) => void) {
    this.#context = context;
    this.#onEnded = onEnded;
  }

  /** Watches the client's actor, unless it is watched already. Ends a grace time. */
  watch(clientId: number, client: FencedRef): void {
    const wasClosed = this.closedAtMs.delete(clientId);
    const { incarnation } = client;
    const known = this.#watches.get(clientId);
    if (known?.incarnation === incarnation && !wasClosed) return;
    known?.stop();
    const watch: Watch = { incarnation, stop: () => {} };
    this.#watches.set(clientId, watch);
    // Without a connection, `#watchEnded` runs before this call returns.
    watch.stop = this.#context.watch(
      client,
      (_error, end) => this.#watchEnded(clientId, client, end),
    );
  }

  forget(clientId: number): void {
    this.closedAtMs.delete(clientId);
    this.#watches.get(clientId)?.stop();
    this.#watches.delete(clientId);
  }

  #watchEnded(clientId: number, client: FencedRef, end: WatchEnd): void {
    // The client's next heartbeat starts a new watch.
    this.#watches.delete(clientId);
    if (end === "ended") this.#onEnded(clientId);
    else if (end === "closed") this.#closed(clientId, client);
  }

  /** When the node reconnects, a new watch finds out whether the client still exists. */
  #closed(clientId: number, client: FencedRef): void {
    this.closedAtMs.set(clientId, this.#context.world.nowMs());
    const stop = this.#context.whenLinked(client.node, () => this.watch(clientId, client));
    this.#watches.set(clientId, { incarnation: client.incarnation, stop });
  }
}
