/** Measures how a training loop spends its time: waiting for elements, or processing them. */

/** Samples are at least this many ms apart. "Recent" time begins at the oldest sample kept. */
const SAMPLE_EVERY_MS = 500;
const SAMPLES_KEPT = 4;

/** Counts that never decrease. Time alternates between waiting and training. */
export class ConsumerMeter {
  readonly #nowMs: () => number;
  #elements = 0;
  #bytes = 0;
  #waitingMs = 0;
  #trainingMs = 0;
  #decodingMs = 0;
  #skipped = 0;
  /** The samples kept, oldest first. */
  #samples: { readonly waitingMs: number; readonly trainingMs: number }[] = [];
  #state: "before" | "waiting" | "training" = "before";
  #sinceMs = 0;

  /** @param nowMs Monotonic time. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  asked(): void {
    this.#switchTo("waiting");
  }

  /**
   * The loop got an element. `skipped`: elements that it missed. Without an argument: it got
   * something that does not count as an element.
   */
  given(element?: { readonly bytes: number; readonly skipped?: number }): void {
    this.#switchTo("training");
    if (element === undefined) return;
    this.#elements++;
    this.#bytes += element.bytes;
    this.#skipped += element.skipped ?? 0;
  }

  /** Decoding the element took this long, in ms, while the loop could not continue. */
  decoded(ms: number): void {
    this.#decodingMs += ms;
    // Decoding is not the loop's own work.
    this.#sinceMs += ms;
  }

  /** How many elements the loop has got. Unlike `figures`, this ends no interval of time. */
  get elements(): number {
    return this.#elements;
  }

  /** The share of recent time, 0 to 1, in which the loop has waited. */
  get waitingShare(): number {
    const { waitingMs, trainingMs } = this.figures;
    const [oldest] = this.#samples;
    const waited = waitingMs - (oldest?.waitingMs ?? 0);
    const share = waited /
      Math.max(Number.MIN_VALUE, waited + trainingMs - (oldest?.trainingMs ?? 0));
    const last = this.#samples.at(-1);
    if (
      waitingMs + trainingMs - (last === undefined ? 0 : last.waitingMs + last.trainingMs) >
        SAMPLE_EVERY_MS
    ) {
      this.#samples = [...this.#samples, { waitingMs, trainingMs }].slice(-SAMPLES_KEPT);
    }
    return Math.min(1, share);
  }

  get figures() {
    if (this.#state !== "before") this.#switchTo(this.#state);
    return {
      elements: this.#elements,
      bytes: this.#bytes,
      waitingMs: this.#waitingMs,
      trainingMs: this.#trainingMs,
      decodingMs: this.#decodingMs,
      skipped: this.#skipped,
    };
  }

  #switchTo(state: "waiting" | "training"): void {
    const nowMs = this.#nowMs();
    if (this.#state === "waiting") this.#waitingMs += nowMs - this.#sinceMs;
    else if (this.#state === "training") this.#trainingMs += nowMs - this.#sinceMs;
    this.#state = state;
    this.#sinceMs = nowMs;
  }
}
