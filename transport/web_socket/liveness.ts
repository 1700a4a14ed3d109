/** Detects that the other side of a connection is gone. */
import type { Timer, World } from "../../actors/runtime/world.ts";

/** Interval of the checks whether a frame has arrived, in ms. If not, the other side is pinged. */
const HEARTBEAT_MS = 5_000;
/**
 * Consecutive checks without a byte until the other side counts as dead. Checks are counted, and
 * not time, so that a thread that was busy itself does not blame its peers.
 */
const SILENT_BEATS_MAX = 4;

interface LivenessEvents {
  /** Asks the other side for a sign of life. */
  ping(): void;
  /** The other side counts as dead: it has sent nothing for `silentMs`. */
  silent(silentMs: number): void;
}

export class Liveness {
  readonly #world: World;
  readonly #events: LivenessEvents;
  readonly #heartbeatMs: number;
  #timer: Timer;
  #hasFrame = true;
  #hasBytes = true;
  #silentBeats = 0;

  constructor(world: World, events: LivenessEvents, heartbeatMs = HEARTBEAT_MS) {
    this.#world = world;
    this.#events = events;
    this.#heartbeatMs = heartbeatMs;
    this.#timer = this.#beatLater();
  }

  /** A frame has arrived, or the head of a large one. */
  noteFrame(): void {
    this.#hasFrame = true;
  }

  /** Bytes have arrived, perhaps only some of a frame: on a slow link, one may take many checks. */
  noteBytes(): void {
    this.#hasBytes = true;
  }

  cancel(): void {
    this.#timer.cancel();
  }

  #beatLater(): Timer {
    return this.#world.timer(this.#heartbeatMs, () => this.#beat());
  }

  #beat(): void {
    this.#silentBeats = this.#hasBytes ? 0 : this.#silentBeats + 1;
    if (this.#silentBeats >= SILENT_BEATS_MAX) {
      this.#events.silent(this.#silentBeats * this.#heartbeatMs);
      return;
    }
    // Also while a frame arrives: until its end, the sender hears nothing else from this side.
    if (!this.#hasFrame) this.#events.ping();
    this.#hasFrame = this.#hasBytes = false;
    this.#timer = this.#beatLater();
  }
}
