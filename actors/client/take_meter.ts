/**
 * Where a training loop's time goes: waiting for elements, or doing something with them.
 *
 * @module
 */

/** Counts that only grow. Time is one long row of waiting and training, cut by asking and getting. */
export class TakeMeter {
  readonly #nowMs: () => number;
  #elements = 0;
  #bytes = 0;
  #waitingMs = 0;
  #trainingMs = 0;
  #state: "before" | "waiting" | "training" = "before";
  #sinceMs = 0;

  /** @param nowMs Monotonic time. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** The loop asks for an element. */
  asked(): void {
    this.#turn("waiting");
  }

  /** It has got an element of so many bytes, or nothing that counts as one. */
  given(element?: { readonly bytes: number }): void {
    this.#turn("training");
    if (element === undefined) return;
    this.#elements++;
    this.#bytes += element.bytes;
  }

  /** Up to now. */
  get figures() {
    if (this.#state !== "before") this.#turn(this.#state);
    return {
      elements: this.#elements,
      bytes: this.#bytes,
      waitingMs: this.#waitingMs,
      trainingMs: this.#trainingMs,
    };
  }

  #turn(state: "waiting" | "training"): void {
    const nowMs = this.#nowMs();
    if (this.#state === "waiting") this.#waitingMs += nowMs - this.#sinceMs;
    else if (this.#state === "training") this.#trainingMs += nowMs - this.#sinceMs;
    this.#state = state;
    this.#sinceMs = nowMs;
  }
}
