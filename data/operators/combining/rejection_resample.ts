/** `rejectionResample`: drops elements at random, so that classes have the wanted frequencies. */
import type { ElementFunction, FunctionOptions } from "../../dataset_types.ts";
import { LeatError } from "../../../core/error.ts";
import { Call, NodeFunction } from "../../udf/call.ts";
import { checkArray, checkSeed, invalidArgument, optionsOf, show } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { END } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { Draws, Seeding } from "../../random/seeding.ts";
import { type ElementSpec, TensorSpec } from "../../elements/spec.ts";
import type { Captures } from "../../udf/user_function.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { UnaryNode } from "../unary.ts";

const KIND = "rejectionResample";

/** The options without the function. */
export type ResampleAttributes = Omit<
  RejectionResampleOptions<never, Captures>,
  "classOf" | "captures"
>;

/** Options of `rejectionResample`. */
export interface RejectionResampleOptions<T, C extends Captures> extends FunctionOptions<C> {
  /** The class of an element: an index into `targetDist`. */
  readonly classOf: ElementFunction<T, number | bigint | Promise<number | bigint>, C>;
  /** The wanted frequency of each class, relative to the others. */
  readonly targetDist: readonly number[];
  /** The actual frequency of each class. Default: estimated from the elements so far. */
  readonly initialDist?: readonly number[] | undefined;
  /** The seed of the draws. Default: derived from that of `withOptions`. */
  readonly seed?: number | bigint | undefined;
}

export class RejectionResampleNode extends UnaryNode {
  static readonly options = optionsOf<RejectionResampleOptions<unknown, Captures>>(
    "rejectionResample",
    { classOf: true, targetDist: true, initialDist: true, seed: true, captures: true },
  );
  override readonly division = "whole";
  readonly classOf: NodeFunction;
  readonly targetDist: readonly number[];
  readonly initialDist: readonly number[] | undefined;
  readonly seeding: Seeding;

  constructor(input: DatasetNode, classOf: NodeFunction, options: ResampleAttributes) {
    super(KIND, input);
    this.classOf = classOf;
    this.targetDist = checkDistribution("targetDist", options.targetDist);
    this.initialDist = options.initialDist === undefined
      ? undefined
      : checkDistribution("initialDist", options.initialDist);
    this.seeding = new Seeding(checkSeed(KIND, options.seed), true);
    this.#checkReachable();
  }

  override get drawsNumbers(): boolean {
    return this.seeding.seed === undefined;
  }

  override get attributes(): Attributes {
    const { classOf, targetDist, initialDist, seeding } = this;
    return { classOf, targetDist, initialDist, seed: seeding.seed };
  }

  override get elementSpec(): ElementSpec {
    return [new TensorSpec("float64", []), this.input.elementSpec];
  }

  override makeIterator(context: IteratorContext): ResampleIterator {
    return new ResampleIterator(context, this);
  }

  #checkReachable(): void {
    const { initialDist, targetDist } = this;
    if (initialDist === undefined) return;
    if (initialDist.length !== targetDist.length) {
      const wanted = `as long as targetDist (${targetDist.length})`;
      throw invalidArgument(KIND, "initialDist", wanted, initialDist);
    }
    const missing = targetDist.findIndex((target, i) => target > 0 && initialDist[i] === 0);
    if (missing >= 0) {
      const wanted = `above 0 for class ${missing}, which targetDist wants`;
      throw invalidArgument(KIND, "initialDist", wanted, initialDist);
    }
  }
}

registerNode(KIND, {
  fromWire: (a, [input]) =>
    new RejectionResampleNode(
      input!,
      NodeFunction.among(a, "classOf"),
      a as unknown as ResampleAttributes,
    ),
});

function checkDistribution(argument: string, value: unknown): number[] {
  const numbers = checkArray(KIND, argument, value);
  const isPart = (value: unknown) =>
    typeof value === "number" && Number.isFinite(value) && value >= 0;
  if (!numbers.every(isPart) || !numbers.some((number) => number as number > 0)) {
    throw invalidArgument(KIND, argument, "numbers of at least 0, not all 0", value);
  }
  return numbers as number[];
}

/** Initial count of every class in the estimate. */
const SMOOTHING = 10;

/**
 * Keeps an element of class i with probability ratio(i) / max(ratio), where the ratio is the wanted
 * frequency over the actual one. This gives the wanted frequencies and drops the fewest elements.
 */
class ResampleIterator extends ElementwiseIterator {
  readonly #call: Call;
  readonly #draws: Draws;
  readonly #target: readonly number[];
  readonly #isEstimated: boolean;
  /** The actual frequency of each class, up to a common factor. */
  #found: number[];
  #ratioMax: number;

  constructor(context: IteratorContext, node: RejectionResampleNode) {
    super(context);
    this.#call = new Call(node.classOf, context);
    this.#draws = new Draws(node.seeding, context);
    this.#target = node.targetDist;
    this.#isEstimated = node.initialDist === undefined;
    this.#found = [...node.initialDist ?? node.targetDist.map(() => SMOOTHING)];
    this.#ratioMax = this.#largestRatio();
  }

  protected override accept(element: unknown): unknown {
    if (element === END) return END;
    const result = this.#call.one(element);
    return result instanceof Promise
      ? result.then((result) => this.#judge(element, result))
      : this.#judge(element, result);
  }

  #judge(element: unknown, result: unknown): unknown {
    const number = this.#checkClass(result);
    if (this.#isEstimated) this.#count(number);
    if (this.#draws.stream.next() * this.#ratioMax >= this.#ratio(number)) return AGAIN;
    return this.stats.gave([number, element]);
  }

  #checkClass(result: unknown): number {
    const number = typeof result === "bigint" ? Number(result) : result;
    if (Number.isInteger(number) && this.#target[number as number] !== undefined) {
      return number as number;
    }
    throw new LeatError(
      "invalid_argument",
      `${KIND}: the class of an element must be an index into targetDist, from 0 to ` +
        `${this.#target.length - 1}, got ${show(result)}`,
    );
  }

  #count(number: number): void {
    const wasLargest = this.#ratio(number) === this.#ratioMax;
    this.#found[number]!++;
    if (wasLargest) this.#ratioMax = this.#largestRatio();
  }

  #ratio(number: number): number {
    const target = this.#target[number]!;
    return target === 0 ? 0 : target / this.#found[number]!;
  }

  #largestRatio(): number {
    return this.#target.reduce((largest, _, number) => Math.max(largest, this.#ratio(number)), 0);
  }

  protected override ownState(): object {
    return { found: [...this.#found], calls: this.#call.index, draws: this.#draws.save() };
  }

  protected override restoreOwn(state: unknown): void {
    const { found, calls, draws } = state as { found: number[]; calls: number; draws: unknown };
    this.#found = found;
    this.#ratioMax = this.#largestRatio();
    this.#call.resume(calls);
    this.#draws.restore(draws);
  }
}
