/** Rule `mapVectorization`: calls a function once for a batch of elements. */
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import { flattenTree, mapTree } from "../../core/tree.ts";
import { columnFor } from "../elements/columns.ts";
import { cutLeaf } from "../elements/rows.ts";
import type { SpecCheck } from "../elements/spec_check.ts";
import type { Call } from "../udf/call.ts";

/** Results of a function as a batch. */
export interface BatchedRows {
  /** A structure of tensors with `count` rows each. */
  readonly batch: unknown;
  readonly count: number;
}

/** Row `index`, as a call for that element alone would have returned it: its leaves are tensors. */
export function rowOf({ batch }: BatchedRows, index: number): unknown {
  return mapTree(batch, (leaf) => {
    const row = cutLeaf(leaf, index, index + 1) as Tensor;
    return new Tensor(row.dtype, row.shape.slice(1), row.data);
  });
}

/** The calls of a function that its user has declared as `batchable`. */
export class BatchedCall {
  readonly #call: Call;
  readonly #check: SpecCheck | undefined;
  /** The last argument; its `index` and `random`, which differ from element to element, throw. */
  #extra: object | undefined;
  #isOff = false;

  /** Whether the function has turned out not to be batchable. */
  get isOff(): boolean {
    return this.#isOff;
  }

  constructor(call: Call, check: SpecCheck | undefined) {
    this.#call = call;
    this.#check = check;
  }

  /**
   * The results for these elements. Undefined if the function must be called for each, because
   * leaves are not tensors of one shape, the call fails, or its result is not a batch.
   */
  rowsOf(elements: readonly unknown[]): BatchedRows | undefined {
    if (this.#isOff) return undefined;
    const stacked = stackTensors(elements);
    if (stacked === undefined) return undefined;
    let batch: unknown;
    try {
      batch = this.#call.fn(stacked, this.#extra ??= commonExtra(this.#call.extra));
    } catch (error) {
      this.#isOff = error instanceof DiffersByElement;
      return undefined;
    }
    const rows = { batch, count: elements.length };
    if (batch instanceof Promise) batch.catch(() => {});
    const isBatch = isBatchOf(rows) && this.#check?.fits(rowOf(rows, 0)) !== false;
    if (!isBatch) this.#isOff = true;
    return isBatch ? rows : undefined;
  }
}

/** A batchable function has used what differs from element to element. */
class DiffersByElement extends LeatError {}

/** A copy: a function that takes the rest of its last argument gets only what is its own. */
function commonExtra(extra: object): object {
  const refused = (name: string) => ({
    get: () => {
      throw new DiffersByElement("internal", `${name} differs from element to element`);
    },
  });
  return Object.create(Object.getPrototypeOf(extra), {
    ...Object.getOwnPropertyDescriptors(extra),
    index: refused("index"),
    random: refused("random"),
  });
}

function stackTensors(elements: readonly unknown[]): unknown {
  try {
    if (!flattenTree(elements[0]).every((leaf) => leaf instanceof Tensor)) return undefined;
    const column = columnFor(elements[0], undefined, elements.length);
    elements.forEach((element, i) => column.write(i, element));
    return column.finish(elements.length);
  } catch {
    return undefined; // calls for each element report what is wrong
  }
}

function isBatchOf({ batch, count }: BatchedRows): boolean {
  try {
    return flattenTree(batch).every((leaf) => leaf instanceof Tensor && leaf.shape[0] === count);
  } catch {
    return false; // no tree, such as a promise
  }
}
