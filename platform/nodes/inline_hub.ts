/** Connects nodes of one thread by name. */
import type { Connector, Link, NodeId } from "../../actors/runtime/link.ts";
import type { ActorSystem } from "../../actors/runtime/system.ts";
import { LeatError } from "../../core/error.ts";
import { inlinePair } from "../../transport/inline.ts";

/** Connects two of the added systems when one first sends to the other. */
export class InlineHub {
  readonly #systems = new Map<string, ActorSystem>();
  readonly #links = new Map<ActorSystem, Set<Link>>();

  /** The connector to give to every system that will be added. */
  readonly connector: Connector = {
    connect: (node, local) => Promise.try(() => this.#join(node, local)),
  };

  /** Whether a node with that name is in this thread. */
  has(node: string): boolean {
    return this.#systems.has(node);
  }

  /** Makes a system reachable by its name. */
  add(system: ActorSystem): void {
    this.#systems.set(system.id.node, system);
    this.#links.set(system, new Set());
  }

  /** Disconnects a system from all others, as if its host had lost power. */
  cut(system: ActorSystem): void {
    if (this.#systems.get(system.id.node) === system) this.#systems.delete(system.id.node);
    const error = new LeatError("unavailable", `${system.id.node} was cut off`);
    for (const link of this.#links.get(system) ?? []) link.close(error);
    this.#links.delete(system);
  }

  #join(node: string, local: NodeId): Link {
    const target = this.#systems.get(node);
    const dialler = this.#systems.get(local.node);
    if (target === undefined || dialler === undefined) {
      throw new LeatError("unavailable", `There is no node "${node}" in this process`);
    }
    const [near, far] = inlinePair(dialler.world, local, target.world, target.id);
    for (const [system, link] of [[dialler, near], [target, far]] as const) {
      this.#links.get(system)?.add(link);
      link.closed.then(() => this.#links.get(system)?.delete(link));
    }
    target.attach(far);
    return near;
  }
}
