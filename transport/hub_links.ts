/** The links of one node to the other nodes of its hub (`thread_hub.ts`). */
import type { Link, NodeId } from "../actors/runtime/link.ts";
import { LeatError, type WireError } from "../core/error.ts";

/** Limit of the remembered ended nodes. */
const GONE_MAX = 1_024;

/** Why nodes ended; those that ended first are forgotten. */
export class GoneNodes {
  /** In wire form: an error keeps objects alive until its stack is read. */
  readonly #errors = new Map<string, WireError>();

  get(key: string): LeatError | undefined {
    const error = this.#errors.get(key);
    return error && LeatError.fromWire(error);
  }

  add(key: string, error: LeatError): void {
    this.#errors.set(key, error.toWire());
    if (this.#errors.size > GONE_MAX) this.#errors.delete(this.#errors.keys().next().value!);
  }

  delete(key: string): void {
    this.#errors.delete(key);
  }
}

export class HubLinks {
  readonly #links = new Map<string, Set<Link>>();
  /** By incarnation: links to it may still be opening. */
  readonly #gone = new GoneNodes();

  /** Adds a link. Closes it if the incarnation at its other end is known to have ended. */
  track(link: Link): void {
    const key = keyOf(link.remote);
    const gone = this.#gone.get(key);
    if (gone !== undefined) return link.close(gone);
    this.#links.getOrInsertComputed(key, () => new Set()).add(link);
    link.closed.then(() => {
      const tracked = this.#links.get(key);
      tracked?.delete(link);
      if (tracked?.size === 0) this.#links.delete(key);
    });
  }

  /** Closes all links to an incarnation that has ended. An incarnation never returns. */
  close(remote: NodeId, error: LeatError): void {
    const key = keyOf(remote);
    this.#gone.add(key, error);
    for (const link of this.#links.get(key) ?? []) link.close(error);
  }

  closeAll(error: LeatError): void {
    for (const links of this.#links.values()) for (const link of links) link.close(error);
  }
}

function keyOf({ node, incarnation }: NodeId): string {
  return `${node} ${incarnation}`;
}
