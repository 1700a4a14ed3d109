/**
 * The links of one node of a hub.
 *
 * @module
 */
import type { Link, NodeId } from "../actors/runtime/link.ts";
import type { LeatError } from "../core/error.ts";

/** The links of a node that lead to other nodes of a hub, to be closed when one of those is gone. */
export class HubLinks {
  readonly #links = new Map<string, Set<Link>>();

  track(link: Link): void {
    const key = keyOf(link.remote);
    const links = this.#links.get(key);
    if (links === undefined) this.#links.set(key, new Set([link]));
    else links.add(link);
    link.closed.then(() => {
      const tracked = this.#links.get(key);
      tracked?.delete(link);
      if (tracked?.size === 0) this.#links.delete(key);
    });
  }

  close(remote: NodeId, error: LeatError): void {
    for (const link of this.#links.get(keyOf(remote)) ?? []) link.close(error);
  }

  closeAll(error: LeatError): void {
    for (const links of this.#links.values()) for (const link of links) link.close(error);
  }
}

function keyOf({ node, incarnation }: NodeId): string {
  return `${node} ${incarnation}`;
}
