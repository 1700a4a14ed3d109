/** The state of a cluster as seen from outside: which workers are alive, and what each has served. */
import type { DispatcherDescription } from "../../mod.ts";
import type { ClientHome } from "../../actors/client/starting.ts";
import { nodeActorOf } from "../../actors/runtime/node/node_actor.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import { openHome } from "../../platform/nodes/client_homes.ts";

/** Time limit for one request, in ms. It is short: a dead worker must not block the view. */
const REQUEST_TIMEOUT_MS = 1_000;

/** What one worker has done, according to its last answer. */
export interface WorkerFigures {
  alive: boolean;
  /** Batches that clients have fetched. */
  served: number;
}

/** Requests figures from the dispatcher and the workers. */
export class Observer implements Disposable {
  readonly #home: ClientHome;
  /** The figures of each worker, by name. */
  readonly workers = new Map<string, WorkerFigures>();
  description: DispatcherDescription | undefined;

  constructor(service: string, token: string) {
    this.#home = openHome(service, { token });
  }

  /** Requests all figures again. A node that does not answer keeps its last figures. */
  async refresh(): Promise<void> {
    const { system, dispatcher } = this.#home;
    try {
      this.description = await system.ask(dispatcher, "describe", null, {
        timeoutMs: REQUEST_TIMEOUT_MS,
      });
    } catch {
      return;
    }
    await Promise.all(this.description.workers.map(async ({ name, alive, ref }) => {
      const figures = this.workers.getOrInsert(name, { alive, served: 0 });
      figures.alive = alive;
      if (alive) figures.served = await this.#served(ref.node).catch(() => figures.served);
    }));
  }

  /** How many splits of all jobs were assigned, and how many there are. */
  get splits(): { readonly handedOut: number; readonly total: number } {
    const all = (this.description?.jobs ?? []).flatMap((job) =>
      job.iterations.flatMap((iteration) => iteration.splits)
    );
    return {
      handedOut: all.reduce((sum, { handedOut }) => sum + handedOut, 0),
      total: all.reduce((sum, { total }) => sum + total, 0),
    };
  }

  [Symbol.dispose](): void {
    this.#home.release();
  }

  async #served(node: string): Promise<number> {
    const { system } = this.#home;
    const limits = { timeoutMs: REQUEST_TIMEOUT_MS };
    const actors = await system.ask(nodeActorOf(node), "list", null, limits);
    const stats = await Promise.all(
      actors.filter(({ kind }) => kind === "task").map(({ ref }) =>
        system.ask(ref as Ref<ElementSourceProtocol>, "stats", null, limits)
      ),
    );
    return stats.reduce((sum, { served }) => sum + served, 0);
  }
}
