/** Measures which side the training loop waits for, in windows of some elements. */
import type { StepWindow } from "../adapt.ts";
import type { Side } from "./items.ts";
import type { SideName } from "./ready_side.ts";

const NOTHING: StepWindow["waitMs"] = { local: 0, remote: 0, both: 0 };
/** A window has at least this many elements, and lasts at least this long. */
const ELEMENTS_MIN = 25;
const WINDOW_MS_MIN = 200;
/**
 * If buffers supplied more than this share of what training took from workers, the window is dropped:
 * workers seem to be ahead, but cannot give this much for long.
 */
const USED_UP_SHARE = 0.05;
/** A window is dropped if training paused for more than this share of it. */
const PAUSE_SHARE = 0.5;

/** What workers have given, in bytes. */
export interface Supply {
  /** What training has taken so far. */
  readonly takenBytes: number;
  /** What has arrived and is not taken yet. */
  readonly bufferedBytes: number;
}

const NO_SUPPLY: Supply = { takenBytes: 0, bufferedBytes: 0 };

/**
 * Sums the time that training waits for each side while the other could give more. If both sides are
 * at work, both are the bottleneck, whichever training waits for: this host may be too busy to receive
 * what workers have sent.
 */
export class WaitMeter {
  readonly #nowMs: () => number;
  #fromMs: number;
  #elements = 0;
  #waitMs = NOTHING;
  /** How many elements came from the other side instead, by the side that the ratio wanted. */
  #avoided = { local: 0, remote: 0 };
  /** When an item last arrived or was counted, and the longest time from then to a request. */
  #activeAtMs: number;
  #pauseMs = 0;
  #supply = NO_SUPPLY;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#fromMs = this.#activeAtMs = nowMs();
  }

  /** Waits for `pending`, an item of a side. @param other The other side, if there is one. */
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
   * Notes that an element came from the other side, because this one had none ready. It counts as a
   * wait for this side, as long as a mean step.
   */
  avoided(side: SideName): void {
    this.#avoided[side]++;
  }

  /**
   * Counts an element. Returns the window that it ends, if any.
   * @param supplyNow Returns what workers have given so far.
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
