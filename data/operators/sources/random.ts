/** `random`: an endless sequence of random integers. */
import { checkBoolean, checkSeed, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type Attributes, DatasetNode, registerNode } from "../../node.ts";
import { Draws, Seeding } from "../../random/seeding.ts";
import { TensorSpec } from "../../elements/spec.ts";
import type { Replicated } from "../../sharding/splits.ts";
import { IndexedIterator } from "./indexed.ts";

/** Options of `random`. */
export interface RandomOptions {
  /** The seed of the draws. Default: derived from that of `withOptions`. */
  readonly seed?: number | bigint | undefined;
  /** Whether every iteration and repetition gives other numbers; default false. */
  readonly rerandomizeEachIteration?: boolean | undefined;
}

export class RandomNode extends DatasetNode implements Replicated {
  static readonly options = optionsOf<RandomOptions>("random", {
    seed: true,
    rerandomizeEachIteration: true,
  });
  override readonly division = "whole";
  override readonly elementSpec = new TensorSpec("float64", []);
  override readonly cardinality = Infinity;
  readonly isReplicated = true;
  readonly seeding: Seeding;

  constructor({ seed, rerandomizeEachIteration }: RandomOptions = {}) {
    super("random", []);
    this.seeding = new Seeding(
      checkSeed("random", seed),
      checkBoolean("random", "rerandomizeEachIteration", rerandomizeEachIteration, false),
    );
  }

  override get drawsNumbers(): boolean {
    return this.seeding.seed === undefined;
  }

  override get attributes(): Attributes {
    const { seed, anewEachIteration } = this.seeding;
    return { seed, rerandomizeEachIteration: anewEachIteration };
  }

  override get shared(): Seeding {
    return this.seeding;
  }

  override makeIterator(context: IteratorContext): RandomIterator {
    return new RandomIterator(context, this.seeding);
  }
}

registerNode("random", { fromWire: (a) => new RandomNode(a) });

/** The exclusive bound of the numbers. */
const NUMBERS = 2 ** 32;

class RandomIterator extends IndexedIterator {
  readonly #draws: Draws;

  constructor(context: IteratorContext, seeding: Seeding) {
    super(context, Infinity);
    this.#draws = new Draws(seeding, context);
  }

  /** Each element takes one word of the stream, so its index is its position there. */
  protected override at(index: number): number {
    const { stream } = this.#draws;
    stream.seek(index);
    return stream.int(NUMBERS);
  }

  protected override async saveState(): Promise<unknown> {
    return { draws: this.#draws.save(), indexed: await super.saveState() };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { draws, indexed } = state as { draws: unknown; indexed: unknown };
    this.#draws.restore(draws);
    await super.restoreState(indexed);
  }
}
