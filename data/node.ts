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

/** The cardinality when only iterating would tell. */
export const UNKNOWN_CARDINALITY: number = -2;

/** Named constants of an operator: plain JSON, bigints, typed arrays, tensors, user functions. */
export type Attributes = Readonly<Record<string, unknown>>;

/**
 * How the work of an operator can be divided among the tasks of a service.
 *
 * - `element`: each element depends on one element of the input, in order, and not on its position.
 * - `position`: element i depends on element i of the input and on the number i itself, counted in
 *   the whole dataset. There are as many elements as in the input.
 * - `split`: the operator may run on one split as if that were the whole dataset. A source is read
 *   split by split.
 * - `shuffle`: like `split`, and the order of splits is also drawn.
 * - `rows`: a batch gathers rows across the ends of splits.
 * - `whole`: an element may depend on all earlier ones. So under DETERMINISTIC the reader runs the
 *   operator. A source is not divided.
 * - `stored`: stored elements replace the whole input, which must not be divided.
 * - `served`: another service runs the operators below.
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
  /** With `numParallelCalls` several calls of its function wait at the same time. */
  readonly callsSideBySide?: true;
  /** It waits for datasets of its own in addition to its inputs. */
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
  /** Not abstract: a missing fact only loses a sentence of advice. */
  readonly adviceFacts: AdviceFacts = {};

  /** Everything that `fromWire` needs to rebuild this node, except the inputs. */
  abstract get attributes(): Attributes;

  /** The attributes that determine the elements: a saved iterator is refused where they differ. */
  get checkpointAttributes(): Attributes {
    return this.attributes;
  }

  /** The shape and type of elements, as far as they are known before running. */
  abstract get elementSpec(): ElementSpec;

  /** The number of elements: exact, `Infinity`, or `UNKNOWN_CARDINALITY`. */
  abstract get cardinality(): number;

  /** Whether it only configures other operators. Adding it then changes no random numbers. */
  readonly isSetting: boolean = false;

  /**
   * Present if the operator only passes the elements of its input on, with their tokens: its iterator
   * can then be left out.
   */
  get noOp(): NoOp | undefined {
    return undefined;
  }

  /** As `noOp`, because an operator below does its work: rule `deadTransformationElimination`. */
  get dead(): NoOp | undefined {
    return undefined;
  }

  /**
   * Present if it calls a function on one element after the other, as `map` or as `filter`. Such
   * operators may share a loop.
   */
  get loopKind(): LoopKind | undefined {
    return undefined;
  }

  /**
   * The fields that it needs of its input's elements, if consumers need the fields `wanted` of its own.
   * `undefined` means all fields in both.
   */
  fieldsOfInput(_wanted: readonly string[] | undefined): readonly string[] | undefined {
    return undefined;
  }

  /** Whether it reads only the wanted fields: its elements then have no others. */
  get readsFields(): boolean {
    return false;
  }

  /** Starts running. Cheap: nothing is read before the first `next()`. */
  abstract makeIterator(context: IteratorContext): ElementIterator;

  /**
   * A source divides its elements into runs. If this operator's output should come in runs of a
   * multiple of `multiple` elements, its input should come in runs of a multiple of the result.
   * Only one-to-one operators return more than 1.
   */
  splitMultiple(_multiple: number): number {
    return 1;
  }

  /**
   * The token of element `index`, counted as if no element failed. With the token an iterator gives
   * that element without reading earlier ones. `undefined` if elements are found only by iterating.
   */
  tokenAt(_index: number): Token | undefined {
    return undefined;
  }

  /** State that the iterators of this node share and that outlives them. */
  get shared(): Shared | undefined {
    return undefined;
  }
}

/** The operators of a graph, in the order of their numbers. */
export function inPreOrder(node: DatasetNode): DatasetNode[] {
  return [node, ...node.inputs.flatMap(inPreOrder)];
}

/** Rebuilds a node from its `attributes` and `inputs`. It checks them as the operator would. */
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

/** The registered kind; `unimplemented` for one that this version does not have. */
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

/** Makes the iterator of an operator that is implemented outside of the data engine. */
export type IteratorFactory = (node: DatasetNode, context: IteratorContext) => ElementIterator;

let makeServed: IteratorFactory | undefined;

/** Provides the iterators of operators that another service runs. The last factory wins. */
export function registerServed(factory: IteratorFactory): void {
  makeServed = factory;
}

/** The iterator of an operator that another service runs; `failed_precondition` when nothing provides it. */
export function servedIterator(node: DatasetNode, context: IteratorContext): ElementIterator {
  if (makeServed === undefined) {
    throw new LeatError(
      "failed_precondition",
      `Nothing here can run "${node.kind}": import Dataset from mod.ts, which provides its iterator.`,
    );
  }
  return makeServed(node, context);
}

/** Gives the engine access to the root of a `Dataset`'s graph. */
export interface HasNode {
  readonly node: DatasetNode;
}

/** The node of a dataset; `undefined` for anything else. */
export function nodeOf(value: unknown): DatasetNode | undefined {
  if (typeof value !== "object" || value === null || !("node" in value)) return undefined;
  return value.node instanceof DatasetNode ? value.node : undefined;
}

/** The public API over nodes, which operators pass to user functions. */
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

/** The public API over nodes. */
export function facade(): Facade {
  if (installedFacade === undefined) {
    throw new LeatError("internal", "data/dataset.ts was not loaded before a pipeline was run.");
  }
  return installedFacade;
}
