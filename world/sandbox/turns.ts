/**
 * The turns of a confined thread: whatever of a user runs there begins in one, and ends when its time
 * is up.
 *
 * Nobody can end a thread of Deno's that does not return to its event loop: it would keep a core for as
 * long as the process lives. The engine itself can end what runs in it, and the one way to have it do so
 * is the time limit of `node:vm`. That holds for what is called, not for the promises that settle by it,
 * so these are let run within the call, too. Nor does it hold for every loop that the engine's optimiser
 * has unrolled: where an inner one has a known number of rounds, as `new Array(1000).fill(1)` has, it may
 * leave out the checks of the outer one, too, at which both a limit of time and one of memory would end
 * it. A program that confines is run with `--v8-flags=--no-turboshaft-loop-unrolling`; it cannot be set
 * later, nor for a thread.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import { Script } from "node:vm";

/** The name under which a script finds what it is to run; no more can be done with it. */
const ENTRY = "leatTurn";
/** The longest limit that can be set, in ms. */
const LIMIT_MS_MAX = 2 ** 31 - 1;

/** Deno's types leave it out, and it might: then nothing is held to a limit after it has waited. */
const { internal } = Deno as unknown as { internal: symbol };
const { runMicrotasks } =
  (Deno as unknown as Record<symbol, { core?: { runMicrotasks?(): void } }>)[internal]?.core ?? {};

/** See the module. There is one on a thread. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #limited: () => void;
  readonly #onStalled: () => void;
  #isDue = false;
  #isUnderWay = false;
  #stalled = false;

  /**
   * @param limitMs How long a turn may take.
   * @param onStalled Called once, when one has taken longer. It was ended amid whatever it did, without
   * so much as its `finally`, so that there are no further turns.
   */
  constructor(limitMs: number, onStalled: () => void) {
    this.#onStalled = onStalled;
    // It can neither be replaced nor do anything outside of a turn.
    Object.defineProperty(globalThis, ENTRY, { value: () => this.#goOn() });
    const script = new Script(`${ENTRY}()`);
    const timeout = Math.min(Math.ceil(limitMs), LIMIT_MS_MAX);
    this.#limited = script.runInThisContext.bind(script, { timeout });
  }

  /** Whether what runs now runs in a turn. */
  get isUnderWay(): boolean {
    return this.#isUnderWay || runMicrotasks === undefined;
  }

  /** Resolves in the next turn, which timers and sockets have theirs before. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(() => this.#begin());
    });
  }

  #begin(): void {
    if (this.#stalled) return;
    this.#isDue = true;
    try {
      this.#limited();
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      this.#stalled = true;
      this.#isUnderWay = false;
      this.#onStalled();
    }
  }

  #goOn(): void {
    if (!this.#isDue) return;
    this.#isDue = false;
    this.#isUnderWay = true;
    const waiting = this.#waiting.splice(0);
    for (let i = 0; i < waiting.length; i++) {
      waiting[i]!();
      runMicrotasks?.();
    }
    this.#isUnderWay = false;
  }
}
