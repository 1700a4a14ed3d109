/**
 * Clients whose process is gone, as far as can be seen: their tasks need not wait until their silence
 * has lasted for long enough. The dispatcher watches the actor that a client is.
 *
 * - Its node says that the actor has ended: nobody can read any more.
 * - The link was closed at the client's end. Its process has ended by whatever means, or somebody
 *   between has closed the connection (a proxy that is restarted, a firewall that has forgotten it): both
 *   look alike, a reset too, which is what the machine of a killed process sends where bytes were
 *   unread. But both ends learn of the latter, and a client that lives dials again within a second or
 *   two. So it is given a grace. The link is what counts: what it asks again over the new one may have
 *   been answered before, and is answered so without its dispatcher.
 * - The link has fallen silent, or there is no way to it: that says nothing of the client, which has
 *   until its silence counts.
 *
 * None of this is journaled: a dispatcher that starts has heard everybody just now.
 *
 * @module
 */
import type { ActorContext, WatchEnd } from "../../runtime/actor.ts";
import type { FencedRef } from "../../runtime/ref.ts";

/** A client's actor that is watched, or whose node is waited for. */
interface Watch {
  readonly incarnation: string;
  stop: () => void;
}

/** See the module. */
export class ClientLinks {
  /** When the links of clients were closed that have not come back since, in monotonic ms. */
  readonly closedMs = new Map<number, number>();
  readonly #context: ActorContext;
  readonly #onEnded: (clientId: number) => void;
  readonly #watches = new Map<number, Watch>();

  /** @param onEnded A client's actor has ended. */
  constructor(context: ActorContext, onEnded: (clientId: number) => void) {
    this.#context = context;
    this.#onEnded = onEnded;
  }

  /** A client has been heard of. */
  heard(clientId: number, client: FencedRef): void {
    const wasClosed = this.closedMs.delete(clientId);
    const { incarnation } = client;
    const known = this.#watches.get(clientId);
    if (known?.incarnation === incarnation && !wasClosed) return;
    known?.stop();
    const watch: Watch = { incarnation, stop: () => {} };
    this.#watches.set(clientId, watch);
    // Where there is no link any more, it is over before it has begun.
    watch.stop = this.#context.watch(client, (_error, end) => this.#over(clientId, client, end));
  }

  /** A client is released. */
  gone(clientId: number): void {
    this.closedMs.delete(clientId);
    this.#watches.get(clientId)?.stop();
    this.#watches.delete(clientId);
  }

  #over(clientId: number, client: FencedRef, end: WatchEnd): void {
    // Watched again when it is heard of again.
    this.#watches.delete(clientId);
    if (end === "ended") this.#onEnded(clientId);
    else if (end === "closed") this.#closed(clientId, client);
  }

  /** A node that is there again says itself if the client is not. */
  #closed(clientId: number, client: FencedRef): void {
    this.closedMs.set(clientId, this.#context.world.nowMs());
    const back = this.#context.whenLinked(client.node, () => this.heard(clientId, client));
    this.#watches.set(clientId, { incarnation: client.incarnation, stop: back });
  }
}
