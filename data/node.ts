/**
 * Dataset nodes: the immutable graph of a pipeline before it runs.
 *
 * A node knows its inputs, its attributes (for serialisation and explanation) and how to make the
 * iterator that runs it. Graphs are trees: an input used twice appears twice.
 */
import { LeatError } from "../core/error.ts";
import type { IteratorContext } from "./context.ts";
import type { ElementIterator, Token } from "./iterator.ts";
import type { LoopKind } from "./optimizer/fused_loop.ts";
import type { NoOp } from "./optimizer/no_op.ts";
import type { Shared } from "./checkpoint/shared_state.ts";
import type { ElementSpec } from "./elements/spec.ts";

/** The cardinality of a dataset whose number of elements is known only after iterating over it. */
export const UNKNOWN_CARDINALITY: number = -2;

/** Named constants of an operator: plain JSON, bigints, typed arrays, tensors, user functions. */
export type Attributes = Readonly<Record<string, unknown>>;

/**
 * What of an operator's elements may be changed in place once it has given them: all, or the byte
 * strings alone, because a batch has copies of the numbers, or nothing.
 */
export type Changeable = "all" | "bytes" | "nothing";

/**
 * How the work of an operator can be divided among the tasks of a service.
 *
 * - `element`: each element depends on one element of the input, in order, and not on its position.
 * - `position`: element i depends on element i of the input and on the number i itself, counted in
 *   the whole dataset. There are as many elements as in the input.
 * - `split`: the operator may run on one split as if the split were the whole dataset. A source is
 *   read split by split.
 * - `shuffle`: like `split`, and the order of splits is random, too.
 * - `rows`: the operator batches rows, and a batch may have rows of several splits.
 * - `whole`: an element may depend on all earlier ones. So under DETERMINISTIC the reader runs the
 *   operator. A source is not divided.
 * - `stored`: stored elements replace the whole input, which must not be divided.
 * - `served`: another service runs the operators before it.
 */
export type Division =
  | "element"
  | "position"
  | "split"
  | "shuffle"
  | "rows"
  | "whole"
  | "stored"
  | "served";

/** What `explain()` needs to know about an operator in order to give advice. */
export interface AdviceFacts {
  /** It reads elements before they are requested. */
  readonly readsAhead?: true;
  /** It takes `numParallelCalls`, with which several calls of its function wait at the same time. */
  readonly callsSideBySide?: true;
  /** It opens datasets itself, and waits for these in addition to its inputs. */
  readonly opensDatasets?: true;
  /** What to do when it holds too many bytes. */
  readonly toHoldLess?: string;
}

/** One operator of a pipeline. Immutable. */
export abstract class DatasetNode {
  /** The operator's name in user code: `"map"`, `"range"`. */
  readonly kind: string;
  readonly inputs: readonly DatasetNode[];

  constructor(kind: string, inputs: readonly DatasetNode[]) {
    this.kind = kind;
    this.inputs = inputs;
  }

  /** How a service may divide its work. */
  abstract readonly division: Division;
  /**
   * Whether it gives other elements if it gets only a part of its input, or gets it in another
   * order. Not those that only divide or order their elements otherwise, such as `batch`.
   */
  readonly needsWholeInput: boolean = false;
  /** Whether it compares a count of its whole input, in whatever order, with a limit. */
  readonly countsWholeInput: boolean = false;
  /** Optional: without facts, `explain()` only gives less advice. */
  readonly adviceFacts: AdviceFacts = {};

  /** Everything that `fromWire` needs to rebuild this node, except the inputs. */
  abstract get attributes(): Attributes;

  /** The attributes that determine the elements. An iterator refuses saved state if they differ. */
  get checkpointAttributes(): Attributes {
    return this.attributes;
  }

  /** Whether it determines no element: a state can be restored with it or without it. */
  get isLeftOutOfCheckpoints(): boolean {
    return false;
  }

  /** The shape and type of elements, as far as they are known before running. */
  abstract get elementSpec(): ElementSpec;

  /** The number of elements: exact, `Infinity`, or `UNKNOWN_CARDINALITY`. */
  abstract get cardinality(): number;

  /**
   * Whether figures and errors give it a number. Without one, it has that of its input, for which it
   * stands. Random numbers count it all the same.
   */
  readonly isNumbered: boolean = true;

  /** Whether it only configures other operators. Adding it then changes no random numbers. */
  readonly isSetting: boolean = false;

  /**
   * Present if the operator only passes the elements of its input on, with their tokens: its iterator
   * can then be left out.
   */
  get noOp(): NoOp | undefined {
    return undefined;
  }

  /** Like `noOp`, for an operator whose work an earlier one has done. */
  get dead(): NoOp | undefined {
    return undefined;
  }

  /**
   * Present if it calls a function on one element after the other, as `map` or `filter` do.
   * Consecutive such operators may run in one loop.
   */
  get loopKind(): LoopKind | undefined {
    return undefined;
  }

  /**
   * The fields of its input's elements that it needs, if consumers need the fields `wanted` of its
   * own elements. `undefined` means all fields in both.
   */
  fieldsOfInput(_wanted: readonly string[] | undefined): readonly string[] | undefined {
    return undefined;
  }

  /**
   * Whether the operator itself draws random numbers from the pipeline's seed, or reads datasets that
   * may. What its functions take from their last argument does not count here.
   */
  get drawsNumbers(): boolean {
    return false;
  }

  /**
   * Whether the elements of its input are stored for other processes. Then they come in order, whatever
   * `deterministic` says, so that every process stores the same.
   */
  get storesInput(): boolean {
    return false;
  }

  /** What of its input's elements others may change, if they may change `own` of its elements. */
  changeableInput(_own: Changeable): Changeable {
    return "all";
  }

  /**
   * The elements that the operator's iterators share as `shared` and give instead of reading the input;
   * undefined while they read it.
   */
  keptIn(_shared: unknown): readonly unknown[] | undefined {
    return undefined;
  }

  /** Whether it reads only the wanted fields. Its elements then have no others. */
  get readsFields(): boolean {
    return false;
  }

  /** Makes the iterator that runs it. Cheap: nothing is read before the first `next()`. */
  abstract makeIterator(context: IteratorContext): ElementIterator;

  /**
   * Operators after this one want splits whose number of elements is a multiple of `multiple`, such
   * as a batch size. Returns the multiple that this operator wants of its input: 1 if its elements do
   * not correspond to fixed numbers of elements of the input.
   */
  splitMultiple(_multiple: number): number {
    return 1;
  }

  /**
   * The token of element `index`, counted as if no element failed. From the token an iterator makes
   * that element without reading earlier ones. `undefined` if there is no random access.
   */
  tokenAt(_index: number): Token | undefined {
    return undefined;
  }

  /** State that all iterators of this node share, and that outlives them. */
  get shared(): Shared | undefined {
    return undefined;
  }
}

/** The operators of a graph, in the order of their numbers. */
export function inPreOrder(node: DatasetNode): DatasetNode[] {
  return [node, ...node.inputs.flatMap(inPreOrder)];
}

/** Rebuilds a node from its `attributes` and `inputs`, which it checks like the operator's method. */
export interface NodeKind {
  fromWire(attributes: Attributes, inputs: readonly DatasetNode[]): DatasetNode;
}

const kinds = new Map<string, NodeKind>();

/** Registers a node kind for deserialisation. Called once per kind, where the node is defined. */
export function registerNode(kind: string, nodeKind: NodeKind): void {
  if (kinds.has(kind)) {
    throw new LeatError(
      "already_exists",
      `A dataset node of kind "${kind}" is registered already.`,
    );
  }
  kinds.set(kind, nodeKind);
}

/** The registered kind. Throws `unimplemented` for one that this version does not have. */
export function nodeKind(kind: string): NodeKind {
  const found = kinds.get(kind);
  if (found === undefined) {
    throw new LeatError(
      "unimplemented",
      `This version of Leat has no dataset operator "${kind}"; it was serialised by another one.`,
    );
  }
  return found;
}

export function nodeKinds(): string[] {
  return [...kinds.keys()];
}

/** Makes the iterator of an operator that another layer implements. */
export type IteratorFactory = (node: DatasetNode, context: IteratorContext) => ElementIterator;

let makeServed: IteratorFactory | undefined;

/** Sets what makes the iterators of `served` operators. The last call wins. */
export function registerServed(factory: IteratorFactory): void {
  makeServed = factory;
}

/** The iterator of a `served` operator. Throws `failed_precondition` before `registerServed()`. */
export function servedIterator(node: DatasetNode, context: IteratorContext): ElementIterator {
  if (makeServed === undefined) {
    throw new LeatError(
      "failed_precondition",
      `Nothing here can run "${node.kind}": import Dataset from mod.ts, which provides its iterator.`,
    );
  }
  return makeServed(node, context);
}

/** A `Dataset`, as far as the engine knows it: the root of its graph. */
export interface HasNode {
  readonly node: DatasetNode;
}

/** The node of a dataset; `undefined` for anything else. */
export function nodeOf(value: unknown): DatasetNode | undefined {
  if (typeof value !== "object" || value === null || !("node" in value)) return undefined;
  return value.node instanceof DatasetNode ? value.node : undefined;
}

/** The public API, which operators need for user functions and must not import. */
export interface Facade {
  /** The `Dataset` class, for functions that make datasets. */
  readonly Dataset: unknown;
  wrap(node: DatasetNode): HasNode;
}

let installedFacade: Facade | undefined;

/** Called once, by the module that defines `Dataset`. */
export function installFacade(facade: Facade): void {
  installedFacade = facade;
}

export function facade(): Facade {
  if (installedFacade === undefined) {
    throw new LeatError("internal", "data/dataset.ts was not loaded before a pipeline was run.");
  }
  return installedFacade;
}
