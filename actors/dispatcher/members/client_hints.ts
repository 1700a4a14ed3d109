/**
 * Hints tell clients that their iteration has changed, so that they send a heartbeat at once. If a
 * hint is lost, the next regular heartbeat brings the change. Nothing is journaled. The answer to a
 * heartbeat may list every task, which is expensive. So one hint covers several changes, and hints
 * are sent in batches.
 */
import type { ClientProtocol } from "../../client/protocol.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { FencedRef } from "../../runtime/ref.ts";
import type { Transactions } from "../transactions.ts";

/** Pause between two batches of hints, in ms. */
const PAUSE_MS = 20;
/**
 * How many tasks the answers to one batch of hints may list together; each batch has at least one
 * hint. This allows 100,000 tasks a second, as many as the regular heartbeats of 1,000 clients list
 * that read 100 workers each.
 */
const TASKS_AT_ONCE = 2_000;
/**
 * A client gets at most this many hints between heartbeats: it may have stopped reading messages.
 */
const UNHEARD_MAX = 32;

interface Receiver {
  readonly client: FencedRef<ClientProtocol>;
  /** Hints since the client's last heartbeat. */
  hints: number;
}

export class ClientHints {
  readonly #context: ActorContext;
  readonly #transactions: Pick<Transactions, "state" | "whenDurable">;
  readonly #clients = new Map<number, Receiver>();
  /** Iterations that have changed since the last batch of hints. */
  readonly #changed = new Set<number>();
  /** Clients to send a hint to, longest waiting first. */
  readonly #due = new Set<number>();
  #scheduled = false;
  #nextMs = -Infinity;

  constructor(context: ActorContext, transactions: Pick<Transactions, "state" | "whenDurable">) {
    this.#context = context;
    this.#transactions = transactions;
  }

  /** A client sent a heartbeat: the answer has all changes, so it needs no hint now. */
  noteClient(clientId: number, client: FencedRef<ClientProtocol>): void {
    this.#clients.set(clientId, { client, hints: 0 });
    this.#due.delete(clientId);
  }

  forget(clientId: number): void {
    this.#clients.delete(clientId);
    this.#due.delete(clientId);
  }

  changed(iterationId: number): void {
    this.#changed.add(iterationId);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const delayMs = Math.max(0, this.#nextMs - this.#context.world.nowMs());
    this.#context.timer(delayMs, () => this.#transactions.whenDurable(() => this.#sendBatch()));
  }

  #sendBatch(): void {
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
      const receiver = this.#clients.get(clientId);
      const iterationId = state.clients.get(clientId)?.iterationId;
      if (receiver === undefined || iterationId === undefined) continue;
      if (++receiver.hints > UNHEARD_MAX) continue;
      this.#context.tell(receiver.client, "wake", null);
      tasks += Math.max(1, state.tasksOfIteration(iterationId).size);
    }
  }
}
