/** Measures what the training loop waits for, in windows of some elements. */
import type { StepWindow } from "../adapt.ts";
import type { Side } from "./items.ts";
import type { SideName } from "./ready_side.ts";

const NOTHING: StepWindow["waitMs"] = { local: 0, remote: 0, both: 0 };
/** A window has at least this many elements, and lasts at least this long. */
const ELEMENTS_MIN = 25;
const WINDOW_MS_MIN = 200;
/**
 * If workers gave this share less than training took of them, it uses up what they prepared earlier.
 * They then seem to be ahead though they cannot give so much for long: the window says nothing.
 */
const USED_UP_SHARE = 0.05;
/** A window in which training took no element for more than this share says nothing: it paused. */
const PAUSE_SHARE = 0.5;

/** What workers have given, in bytes. */
export interface Supply {
  /** What training has taken so far. */
  readonly takenBytes: number;
  /** What has arrived and was not taken yet. */
  readonly bufferedBytes: number;
}

const NO_SUPPLY: Supply = { takenBytes: 0, bufferedBytes: 0 };

/**
 * Sums the time waited for each side while the other one could give more. Where both work, both are
 * the bottleneck, whichever is asked: what comes from workers is also taken in late because this
 * host computes.
 */
export class WaitMeter {
  readonly #nowMs: () => number;
  #fromMs: number;
  #elements = 0;
  #waitMs = NOTHING;
  /** How many elements came from the other side instead. */
  #avoided = { local: 0, remote: 0 };
  /** When something was asked for or counted last, and the longest time until the next request. */
  #activeAtMs: number;
  #pauseMs = 0;
  #supply = NO_SUPPLY;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#fromMs = this.#activeAtMs = nowMs();
  }

  /** Waits for `pending`, an item of a side. @param other the other side, if there is one. */
  async during<T>(
    side: SideName,
    pending: Promise<T>,
    other: Side | undefined,
  ): Promise<T> {
    const fromMs = this.#nowMs();
    this.#pauseMs = Math.max(this.#pauseMs, fromMs - this.#activeAtMs);
    try {
      return await pending;
    } finally {
      const nowMs = this.#activeAtMs = this.#nowMs();
      const aheadMs = nowMs - Math.max(fromMs, other?.aheadSinceMs ?? nowMs);
      const { both } = this.#waitMs;
      this.#waitMs = {
        ...this.#waitMs,
        [side]: this.#waitMs[side] + aheadMs,
        both: both + nowMs - fromMs - aheadMs,
      };
    }
  }

  /**
   * The next element comes from the other side, because this one had none ready. This counts as a
   * wait for the length of a mean step.
   */
  avoided(side: SideName): void {
    this.#avoided[side]++;
  }

  /**
   * Counts an element. Returns the window that it ends, if any; the next one begins.
   * @param supplyNow what workers have given by now.
   */
  count(supplyNow: () => Supply = () => NO_SUPPLY): StepWindow | undefined {
    this.#activeAtMs = this.#nowMs();
    const elapsedMs = this.#activeAtMs - this.#fromMs;
    if (++this.#elements < ELEMENTS_MIN || elapsedMs < WINDOW_MS_MIN) return undefined;
    const isPaused = this.#pauseMs > PAUSE_SHARE * elapsedMs;
    const supply = supplyNow();
    const takenBytes = supply.takenBytes - this.#supply.takenBytes;
    const arrivedBytes = takenBytes + supply.bufferedBytes - this.#supply.bufferedBytes;
    const isUsedUp = arrivedBytes < (1 - USED_UP_SHARE) * takenBytes;
    this.#supply = supply;
    const { local, remote, both } = this.#waitMs;
    const stepMs = elapsedMs / this.#elements;
    const waitMs = {
      local: local + stepMs * this.#avoided.local,
      remote: remote + stepMs * this.#avoided.remote,
      both,
    };
    const window = { elements: this.#elements, elapsedMs, waitMs };
    this.#fromMs += elapsedMs;
    this.#elements = 0;
    this.#waitMs = NOTHING;
    this.#avoided = { local: 0, remote: 0 };
    this.#pauseMs = 0;
    const isWaitedFor = window.waitMs.remote > window.waitMs.local;
    return isPaused || isUsedUp && !isWaitedFor ? undefined : window;
  }
}
