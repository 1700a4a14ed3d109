/**
 * Deadlines of many asks on one timer. Most asks are answered long before their deadline, so adding
 * and removing must cost next to nothing, and what was removed must not linger.
 *
 * @module
 */
import type { Timer, World } from "./world.ts";

/** Deadlines are rounded up to a multiple of this, so that many share a bucket. */
const BUCKET_MS = 8;

/** Those that pass together, in the order in which they were added. */
interface Bucket<T> {
  readonly number: number;
  first: Deadline<T> | undefined;
  last: Deadline<T> | undefined;
}

/** A deadline that was added: what `remove` wants. It is linked to its neighbours, which costs no hashing. */
export interface Deadline<T> {
  readonly item: T;
  /** Undefined once it has passed or was removed. */
  bucket: Bucket<T> | undefined;
  before: Deadline<T> | undefined;
  after: Deadline<T> | undefined;
}

/** Calls back for each item whose deadline has passed; never early, late by at most one bucket. */
export class Deadlines<T> {
  readonly #world: World;
  readonly #expire: (item: T) => void;
  readonly #buckets = new Map<number, Bucket<T>>();
  #timer: Timer | undefined;
  #armedFor = Infinity;

  constructor(world: World, expire: (item: T) => void) {
    this.#world = world;
    this.#expire = expire;
  }

  /** Adds an item. */
  add(deadlineMs: number, item: T): Deadline<T> {
    const number = Math.ceil(deadlineMs / BUCKET_MS);
    let bucket = this.#buckets.get(number);
    if (bucket === undefined) {
      this.#buckets.set(number, bucket = { number, first: undefined, last: undefined });
    }
    const { last } = bucket;
    const deadline: Deadline<T> = { item, bucket, before: last, after: undefined };
    if (last === undefined) bucket.first = deadline;
    else last.after = deadline;
    bucket.last = deadline;
    if (number < this.#armedFor) this.#arm(number);
    return deadline;
  }

  remove(deadline: Deadline<T>): void {
    const { bucket, before, after } = deadline;
    if (bucket === undefined) return;
    deadline.bucket = undefined;
    if (before === undefined) bucket.first = after;
    else before.after = after;
    if (after === undefined) bucket.last = before;
    else after.before = before;
    if (bucket.first !== undefined) return;
    // One that is due has been taken out already.
    if (this.#buckets.get(bucket.number) === bucket) this.#buckets.delete(bucket.number);
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
    const due = [...this.#buckets.values()].filter(({ number }) => number * BUCKET_MS <= now);
    for (const bucket of due.sort((a, b) => a.number - b.number)) {
      // What an item does may remove others, even all of a bucket, and begin another of its number.
      if (this.#buckets.get(bucket.number) === bucket) this.#buckets.delete(bucket.number);
      for (let next; (next = bucket.first) !== undefined;) {
        this.remove(next);
        this.#expire(next.item);
      }
    }
    let next = Infinity;
    for (const bucket of this.#buckets.keys()) next = Math.min(next, bucket);
    if (next < this.#armedFor) this.#arm(next);
  }
}
