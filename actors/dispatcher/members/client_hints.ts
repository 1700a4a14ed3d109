/**
 * Hints to clients: that there is news of their iteration, so that they ask for it at once instead of
 * at their next regular heartbeat. A hint says nothing else, so one that is lost costs no more than
 * that wait, and whom to tell is not journaled: it is who sent the newest heartbeat.
 *
 * What a hint costs is the answer that it brings about, which may name every task of the iteration. So
 * changes that come fast are told together, and where there are many clients or tasks, the last of
 * the clients are told later.
 *
 * @module
 */
import type { ClientProtocol } from "../../client/protocol.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { FencedRef } from "../../runtime/ref.ts";
import type { Transactions } from "../transactions.ts";

/** Hints go out together, and then not again for so long, in ms. */
const PAUSE_MS = 20;
/**
 * Tasks that the answers to one such lot may name together; one client is told in any case. 100,000 a
 * second: the regular heartbeats of 1,000 clients that read 100 workers name as many.
 */
const TASKS_AT_ONCE = 2_000;

/** See the module. */
export class ClientHints {
  readonly #context: ActorContext;
  readonly #transactions: Pick<Transactions, "state" | "whenDurable">;
  readonly #clients = new Map<number, FencedRef<ClientProtocol>>();
  /** Iterations whose clients have not been told of the newest. */
  readonly #changed = new Set<number>();
  /** Clients that are to be told, those that have waited longest first. */
  readonly #due = new Set<number>();
  #scheduled = false;
  #nextMs = -Infinity;

  constructor(context: ActorContext, transactions: Pick<Transactions, "state" | "whenDurable">) {
    this.#context = context;
    this.#transactions = transactions;
  }

  /** A client has been heard of, and hears all there is in the answer. */
  heard(clientId: number, client: FencedRef<ClientProtocol>): void {
    this.#clients.set(clientId, client);
    this.#due.delete(clientId);
  }

  gone(clientId: number): void {
    this.#clients.delete(clientId);
    this.#due.delete(clientId);
  }

  /** There is news for the clients of an iteration. */
  changed(iterationId: number): void {
    this.#changed.add(iterationId);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const delayMs = Math.max(0, this.#nextMs - this.#context.world.nowMs());
    this.#context.timer(delayMs, () => this.#transactions.whenDurable(() => this.#tell()));
  }

  #tell(): void {
    const { state } = this.#transactions;
    this.#scheduled = false;
    this.#nextMs = this.#context.world.nowMs() + PAUSE_MS;
    for (const iterationId of this.#changed) {
      for (const { clientId } of state.clientsOfIteration(iterationId)) this.#due.add(clientId);
    }
    this.#changed.clear();
    let tasks = 0;
    for (const clientId of this.#due) {
      if (tasks >= TASKS_AT_ONCE) return this.#schedule();
      this.#due.delete(clientId);
      const client = this.#clients.get(clientId);
      const iterationId = state.clients.get(clientId)?.iterationId;
      if (client === undefined || iterationId === undefined) continue;
      this.#context.tell(client, "wake", null);
      tasks += Math.max(1, state.tasksOfIteration(iterationId).size);
    }
  }
}
