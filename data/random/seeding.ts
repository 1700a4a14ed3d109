/** Seeding: where an operator with an optional seed gets its random numbers. */
import type { RandomStream } from "../../core/philox.ts";
import type { IteratorContext } from "../context.ts";
import type { Shared } from "../checkpoint/shared_state.ts";
import { wholeState } from "../checkpoint/whole_state.ts";

/**
 * The seed of an operator. Operators with the same seed draw the same; without one an operator
 * derives its random state from the pipeline's.
 */
export class Seeding implements Shared {
  readonly seed: bigint | undefined;
  /** Whether every iteration and repetition draws new numbers. */
  readonly anewEachIteration: boolean;
  /** Drawn once, if the user chose no seed and all iterations are to draw the same. */
  #drawn: bigint | undefined;
  /** The same for a dataset that a function made, as earlier versions drew and saved it. */
  #drawnInCall: bigint | undefined;

  constructor(seed: bigint | undefined, anewEachIteration: boolean) {
    this.seed = seed;
    this.anewEachIteration = anewEachIteration;
  }

  /** The random stream of one iteration. */
  streamOf(context: IteratorContext): RandomStream {
    const epoch = this.anewEachIteration ? context.randomState.epoch : 0;
    const seed = this.seed ?? this.#drawnSeed(context);
    return seed === undefined ? context.randomStream(epoch) : context.seededStream(seed, epoch);
  }

  /** Draws the seed if needed: later iterators are to draw the same as restored ones. */
  save(context: IteratorContext): unknown {
    const drawnSeed = this.#drawnSeed(context);
    return drawnSeed === undefined ? undefined : { drawnSeed };
  }

  /** Makes iterations share the seed of a restored one. */
  restore(state: unknown, context: IteratorContext): void {
    const { drawnSeed } = state as { drawnSeed: bigint };
    if (context.randomState.seeded) this.#drawnInCall = drawnSeed;
    else this.#drawn = drawnSeed;
  }

  /** The same with the state of a single iterator, which had the seed in it in earlier versions. */
  restoreFrom(state: object, context: IteratorContext): void {
    if ("drawnSeed" in state && state.drawnSeed !== undefined) this.restore(state, context);
  }

  keep(): () => void {
    const [drawn, drawnInCall] = [this.#drawn, this.#drawnInCall];
    return () => {
      this.#drawn = drawn;
      this.#drawnInCall = drawnInCall;
    };
  }

  /** The drawn seed that iterations share so that they draw the same; `undefined` in other cases. */
  #drawnSeed(context: IteratorContext): bigint | undefined {
    if (this.seed !== undefined || this.anewEachIteration) return undefined;
    if (context.randomState.seeded) return this.#drawnInCall;
    return this.#drawn ??= context.host.entropy64();
  }
}

/** The saved state of `Draws`. */
interface DrawsState {
  /** How much was drawn. */
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

  /** The random stream; created on demand. */
  get stream(): RandomStream {
    return this.#stream ??= this.#seeding.streamOf(this.#context);
  }

  save(): DrawsState {
    return { position: this.#stream?.position ?? 0 };
  }

  /** Resumes from a saved state. */
  restore(state: unknown): void {
    const saved = wholeState(state) as DrawsState;
    const { position } = saved;
    this.#seeding.restoreFrom(saved, this.#context);
    this.#stream = this.#seeding.streamOf(this.#context);
    this.#stream.seek(position);
  }
}
