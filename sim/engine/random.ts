/** Draws seeded random numbers for everything that is simulated. */
import type { Random } from "../../actors/runtime/world.ts";
import { RandomStream } from "../../core/philox.ts";

/**
 * A stream of random numbers, identified by a seed and a path of labels. Forks do not affect each
 * other.
 */
export class SimRandom implements Random {
  readonly #stream: RandomStream;

  /** @param seed A seed, or a stream from which nothing else may draw. */
  constructor(seed: bigint | RandomStream) {
    this.#stream = typeof seed === "bigint" ? new RandomStream(seed) : seed;
  }

  next(): number {
    return this.#stream.next();
  }

  int(n: number): number {
    return this.#stream.int(n);
  }

  hex64(): string {
    return this.#word() + this.#word();
  }

  fork(label: string): SimRandom {
    return new SimRandom(this.#stream.fork(label));
  }

  /** Returns true with that probability. It always draws, so that later draws do not shift. */
  chance(probability: number): boolean {
    return this.#stream.next() < probability;
  }

  /** Draws uniformly from [min, max). */
  between(min: number, max: number): number {
    return min + (max - min) * this.#stream.next();
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.#stream.int(items.length)]!;
  }

  #word(): string {
    return this.#stream.int(2 ** 32).toString(16).padStart(8, "0");
  }
}
