/**
 * Deadlines of many asks on one timer. Most asks are answered long before their deadline, so adding
 * and removing must be almost free, and removed items must not stay in memory.
 */
import { Groups, type Member } from "./groups.ts";
import type { Timer, World } from "../world.ts";

/** Deadlines are rounded up to a multiple of this, so that many share a bucket. */
const BUCKET_MS = 8;

/** An added deadline, to be passed to `remove`. */
export type Deadline<T> = Member<number, T>;

/** Calls back for items whose deadline has passed: never early, usually one bucket late at most. */
export class Deadlines<T> {
  readonly #world: World;
  readonly #expire: (item: T) => void;
  readonly #buckets = new Groups<number, T>();
  #timer: Timer | undefined;
  #armedFor = Infinity;

  constructor(world: World, expire: (item: T) => void) {
    this.#world = world;
    this.#expire = expire;
  }

  /** Adds an item. @param deadlineMs On the world's monotonic clock. */
  add(deadlineMs: number, item: T): Deadline<T> {
    const bucket = Math.ceil(deadlineMs / BUCKET_MS);
    const deadline = this.#buckets.add(bucket, item);
    if (bucket < this.#armedFor) this.#arm(bucket);
    return deadline;
  }

  remove(deadline: Deadline<T>): void {
    this.#buckets.remove(deadline);
    if (this.#buckets.size === 0) this.#disarm();
  }

  clear(): void {
    this.#buckets.clear();
    this.#disarm();
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#armedFor = Infinity;
  }

  #arm(bucket: number): void {
    this.#timer?.cancel();
    this.#armedFor = bucket;
    const delayMs = Math.max(0, bucket * BUCKET_MS - this.#world.nowMs());
    this.#timer = this.#world.timer(delayMs, () => this.#sweep());
  }

  #sweep(): void {
    this.#disarm();
    const now = this.#world.nowMs();
    // If the thread was busy, several buckets may be due: they expire in order.
    const numbers = [...this.#buckets.keys()].filter((number) => number * BUCKET_MS <= now);
    // A callback may remove items. It may add items that are due: they expire in the next sweep.
    const due = numbers.sort((a, b) => a - b).flatMap((number) => this.#buckets.of(number));
    for (const deadline of due) {
      if (this.#buckets.remove(deadline)) this.#expire(deadline.item);
    }
    let next = Infinity;
    for (const bucket of this.#buckets.keys()) next = Math.min(next, bucket);
    if (next < this.#armedFor) this.#arm(next);
  }
}
