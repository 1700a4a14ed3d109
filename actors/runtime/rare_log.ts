/** Logs what others can cause as often as they like. */
import type { World } from "./world.ts";

/** How often there is a line for each name, in ms. */
const LOG_EVERY_MS = 10_000;
/** Names that have lines of their own; all others share theirs. */
const NAMES_MAX = 256;

export class RareLog {
  readonly #world: World;
  /** In the order of their last lines. */
  readonly #names = new Map<string | undefined, { untilMs: number; count: number }>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Logs one line for a name in {@linkcode LOG_EVERY_MS}, with the number of those left out. */
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

  /** The name; undefined if there are too many that had a line within the time. */
  #keyOf(name: string, nowMs: number): string | undefined {
    if (this.#names.has(name) || this.#names.size < NAMES_MAX) return name;
    const [oldest, { untilMs }] = this.#names.entries().next().value!;
    if (nowMs < untilMs) return undefined;
    this.#names.delete(oldest);
    return name;
  }
}
