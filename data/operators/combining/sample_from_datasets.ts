/** `sampleFromDatasets`: elements of several datasets at random. */
import type { Dataset } from "../../dataset.ts";
import { isTypedArray } from "../../../core/dtype.ts";
import { Tensor } from "../../../core/tensor.ts";
import { checkBoolean, checkSeed, invalidArgument, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type ElementIterator, END } from "../../iterator.ts";
import {
  type Attributes,
  type Changeable,
  DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import { Draws, Seeding } from "../../random/seeding.ts";
import { commonSpec, type ElementSpec } from "../../elements/spec.ts";
import type { Replicated } from "../../sharding/splits.ts";
import type { OperatorMeter } from "../../iterators/stats.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";
import { DirectedIterator, type Selector } from "./directed.ts";

const KIND = "sampleFromDatasets";

export type SampleAttributes = Omit<SampleFromDatasetsOptions, "weights">;

/** Options of `sampleFromDatasets`. */
export interface SampleFromDatasetsOptions {
  /**
   * How often each dataset is drawn, relative to the others. A dataset of such arrays gives new
   * weights for each draw. Default: all equally often.
   */
  readonly weights?: readonly number[] | Dataset<unknown>;
  /** The seed of the draws. Default: derived from that of `withOptions`. */
  readonly seed?: number | bigint | undefined;
  /** Whether every iteration and repetition makes new draws. Default false. */
  readonly rerandomizeEachIteration?: boolean | undefined;
  /**
   * Whether it ends when a dataset that has ended is drawn; otherwise the others continue. Default
   * false.
   */
  readonly stopOnEmptyDataset?: boolean | undefined;
}

export class SampleFromDatasetsNode extends DatasetNode implements Replicated {
  static readonly options = optionsOf<SampleFromDatasetsOptions>("sampleFromDatasets", {
    weights: true,
    seed: true,
    stopOnEmptyDataset: true,
    rerandomizeEachIteration: true,
  });
  override readonly division = "whole";
  /** How many inputs are sampled. If a dataset gives the weights, it is one more input, the last. */
  readonly count: number;
  readonly weights: readonly number[] | undefined;
  readonly stopOnEmptyDataset: boolean;
  readonly seeding: Seeding;
  override readonly elementSpec: ElementSpec;

  /** `weights`: one for each dataset, or the node of a dataset of such arrays. Default: equal ones. */
  constructor(
    datasets: readonly DatasetNode[],
    weights: unknown,
    { seed, rerandomizeEachIteration, stopOnEmptyDataset }: SampleAttributes = {},
  ) {
    super(KIND, weights instanceof DatasetNode ? [...datasets, weights] : datasets);
    this.count = datasets.length;
    if (this.count === 0) throw invalidArgument(KIND, "datasets", "at least one", datasets);
    if (weights === undefined) this.weights = datasets.map(() => 1);
    else if (!(weights instanceof DatasetNode)) {
      this.weights = checkWeights("weights", weights, this.count);
    }
    this.stopOnEmptyDataset = checkBoolean(KIND, "stopOnEmptyDataset", stopOnEmptyDataset, false);
    this.seeding = new Seeding(
      checkSeed(KIND, seed),
      checkBoolean(KIND, "rerandomizeEachIteration", rerandomizeEachIteration, false),
    );
    this.elementSpec = commonSpec(KIND, datasets.map((dataset) => dataset.elementSpec));
  }

  override get drawsNumbers(): boolean {
    return this.seeding.seed === undefined;
  }

  override get attributes(): Attributes {
    return {
      weights: this.weights,
      seed: this.seeding.seed,
      rerandomizeEachIteration: this.seeding.anewEachIteration,
      stopOnEmptyDataset: this.stopOnEmptyDataset,
    };
  }

  /** Exact if each dataset is sampled to its end. */
  override get cardinality(): number {
    const { weights, stopOnEmptyDataset } = this;
    if (weights === undefined) {
      return this.inputs[this.count]!.cardinality === 0 ? 0 : UNKNOWN_CARDINALITY;
    }
    const all = this.inputs.filter((_, i) => weights[i]! > 0).map((input) => input.cardinality);
    if (stopOnEmptyDataset) {
      return all.every((count) => count === Infinity) ? Infinity : UNKNOWN_CARDINALITY;
    }
    if (all.includes(Infinity)) return Infinity;
    if (all.includes(UNKNOWN_CARDINALITY)) return UNKNOWN_CARDINALITY;
    return all.reduce((sum, count) => sum + count, 0);
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }

  /** Each task that reads splits gets all weights, from the first on. */
  get replicatedInput(): number | undefined {
    return this.weights === undefined ? this.count : undefined;
  }

  override get shared(): Seeding {
    return this.seeding;
  }

  override makeIterator(context: IteratorContext): DirectedIterator {
    const { count, weights } = this;
    const draws = new Draws(this.seeding, context);
    const varying = weights === undefined ? context.makeInput(count) : undefined;
    return new DirectedIterator(
      context,
      count,
      this.stopOnEmptyDataset,
      (isOpen) => {
        const sampler = new Sampler(draws, isOpen);
        return varying === undefined
          ? fixedWeights(sampler, weights!)
          : varyingWeights(sampler, varying, count, context.stats);
      },
    );
  }
}

registerNode(KIND, {
  fromWire: (a, inputs) =>
    a.weights === undefined
      ? new SampleFromDatasetsNode(inputs.slice(0, -1), inputs.at(-1), a)
      : new SampleFromDatasetsNode(inputs, a.weights, a),
});

function checkWeights(argument: string, weights: unknown, count: number): number[] {
  const values = weights instanceof Tensor ? weights.data : weights;
  if (Array.isArray(values) || isTypedArray(values)) {
    const numbers = Array.from(values as ArrayLike<unknown>);
    const isWeight = (value: unknown) =>
      typeof value === "number" && Number.isFinite(value) && value >= 0;
    if (numbers.length === count && numbers.every(isWeight)) {
      const sum = (numbers as number[]).reduce((a, b) => a + b, 0);
      if (sum > 0 && sum < Infinity) return numbers as number[];
    }
  }
  const wanted = `${count} numbers of at least 0, not all 0, with a finite sum`;
  throw invalidArgument(KIND, argument, wanted, weights instanceof Tensor ? values : weights);
}

/** Draws by weight among the inputs that have not ended. */
class Sampler {
  readonly draws: Draws;
  readonly #isOpen: (index: number) => boolean;

  constructor(draws: Draws, isOpen: (index: number) => boolean) {
    this.draws = draws;
    this.#isOpen = isOpen;
  }

  /** The index of an input; `undefined` if all inputs with a weight above 0 have ended. */
  draw(weights: readonly number[]): number | undefined {
    let sum = 0;
    let last: number | undefined;
    for (let i = 0; i < weights.length; i++) {
      if (weights[i]! === 0 || !this.#isOpen(i)) continue;
      sum += weights[i]!;
      last = i;
    }
    if (last === undefined) return undefined;
    let at = this.draws.stream.next() * sum;
    for (let i = 0; i < last; i++) {
      if (!this.#isOpen(i)) continue;
      at -= weights[i]!;
      if (at < 0) return i;
    }
    return last; // rounding may leave a remainder
  }
}

function fixedWeights(sampler: Sampler, weights: readonly number[]): Selector {
  return {
    select: () => sampler.draw(weights) ?? END,
    save: () => Promise.resolve(sampler.draws.save()),
    restore: (state) => Promise.resolve(sampler.draws.restore(state)),
    release: () => {},
  };
}

/** Takes the weights of each draw from a dataset, and ends when that ends. */
function varyingWeights(
  sampler: Sampler,
  input: ElementIterator,
  count: number,
  stats: OperatorMeter,
): Selector {
  const checked = (weights: unknown) => {
    try {
      return checkWeights("weights of a draw", weights, count);
    } catch (error) {
      throw stats.failed(error);
    }
  };
  const draw = (weights: unknown) =>
    weights === END ? END : sampler.draw(checked(weights)) ?? AGAIN;
  return {
    select: () => {
      const weights = input.next();
      return weights instanceof Promise ? weights.then(draw) : draw(weights);
    },
    save: async () => ({ draws: sampler.draws.save(), input: await input.save() }),
    restore: async (state) => {
      const whole = wholeState(state) as { draws: unknown; input: unknown };
      sampler.draws.restore(whole.draws);
      await input.restore(whole.input);
    },
    release: () => input.dispose(),
  };
}
