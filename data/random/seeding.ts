/** Seeding: where an operator with an optional seed gets its random numbers. */
import type { RandomStream } from "../../core/philox.ts";
import type { IteratorContext } from "../context.ts";
import type { Shared } from "../checkpoint/shared_state.ts";
import { wholeState } from "../checkpoint/whole_state.ts";

/**
 * The seed of an operator. Operators with the same seed draw the same numbers. An operator without one
 * derives its random state from the pipeline's.
 */
export class Seeding implements Shared {
  readonly seed: bigint | undefined;
  /** Whether every iteration and repetition draws new numbers. */
  readonly anewEachIteration: boolean;
  /** The seed drawn once for all iterations, if the user chose none and they are to draw the same. */
  #drawn: bigint | undefined;

  constructor(seed: bigint | undefined, anewEachIteration: boolean) {
    this.seed = seed;
    this.anewEachIteration = anewEachIteration;
  }

  streamOf(context: IteratorContext): RandomStream {
    const epoch = this.anewEachIteration ? context.randomState.epoch : 0;
    const seed = this.seed ?? this.#drawnSeed(context);
    return seed === undefined ? context.randomStream(epoch) : context.seededStream(seed, epoch);
  }

  /**
   * Draws the seed if it is not drawn yet, because later iterations must draw the same as restored
   * ones.
   */
  save(context: IteratorContext): unknown {
    const drawnSeed = this.#drawnSeed(context);
    return drawnSeed === undefined ? undefined : { drawnSeed };
  }

  /** Makes iterations share the seed of a restored one. */
  restore(state: unknown): void {
    this.#drawn = (state as { drawnSeed: bigint }).drawnSeed;
  }

  keep(): () => void {
    const drawn = this.#drawn;
    return () => {
      this.#drawn = drawn;
    };
  }

  /** The drawn seed that iterations share so that they draw the same; `undefined` in other cases. */
  #drawnSeed(context: IteratorContext): bigint | undefined {
    const isDerived = this.anewEachIteration || context.randomState.seeded;
    if (this.seed !== undefined || isDerived) return undefined;
    return this.#drawn ??= context.host.entropy64();
  }
}

interface DrawsState {
  /** How many words of the stream were drawn. */
  readonly position: number;
}

/** The random numbers that one iterator draws. */
export class Draws {
  readonly #seeding: Seeding;
  readonly #context: IteratorContext;
  #stream: RandomStream | undefined;

  constructor(seeding: Seeding, context: IteratorContext) {
    this.#seeding = seeding;
    this.#context = context;
  }

  get stream(): RandomStream {
    return this.#stream ??= this.#seeding.streamOf(this.#context);
  }

  save(): DrawsState {
    return { position: this.#stream?.position ?? 0 };
  }

  restore(state: unknown): void {
    const { position } = wholeState(state) as DrawsState;
    this.#stream = this.#seeding.streamOf(this.#context);
    this.#stream.seek(position);
  }
}
