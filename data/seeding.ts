/**
 * Seeding: where an operator that takes a seed of its own has its luck from.
 */
import type { RandomStream } from "../core/philox.ts";
import type { IteratorContext } from "./context.ts";
import { wholeState } from "./whole_state.ts";

/**
 * The seed of an operator. Two operators with the same one draw the same; without one an operator
 * draws its own luck from the pipeline's.
 */
export class Seeding {
  readonly seed: bigint | undefined;
  /** Whether every iteration and repetition draws anew. */
  readonly anewEachIteration: boolean;
  /** Drawn once when nobody chose a seed, but all iterations shall draw the same. */
  #drawn: bigint | undefined;

  constructor(seed: bigint | undefined, anewEachIteration: boolean) {
    this.seed = seed;
    this.anewEachIteration = anewEachIteration;
  }

  /** The luck of one iteration. */
  streamOf(context: IteratorContext): RandomStream {
    const epoch = this.anewEachIteration ? context.luck.epoch : 0;
    const seed = this.seed ?? this.drawnSeed(context);
    return seed === undefined ? context.randomStream(epoch) : context.seededStream(seed, epoch);
  }

  /** The seed that iterations share only because they shall draw the same; `undefined` for others. */
  drawnSeed(context: IteratorContext): bigint | undefined {
    if (this.seed !== undefined || this.anewEachIteration || context.luck.seeded) return undefined;
    return this.#drawn ??= context.host.entropy64();
  }

  /** Has later iterations share the seed of one that is restored. */
  adopt(drawnSeed: bigint): void {
    this.#drawn = drawnSeed;
  }
}

/** What is saved of `Draws`. */
interface DrawsState {
  readonly drawnSeed: bigint | undefined;
  /** How much was drawn. */
  readonly position: number;
}

/** What one iterator draws. */
export class Draws {
  readonly #seeding: Seeding;
  readonly #context: IteratorContext;
  #stream: RandomStream | undefined;

  constructor(seeding: Seeding, context: IteratorContext) {
    this.#seeding = seeding;
    this.#context = context;
  }

  /** The luck; made when it is first needed. */
  get stream(): RandomStream {
    return this.#stream ??= this.#seeding.streamOf(this.#context);
  }

  save(): DrawsState {
    return {
      drawnSeed: this.#seeding.drawnSeed(this.#context),
      position: this.#stream?.position ?? 0,
    };
  }

  /** Goes on from what `save()` answered. */
  restore(state: unknown): void {
    const { drawnSeed, position } = wholeState(state) as DrawsState;
    if (drawnSeed !== undefined) this.#seeding.adopt(drawnSeed);
    this.#stream = this.#seeding.streamOf(this.#context);
    this.#stream.seek(position);
  }
}
