/** A client or worker on a node of its own, beside a dispatcher. */
import type { ActorContext } from "../../../../actors/runtime/actor.ts";
import { closedThere, type Link } from "../../../../actors/runtime/link.ts";
import type { FencedRef } from "../../../../actors/runtime/ref.ts";
import { ActorSystem } from "../../../../actors/runtime/system.ts";
import { LeatError } from "../../../../core/error.ts";
import { inlinePair } from "../../../../transport/inline.ts";
import { settle, type TestCluster } from "../lib.ts";

/** Why a link parts: without a close, or because the other end closed it. */
export const LOST = new LeatError("unavailable", "it has fallen silent");
export const CLOSED = closedThere(new LeatError("unavailable", "its process has ended"));

export const SOON = { timeoutMs: 60_000 };

export class RemoteMember implements AsyncDisposable {
  readonly cluster: TestCluster;
  protected readonly ref: FencedRef;
  protected context!: ActorContext;
  readonly #system: ActorSystem;
  readonly #name: string;
  #link: Link | undefined;

  /** @param name Of its actor. */
  constructor(cluster: TestCluster, name: string) {
    this.cluster = cluster;
    this.#name = name;
    this.#system = new ActorSystem({ node: "remote", world: cluster.world });
    this.ref = this.#system.spawn({
      name,
      create: (context: ActorContext) => {
        this.context = context;
        return { handlers: { wake: () => null } as never };
      },
    });
  }

  /** Opens a link between the two nodes. */
  join(): void {
    const { system, world } = this.cluster;
    const [here, there] = inlinePair(world, this.#system.id, world, system.id);
    this.#system.attach(here);
    system.attach(there);
    this.#link = here;
  }

  /** The link is gone, for that reason as the dispatcher has it. */
  async part(reason: LeatError): Promise<void> {
    this.#link!.close(reason);
    await settle();
  }

  /** The actor's life ends, without a word of its own. */
  end(): Promise<void> {
    return this.#system.stopActor(this.#name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#system.stop();
    await this.cluster[Symbol.asyncDispose]();
  }
}
