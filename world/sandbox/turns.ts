/**
 * The turns of a confined thread: whatever runs there that may be a user's begins in one, and ends when
 * its time is up.
 *
 * Nobody can end a thread of Deno's that does not return to its event loop: it would keep a core for as
 * long as the process lives. The engine itself can end what runs in it, and the one way to have it do so
 * is the time limit of `node:vm`. That holds for what is called, not for the promises that settle by it,
 * so these are let run within the call, too.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import { Script } from "node:vm";

/** The name under which a script finds what it is to run; no more can be done with it. */
const ENTRY = "leatTurn";
/** The longest limit that can be set, in ms. */
const LIMIT_MS_MAX = 2 ** 31 - 1;

/** Deno's types leave it out. Without it what runs after an `await` is not held to the limit. */
const { runMicrotasks = () => {} } =
  (Deno as unknown as { [internal: symbol]: { core?: { runMicrotasks?: () => void } } })[
    (Deno as unknown as { internal: symbol }).internal
  ]?.core ?? {};

/** See the module. There is one on a thread. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #limited: () => void;
  readonly #onStalled: () => void;
  /** Whether the event loop has been asked for a turn. */
  #due = false;
  #entered = false;
  #stalled = false;

  /**
   * @param limitMs How long a turn may take.
   * @param onStalled Called once, when one has taken longer. It was ended amid whatever it did, without
   * so much as its `finally`, so that there are no further turns.
   */
  constructor(limitMs: number, onStalled: () => void) {
    this.#onStalled = onStalled;
    // It can neither be replaced nor do anything outside of a turn.
    Object.defineProperty(globalThis, ENTRY, { value: () => this.#enter() });
    const script = new Script(`${ENTRY}()`);
    const timeout = Math.min(Math.ceil(limitMs), LIMIT_MS_MAX);
    this.#limited = script.runInThisContext.bind(script, { timeout });
  }

  /** Runs something in a turn of its own or together with others, soon and in order. */
  run(stretch: () => void): void {
    this.#waiting.push(stretch);
    if (this.#due) return;
    this.#due = true;
    setImmediate(() => this.#turn());
  }

  /** The same promise, whose outcome comes in a turn. */
  after<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(
        (value) => this.run(() => resolve(value)),
        (error) => this.run(() => reject(error)),
      );
    });
  }

  #turn(): void {
    if (this.#stalled) return;
    this.#entered = true;
    try {
      this.#limited();
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      this.#stalled = true;
      this.#onStalled();
    }
  }

  #enter(): void {
    if (!this.#entered) return;
    this.#entered = false;
    this.#due = false;
    // What is added meanwhile is for the next turn: timers and sockets have theirs in between.
    for (let left = this.#waiting.length; left > 0; left--) {
      this.#waiting.shift()!();
      runMicrotasks();
    }
  }
}
