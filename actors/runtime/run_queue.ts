/**
 * Whose turn it is: the actors of a node that have messages to handle, and the envelopes that they send
 * to each other.
 *
 * @module
 */
import type { Cell } from "./cell.ts";
import type { Envelope } from "./envelope.ts";
import { Fifo } from "./fifo.ts";
import { type Identity, SAME_PROCESS } from "./identity.ts";
import type { World } from "./world.ts";

/** Turns taken in one macrotask before timers and sockets get their chance. */
const TURNS_PER_MACROTASK = 128;

export class RunQueue {
  readonly #world: World;
  readonly #deliver: (envelope: Envelope, sender: Identity) => void;
  readonly #local = new Fifo<Envelope>();
  readonly #runnable = new Fifo<Cell>();
  #scheduled = false;
  #draining = false;

  /** @param deliver Puts an envelope where it belongs, which may schedule a cell. */
  constructor(world: World, deliver: (envelope: Envelope, sender: Identity) => void) {
    this.#world = world;
    this.#deliver = deliver;
  }

  /** A cell has messages to handle. */
  schedule(cell: Cell): void {
    if (cell.queued) return;
    cell.queued = true;
    this.#runnable.push(cell);
    if (!this.#draining) this.#wake();
  }

  /** An envelope from one actor of the node to another. */
  push(envelope: Envelope): void {
    this.#local.push(envelope);
    this.#wake();
  }

  /** An envelope from a link: it is already a macrotask of its own. */
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

  /** Takes turns, then delivers up to `deliveries` local envelopes and takes the turns they cause. */
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
      // What is sent in this macrotask is delivered in a later one: the continuations of those who
      // sent it run first, as they do on every other carrier.
      const envelope = left-- > 0 ? this.#local.shift() : undefined;
      if (envelope === undefined) break;
      this.#deliver(envelope, SAME_PROCESS);
    }
  }
}
