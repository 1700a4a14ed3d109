/**
 * Deadlines of many asks on one timer. Most asks are answered long before their deadline, so adding
 * and removing must cost next to nothing, and what was removed must not linger.
 *
 * @module
 */
import type { Timer, World } from "./world.ts";

/** Deadlines are rounded up to a multiple of this, so that many share a bucket. */
const BUCKET_MS = 8;
/** Empty buckets that are kept. */
const SPARE_MAX = 16;

/** Calls back for each item whose deadline has passed; never early, late by at most one bucket. */
export class Deadlines<T> {
  readonly #world: World;
  readonly #expire: (item: T) => void;
  readonly #buckets = new Map<number, Set<T>>();
  /** Empty buckets, to be used again: most have one item, for a short while. */
  readonly #spare: Set<T>[] = [];
  #timer: Timer | undefined;
  #armedFor = Infinity;

  constructor(world: World, expire: (item: T) => void) {
    this.#world = world;
    this.#expire = expire;
  }

  /** Adds an item; the answer is what `remove` wants. */
  add(deadlineMs: number, item: T): number {
    const bucket = Math.ceil(deadlineMs / BUCKET_MS);
    let items = this.#buckets.get(bucket);
    if (items === undefined) this.#buckets.set(bucket, items = this.#spare.pop() ?? new Set());
    items.add(item);
    if (bucket < this.#armedFor) this.#arm(bucket);
    return bucket;
  }

  remove(bucket: number, item: T): void {
    const items = this.#buckets.get(bucket);
    if (items === undefined || !items.delete(item) || items.size > 0) return;
    this.#buckets.delete(bucket);
    if (this.#spare.length < SPARE_MAX) this.#spare.push(items);
    if (this.#buckets.size === 0) this.#disarm();
  }

  /** Forgets everything. */
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
    // A thread that was busy finds several buckets due at once: they expire in their order.
    const due = [...this.#buckets.keys()].filter((bucket) => bucket * BUCKET_MS <= now);
    for (const bucket of due.sort((a, b) => a - b)) {
      const items = this.#buckets.get(bucket) ?? [];
      this.#buckets.delete(bucket);
      for (const item of items) this.#expire(item);
    }
    let next = Infinity;
    for (const bucket of this.#buckets.keys()) next = Math.min(next, bucket);
    if (next < this.#armedFor) this.#arm(next);
  }
}
