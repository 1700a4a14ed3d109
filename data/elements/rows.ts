/** Cuts and joins batches along axis 0, by runs of rows. */
import { type DType, isFixedDType, isTypedArray, TYPED_ARRAYS } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor, tensor } from "../../core/tensor.ts";
import { type Leaf, mapTree, zipTrees } from "../../core/tree.ts";
import { copyInto, tensorOf } from "./leaf_columns.ts";

/** A batch with its typed arrays as tensors, for `cutRows` and `joinRows`. */
export function asBatch(batch: unknown): unknown {
  return mapTree(batch, (leaf) => isTypedArray(leaf) ? tensor(leaf) : leaf);
}

/** Rows from `start` up to but not including `stop` of every component; views of the same data. */
export function cutRows(batch: unknown, start: number, stop: number): unknown {
  return mapTree(batch, (leaf) => cutLeaf(leaf, start, stop));
}

/** Joins the rows of several batches that `assertJoinable` has accepted. */
export function joinRows(batches: readonly unknown[]): unknown {
  return zipTrees(batches, joinLeaves);
}

/** Refuses two batches whose rows cannot form one: `invalid_argument`. */
export function assertJoinable(operator: string, first: unknown, second: unknown): void {
  zipTrees([first, second], (leaves) => {
    const [a, b] = leaves.map(describeRows);
    if (a === b) return;
    throw new LeatError(
      "invalid_argument",
      `${operator}: cannot join rows of ${a} and rows of ${b}; make them equal before, or unbatch ` +
        "and use paddedBatch",
    );
  });
}

/** Rows of a tensor or ragged tensor; any other value is the same for all rows. */
export function cutLeaf(leaf: Leaf, start: number, stop: number): Leaf {
  if (leaf instanceof Tensor) {
    const [, ...shape] = leaf.shape;
    return tensorOf(leaf.dtype, [stop - start, ...shape], cutData(leaf, start, stop));
  }
  if (!(leaf instanceof RaggedTensor)) return leaf;
  const { values, rowSplits } = leaf;
  const splits = rowSplits.slice(start, stop + 1);
  const [from, to] = [splits[0]!, splits[splits.length - 1]!];
  for (let i = 0; i < splits.length; i++) splits[i]! -= from;
  return new RaggedTensor(cutLeaf(values, Number(from), Number(to)) as Tensor, splits);
}

function cutData({ shape, data }: Tensor, start: number, stop: number): unknown {
  const rowSize = shape.slice(1).reduce((a, b) => a * b, 1);
  return isTypedArray(data)
    ? data.subarray(start * rowSize, stop * rowSize)
    : data.slice(start * rowSize, stop * rowSize);
}

function joinLeaves(leaves: readonly Leaf[]): Leaf {
  const [first] = leaves;
  if (first instanceof Tensor) return joinTensors(leaves as Tensor[]);
  return first instanceof RaggedTensor ? joinRagged(leaves as RaggedTensor[]) : first!;
}

/** One tensor of the rows of several that differ only in their number of rows. */
export function joinTensors(tensors: readonly Tensor[]): Tensor {
  const { dtype, shape } = tensors[0]!;
  const rows = tensors.reduce((sum, part) => sum + part.shape[0]!, 0);
  return tensorOf(dtype, [rows, ...shape.slice(1)], joinData(dtype, tensors));
}

function joinData(dtype: DType, tensors: readonly Tensor[]): unknown {
  if (!isFixedDType(dtype)) return tensors.flatMap(({ data }) => data as readonly unknown[]);
  const joined = new TYPED_ARRAYS[dtype](tensors.reduce((sum, { size }) => sum + size, 0));
  let at = 0;
  for (const { data } of tensors) {
    copyInto(joined, data as typeof joined, at);
    at += data.length;
  }
  return joined;
}

function joinRagged(parts: readonly RaggedTensor[]): RaggedTensor {
  const splits = new BigInt64Array(parts.reduce((sum, { numRows }) => sum + numRows, 1));
  let row = 1;
  for (const { rowSplits } of parts) {
    const before = splits[row - 1]!;
    for (let i = 1; i < rowSplits.length; i++) splits[row++] = before + rowSplits[i]!;
  }
  return new RaggedTensor(joinTensors(parts.map(({ values }) => values)), splits);
}

/** What rows must have in common, in words. */
function describeRows(leaf: Leaf): string {
  if (leaf instanceof Tensor) return `${leaf.dtype}[${leaf.shape.slice(1)}]`;
  if (leaf instanceof RaggedTensor) return `ragged ${describeRows(leaf.values)}`;
  return String(leaf);
}
