/** `bucketBySequenceLength`: batches of elements of similar length. */
import type { Extra, FunctionOptions } from "../../dataset_types.ts";
import { LeatError } from "../../../core/error.ts";
import { isPlainObject } from "../../../core/tree.ts";
import { Call, NodeFunction } from "../../udf/call.ts";
import {
  checkArray,
  checkBoolean,
  checkInteger,
  invalidArgument,
  optionsOf,
  show,
} from "../../check.ts";
import { shapeOf } from "../../elements/leaf_columns.ts";
import type { IteratorContext } from "../../context.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import {
  checkPaddedShapes,
  checkPadding,
  type PaddedShapes,
  type PaddingValues,
} from "../../elements/padding.ts";
import type { Captures, UserFunction } from "../../udf/user_function.ts";
import { type ElementSpec, mapSpec, TensorSpec } from "../../elements/spec.ts";
import { BatchNode } from "./batch.ts";
import { FromNode } from "../sources/from.ts";
import { type Grouping, GroupingIterator } from "../grouping/grouping.ts";
import type { RandomStream } from "../../../core/philox.ts";
import { PaddedBatchNode } from "./padded_batch.ts";
import { UnaryNode } from "../unary.ts";

/** The options without the functions. */
export type BucketAttributes = Omit<
  BucketBySequenceLengthOptions<never, Captures>,
  "length" | "captures"
>;

const KIND = "bucketBySequenceLength";

/** Options of `bucketBySequenceLength`. */
export interface BucketBySequenceLengthOptions<T, C extends Captures> extends FunctionOptions<C> {
  /** The length of an element. */
  readonly length: UserFunction<(element: T, extra: Extra<C>) => number | Promise<number>>;
  /** Increasing lengths: bucket i holds lengths from `boundaries[i - 1]` to `boundaries[i]` - 1. */
  readonly boundaries: readonly number[];
  /** The batch size of each bucket. There is one bucket more than there are boundaries. */
  readonly batchSizes: readonly number[];
  /** The shape that each component is padded to, as in `paddedBatch`. Default: the longest of the batch. */
  readonly paddedShapes?: PaddedShapes | undefined;
  /** The values to pad with: one, or one per component. Default: 0, `false` or `""`. */
  readonly paddingValues?: PaddingValues | undefined;
  /** Pads to the bucket's upper boundary minus one; longer elements are errors. Default false. */
  readonly padToBucketBoundary?: boolean | undefined;
  /** Pads nothing: elements of a batch must have equal shapes. Default false. */
  readonly noPadding?: boolean | undefined;
  /** Drops the last batch of a bucket if it is not full. Default false. */
  readonly dropRemainder?: boolean | undefined;
}

export class BucketBySequenceLengthNode extends UnaryNode {
  static readonly options = optionsOf<BucketBySequenceLengthOptions<unknown, Captures>>(
    "bucketBySequenceLength",
    {
      length: true,
      boundaries: true,
      batchSizes: true,
      paddedShapes: true,
      paddingValues: true,
      padToBucketBoundary: true,
      noPadding: true,
      dropRemainder: true,
      captures: true,
    },
  );
  override readonly division = "split";
  override readonly adviceFacts = { opensDatasets: true } as const;
  readonly length: NodeFunction;
  readonly options: BucketAttributes;

  constructor(input: DatasetNode, length: NodeFunction, options: BucketAttributes) {
    super(KIND, input);
    this.length = length;
    this.options = checkOptions(options);
    const { paddedShapes: shapes, paddingValues: values, noPadding } = this.options;
    if (!noPadding) checkPadding(KIND, input.elementSpec, { shapes, values });
  }

  override get attributes(): Attributes {
    return { length: this.length, ...this.options };
  }

  override get elementSpec(): ElementSpec {
    return mapSpec(
      this.input.elementSpec,
      (leaf) =>
        new TensorSpec(leaf.dtype, [
          null,
          ...(this.options.noPadding ? leaf.shape : leaf.shape.map(() => null)),
        ]),
    );
  }

  override makeIterator(context: IteratorContext): GroupingIterator {
    return new GroupingIterator(context, new Buckets(context, this));
  }
}

registerNode(KIND, {
  fromWire: (a, [input]) =>
    new BucketBySequenceLengthNode(
      input!,
      NodeFunction.among(a, "length"),
      a as unknown as BucketAttributes,
    ),
});

function checkOptions(options: BucketAttributes): BucketAttributes {
  const boundaries = checkArray(KIND, "boundaries", options.boundaries)
    .map((at) => checkInteger(KIND, "boundaries", at, 1));
  if (boundaries.length === 0 || boundaries.some((at, i) => i > 0 && at <= boundaries[i - 1]!)) {
    throw invalidArgument(KIND, "boundaries", "one or more increasing integers", boundaries);
  }
  const batchSizes = checkArray(KIND, "batchSizes", options.batchSizes)
    .map((at) => checkInteger(KIND, "batchSizes", at, 1));
  if (batchSizes.length !== boundaries.length + 1) {
    throw invalidArgument(
      KIND,
      "batchSizes",
      `one longer than boundaries (${boundaries.length + 1})`,
      batchSizes,
    );
  }
  return {
    boundaries,
    batchSizes,
    paddedShapes: checkPaddedShapes(KIND, options.paddedShapes),
    paddingValues: options.paddingValues,
    padToBucketBoundary: checkBoolean(
      KIND,
      "padToBucketBoundary",
      options.padToBucketBoundary,
      false,
    ),
    noPadding: checkBoolean(KIND, "noPadding", options.noPadding, false),
    dropRemainder: checkBoolean(KIND, "dropRemainder", options.dropRemainder, false),
  };
}

/** Bucket i holds lengths from boundary i-1, inclusive, to boundary i, exclusive. */
class Buckets implements Grouping {
  readonly calls: readonly Call[];
  readonly #length: Call;
  readonly #options: BucketAttributes;
  readonly #spec: ElementSpec;

  constructor(context: IteratorContext, node: BucketBySequenceLengthNode) {
    this.#length = new Call(node.length, context);
    this.calls = [this.#length];
    this.#options = node.options;
    this.#spec = node.inputs[0]!.elementSpec;
  }

  keyOf(element: unknown): unknown {
    const length = this.#length.one(element);
    return length instanceof Promise
      ? length.then((settled) => this.#bucketOf(settled))
      : this.#bucketOf(length);
  }

  sizeOf(bucket: number): number {
    return this.#options.batchSizes[bucket]!;
  }

  make(_number: number, bucket: number, elements: readonly unknown[]): DatasetNode | undefined {
    const { dropRemainder, noPadding, paddedShapes, paddingValues } = this.#options;
    const size = elements.length;
    if (dropRemainder && size < this.sizeOf(bucket)) return undefined;
    const window = new FromNode(elements, this.#spec, true); // computing it costs more than the batch
    return noPadding ? new BatchNode(window, size) : new PaddedBatchNode(window, size, {
      paddedShapes: this.#options.padToBucketBoundary
        ? boundaryShapes(elements[0], this.#spec, paddedShapes, this.#boundary(bucket) - 1)
        : paddedShapes,
      paddingValues,
    });
  }

  makeAgain(number: number, bucket: number, elements: readonly unknown[]): DatasetNode | undefined {
    return this.make(number, bucket, elements);
  }

  randomState(): () => RandomStream {
    return this.#length.nestedRandomState();
  }

  #boundary(bucket: number): number {
    return this.#options.boundaries[bucket]!;
  }

  #bucketOf(given: unknown): number {
    const length = typeof given === "bigint" ? Number(given) : given;
    if (typeof length !== "number" || !Number.isInteger(length) || length < 0) {
      throw new LeatError(
        "invalid_argument",
        `${KIND}: the length function must return an integer of at least 0, got ${show(given)}`,
      );
    }
    const { boundaries, padToBucketBoundary, noPadding } = this.#options;
    const bucket = boundaries.findIndex((boundary) => length < boundary);
    if (bucket >= 0) return bucket;
    if (padToBucketBoundary && !noPadding) {
      throw new LeatError(
        "invalid_argument",
        `${KIND}: with padToBucketBoundary, elements must be shorter than the last of the ` +
          `boundaries (${boundaries.at(-1)}), got one of length ${length}`,
      );
    }
    return boundaries.length;
  }
}

/**
 * The shapes to pad to with `padToBucketBoundary`: each open axis becomes `length`. Where neither
 * shapes nor spec say which axis is open, it is the first.
 */
function boundaryShapes(
  element: unknown,
  spec: ElementSpec,
  shapes: PaddedShapes | undefined,
  length: number,
): PaddedShapes {
  const at = (key: string | number) => ({
    spec: (spec as Record<string | number, ElementSpec> | undefined)?.[key],
    shapes: (shapes as Record<string | number, PaddedShapes> | undefined)?.[key],
  });
  const part = (value: unknown, key: string | number) =>
    boundaryShapes(value, at(key).spec, at(key).shapes, length);
  if (Array.isArray(element)) return element.map(part);
  if (isPlainObject(element)) {
    return Object.fromEntries(
      Object.entries(element).map(([key, value]) => [key, part(value, key)]),
    );
  }
  const open = shapes ?? (spec instanceof TensorSpec ? spec.shape : undefined) ??
    shapeOf(element).map((at, axis) => axis === 0 ? null : at);
  return (open as readonly (number | null)[]).map((at) => at === null || at < 0 ? length : at);
}
