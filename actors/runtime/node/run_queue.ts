/** The scheduler of a node: queues the actors that have messages, and the envelopes between them. */
import { Fifo } from "../../../core/fifo.ts";
import type { Cell } from "../cell.ts";
import type { Envelope } from "../envelope.ts";
import { type Identity, SAME_PROCESS } from "../identity.ts";
import type { World } from "../world.ts";

/** Messages handled in one macrotask before timers and sockets run. */
const TURNS_PER_MACROTASK = 128;

export class RunQueue {
  readonly #world: World;
  readonly #deliver: (envelope: Envelope, sender: Identity) => void;
  readonly #local = new Fifo<Envelope>();
  readonly #runnable = new Fifo<Cell>();
  #scheduled = false;
  #draining = false;

  /** @param deliver Delivers an envelope, which may schedule a cell. */
  constructor(world: World, deliver: (envelope: Envelope, sender: Identity) => void) {
    this.#world = world;
    this.#deliver = deliver;
  }

  schedule(cell: Cell): void {
    if (cell.queued) return;
    cell.queued = true;
    this.#runnable.push(cell);
    if (!this.#draining) this.#wake();
  }

  /** Queues an envelope between two actors of the node. */
  push(envelope: Envelope): void {
    this.#local.push(envelope);
    this.#wake();
  }

  /** Delivers an envelope from a link at once, because links call this in a macrotask of their own. */
  receive(envelope: Envelope, sender: Identity): void {
    this.#deliver(envelope, sender);
    this.#drain(0);
  }

  #wake(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#world.macrotask(() => {
      this.#scheduled = false;
      this.#drain(this.#local.length);
    });
  }

  #drain(deliveries: number): void {
    if (this.#draining) return;
    this.#draining = true;
    try {
      this.#takeTurns(deliveries);
    } finally {
      this.#draining = false;
      if (this.#runnable.length > 0 || this.#local.length > 0) this.#wake();
    }
  }

  /** Runs cells, then delivers up to `deliveries` local envelopes and runs their cells. */
  #takeTurns(deliveries: number): void {
    let left = deliveries;
    const turnsMax = this.#world.fault("system.one_turn") ? 1 : TURNS_PER_MACROTASK;
    for (let steps = 0; steps < turnsMax; steps++) {
      const cell = this.#runnable.shift();
      if (cell !== undefined) {
        cell.queued = false;
        if (cell.turn()) this.schedule(cell);
        continue;
      }
      // Envelopes sent in this macrotask are delivered in a later one, as with every other carrier.
      const envelope = left-- > 0 ? this.#local.shift() : undefined;
      if (envelope === undefined) break;
      this.#deliver(envelope, SAME_PROCESS);
    }
  }
}
