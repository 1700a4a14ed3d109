/** A log with a limited rate, for events that peers can cause as often as they like. */
import type { World } from "./world.ts";

/** The shortest time between two lines of one name, in ms. */
const LOG_EVERY_MS = 10_000;
/** Names that are counted separately; all others share one entry. */
const NAMES_MAX = 256;

export class RareLog {
  readonly #world: World;
  /** In the order of their last lines. The key `undefined` is the shared entry. */
  readonly #names = new Map<string | undefined, { untilMs: number; count: number }>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Logs a line with the number left out, unless the name had one within `LOG_EVERY_MS`. */
  note(name: string, message: string): void {
    const nowMs = this.#world.nowMs();
    const key = this.#keyOf(name, nowMs);
    const known = this.#names.get(key);
    if (known !== undefined && nowMs < known.untilMs) {
      known.count++;
      return;
    }
    const more = known === undefined || known.count === 0 ? {} : { more: known.count };
    this.#world.log("warn", message, more);
    this.#names.delete(key);
    this.#names.set(key, { untilMs: nowMs + LOG_EVERY_MS, count: 0 });
  }

  /** The name; undefined if {@linkcode NAMES_MAX} others had a line within {@linkcode LOG_EVERY_MS}. */
  #keyOf(name: string, nowMs: number): string | undefined {
    if (this.#names.has(name) || this.#names.size < NAMES_MAX) return name;
    const [oldest, last] = this.#names.entries().next().value!;
    if (nowMs < last.untilMs) return undefined;
    this.#names.delete(oldest);
    // The new name's line says how many lines of the oldest were left out: no later one would.
    this.#names.set(name, last);
    return name;
  }
}
