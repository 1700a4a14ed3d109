/** `globalShuffle`: all elements in random order, each fetched by its index when it is due. */
import { checkBoolean, checkSeed, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import type { ElementIterator } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { Permutation } from "../../random/permutation.ts";
import { checkRandomAccess } from "../../random_access.ts";
import { Seeding } from "../../random/seeding.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import { IndexedIterator, IndexedNode } from "../sources/indexed.ts";
import type { ShuffleOptions } from "./shuffle.ts";

/**
 * Divided like a source: a split is a part of the permutation. Every task can read the whole input.
 */
export class GlobalShuffleNode extends IndexedNode {
  static readonly options = optionsOf<ShuffleOptions>("globalShuffle", {
    seed: true,
    reshuffleEachIteration: true,
  });
  readonly seeding: Seeding;

  constructor(input: DatasetNode, options: ShuffleOptions = {}) {
    super("globalShuffle", [checkRandomAccess("globalShuffle", input)]);
    const { seed, reshuffleEachIteration } = options;
    this.seeding = new Seeding(
      checkSeed("globalShuffle", seed),
      checkBoolean("globalShuffle", "reshuffleEachIteration", reshuffleEachIteration, true),
    );
  }

  override get drawsNumbers(): boolean {
    return this.seeding.seed === undefined;
  }

  override get attributes(): Attributes {
    const { seed, anewEachIteration } = this.seeding;
    return { seed, reshuffleEachIteration: anewEachIteration };
  }

  override get elementSpec(): ElementSpec {
    return this.inputs[0]!.elementSpec;
  }

  override get cardinality(): number {
    return this.inputs[0]!.cardinality;
  }

  override get shared(): Seeding {
    return this.seeding;
  }

  override makeIterator(context: IteratorContext): GlobalShuffleIterator {
    return new GlobalShuffleIterator(context, this);
  }
}

registerNode("globalShuffle", { fromWire: (a, [input]) => new GlobalShuffleNode(input!, a) });

class GlobalShuffleIterator extends IndexedIterator {
  readonly #node: GlobalShuffleNode;
  /**
   * The context without splits, because all splits are parts of one permutation of the whole input.
   */
  readonly #context: IteratorContext;
  readonly #input: ElementIterator;
  #permutation: Permutation | undefined;

  constructor(context: IteratorContext, node: GlobalShuffleNode) {
    super(context, node.cardinality);
    this.#node = node;
    this.#context = context.unsplit();
    this.#input = this.#context.makeInput();
  }

  protected override at(position: number): unknown {
    const { seeding, cardinality, inputs } = this.#node;
    this.#permutation ??= new Permutation(cardinality, seeding.streamOf(this.#context));
    return this.#input.again(inputs[0]!.tokenAt(this.#permutation.at(position)));
  }

  protected override release(): void {
    super.release();
    this.#input.dispose();
  }
}
