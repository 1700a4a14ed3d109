/**
 * Detects clients whose process is gone, so that their tasks need not wait for the heartbeat
 * timeout.
 *
 * - The client's node reports that the actor has ended: the client is released.
 * - The connection was closed at the client's end. Its process has ended, or a proxy or firewall closed
 *   the connection. Both look alike, but a live client reconnects within seconds. So the client gets a
 *   grace time. Reconnecting ends the grace time, even without a new request: the runtime may answer a
 *   repeated request without the dispatcher.
 * - The connection timed out, or has no route. That says nothing about the client, so only the
 *   heartbeat timeout counts.
 *
 * Nothing is journaled: a restarted dispatcher treats every client as just heard.
 */
import type { ActorContext, WatchEnd } from "../../runtime/actor.ts";
import type { FencedRef } from "../../runtime/ref.ts";

/** A client's actor that is watched, or whose node may reconnect. */
interface Watch {
  readonly incarnation: string;
  stop: () => void;
}

export class ClientLinks {
  /** Clients whose connection was closed and that have not reconnected: when, in monotonic ms. */
  readonly closedAtMs = new Map<number, number>();
  readonly #context: ActorContext;
  readonly #onEnded: (clientId: number) => void;
  readonly #watches = new Map<number, Watch>();

  /** @param onEnded Called when a client's actor has ended. */
  constructor(context: ActorContext, onEnded: (clientId: number) => void) {
    this.#context = context;
    this.#onEnded = onEnded;
  }

  heard(clientId: number, client: FencedRef): void {
    const wasClosed = this.closedAtMs.delete(clientId);
    const { incarnation } = client;
    const known = this.#watches.get(clientId);
    if (known?.incarnation === incarnation && !wasClosed) return;
    known?.stop();
    const watch: Watch = { incarnation, stop: () => {} };
    this.#watches.set(clientId, watch);
    // Without a connection the watch ends before this call returns.
    watch.stop = this.#context.watch(client, (_error, end) => this.#over(clientId, client, end));
  }

  gone(clientId: number): void {
    this.closedAtMs.delete(clientId);
    this.#watches.get(clientId)?.stop();
    this.#watches.delete(clientId);
  }

  #over(clientId: number, client: FencedRef, end: WatchEnd): void {
    // The client's next request starts a new watch.
    this.#watches.delete(clientId);
    if (end === "ended") this.#onEnded(clientId);
    else if (end === "closed") this.#closed(clientId, client);
  }

  /** Waits until the node reconnects. The new watch then ends if the client is gone. */
  #closed(clientId: number, client: FencedRef): void {
    this.closedAtMs.set(clientId, this.#context.world.nowMs());
    const back = this.#context.whenLinked(client.node, () => this.heard(clientId, client));
    this.#watches.set(clientId, { incarnation: client.incarnation, stop: back });
  }
}
