/** The operator instances of an iteration: the occurrences of nodes in its graph, numbered. */
import type { Knob } from "./autotune/knob.ts";
import type { Measured } from "./autotune/measured_model.ts";
import type { Tuner } from "./autotune/tuner.ts";
import { type Changeable, type DatasetNode, inPreOrder } from "./node.ts";
import { mayVary, OptionsNode } from "./operators/options.ts";
import { isReplicated, isSplittable, replicatedInputOf } from "./sharding/splits.ts";
import { type IteratorStats, OperatorMeter, type OperatorStats } from "./iterators/stats.ts";

/** The figures of an operator and all below it, counted in other iterations. */
export interface PartStats {
  /** The operators' own figures, with these. */
  addTo(stats: IteratorStats): OperatorStats[];
}

/** One occurrence of a node in the graph of one iteration. */
export interface OperatorInstance {
  /** State that the operator's iterators share during this iteration, such as a cache. */
  shared: unknown;
  /** The parameter of the operator that the tuner may change. */
  knob: Knob | undefined;
  /** The fields of its elements that later operators need; `undefined` for all. */
  readonly wantedFields: readonly string[] | undefined;
  readonly changeable: Changeable;
  /** The figures of the operator and all below it, if another thread runs them. */
  remoteStats?: IteratorStats;
  /** What other iterations count for the operator and all below it, if they run these. */
  partStats?: PartStats;
  /** Whether the operator has no iterator of its own, because it does not change its input. */
  isPassed: boolean;
  readonly node: DatasetNode;
  readonly stats: OperatorMeter;
  /**
   * The operator's number without counting settings, for its random numbers. Negative if a user's
   * policy added it.
   */
  readonly randomStateNumber: number;
  /**
   * The number among the sources whose splits a service assigns; `undefined` for other operators.
   */
  readonly sourceIndex: number | undefined;
  /** The seed that the last `withOptions` after the operator sets, if one does. */
  readonly seedAfter: bigint | undefined;
  /** Whether the order of its elements is needed. See `RootOptions`. */
  readonly needsOrder: boolean;
  /** Whether it keeps the order as if it were needed: it is, or the elements are stored. */
  readonly keepsOrder: boolean;
  readonly inputs: readonly OperatorInstance[];
}

/** The numbers of a graph's last operator: one counts settings, one does not. */
export interface FirstNumbers {
  readonly number: number;
  readonly randomStateNumber: number;
}

/**
 * The numbers with which `part`, where it first occurs in `root`, draws the random numbers that it
 * draws alone. Operators after it get negative ones, counted from it.
 */
export function numbersKeeping(part: DatasetNode, root: DatasetNode): FirstNumbers {
  const operators = inPreOrder(root);
  const after = operators.slice(0, Math.max(0, operators.indexOf(part)));
  const numbered = after.filter(({ isSetting }) => !isSetting);
  return { number: 0, randomStateNumber: -numbered.length };
}

/** The figures of an instance and all below it. */
export function statsOf(instance: OperatorInstance, tuner: Tuner): OperatorStats[] {
  if (instance.remoteStats !== undefined) return [...instance.remoteStats];
  const inputs = instance.inputs.map((input) => statsOf(input, tuner));
  const bytesIn = inputs.reduce((sum, [input]) => sum + input!.bytesOut, 0);
  const own = instance.stats.read(bytesIn);
  const passed = instance.isPassed ? inputs[0]![0]! : own;
  const { elements, bytesOut } = passed;
  const tuning = instance.knob === undefined ? {} : { tuning: tuner.describe(instance.knob) };
  const all = [{ ...own, elements, bytesOut, ...tuning }, ...inputs.flat()];
  return instance.partStats === undefined ? all : instance.partStats.addTo(all);
}

/** For how long other operators have waited for the instance and for each one below it. */
export function awaitedOf({ stats, inputs }: OperatorInstance): number[] {
  return [stats.awaitedMs, ...inputs.flatMap(awaitedOf)];
}

/** What the tuner's model needs to know of an instance and all below it. */
export function measuredOf(
  { node, isPassed, stats, knob, inputs, remoteStats }: OperatorInstance,
): Measured {
  // If another thread runs the operators below, it measures and tunes them itself.
  const measured = remoteStats === undefined ? inputs.map(measuredOf) : [];
  return { node, isPassed, figures: stats.figures, knob, inputs: measured };
}

/**
 * Counts the sources that are read by splits. Below an aligned node they all read the same splits.
 */
interface Sources {
  count: number;
  readonly isAligned: boolean;
}

/** What the instances of a graph depend on, other than the graph. */
interface InstanceOptions {
  /** The meter of the operator whose function made the graph. Default: none did. */
  readonly opener?: OperatorMeter;
  /** Default: 0. */
  readonly first?: FirstNumbers | undefined;
  /** See `RootOptions`. Default false. */
  readonly needsOrder?: boolean | undefined;
  /** Default: as `needsOrder`. */
  readonly keepsOrder?: boolean | undefined;
  /** Of the last operator. Default `all`. */
  readonly changeable?: Changeable | undefined;
}

/** Numbers every occurrence of a node in pre-order, and every source among them. */
export function instancesOf(root: DatasetNode, options: InstanceOptions = {}): OperatorInstance {
  const { opener, first = { number: 0, randomStateNumber: 0 } } = options;
  const { needsOrder = false, keepsOrder = needsOrder, changeable = "all" } = options;
  let numbers = first.number;
  let settings = first.number - first.randomStateNumber;
  // Every task reads all of the sources below a splittable source, and of replicated inputs.
  const visit = (
    node: DatasetNode,
    among: Sources | undefined,
    wantedFields: readonly string[] | undefined,
    changeable: Changeable,
    seedAfter: bigint | undefined,
    keepsOrder: boolean,
  ): OperatorInstance => {
    const stats = new OperatorMeter(node.kind, numbers, opener);
    const randomStateNumber = numbers - settings;
    if (node.isNumbered) numbers++;
    else settings--;
    if (node.isSetting) settings++;
    const isSource = isSplittable(node) || among?.isAligned === true && isReplicated(node);
    const sourceIndex = isSource ? among && among.count++ : undefined;
    const replicated = replicatedInputOf(node);
    const below = isSource ? sourcesBelow(node, among) : among;
    const seed = seedAfter ?? (node instanceof OptionsNode ? node.seed : undefined);
    const inputs = node.inputs.map((input, i) =>
      visit(
        input,
        i === replicated ? undefined : below,
        node.fieldsOfInput(wantedFields),
        node.changeableInput(changeable),
        seed,
        keepsOrder || node.storesInput,
      )
    );
    return {
      node,
      stats,
      randomStateNumber,
      sourceIndex,
      seedAfter,
      needsOrder,
      keepsOrder,
      inputs,
      shared: undefined,
      knob: undefined,
      isPassed: false,
      wantedFields,
      changeable,
    };
  };
  const sources = { count: 0, isAligned: false };
  return visit(root, sources, undefined, changeable, undefined, keepsOrder);
}

function sourcesBelow(node: DatasetNode, among: Sources | undefined): Sources | undefined {
  const isAligned = isSplittable(node) && node.isAligned === true;
  return isAligned && among !== undefined ? { count: 0, isAligned } : undefined;
}

/**
 * The numbers of the sources on which it depends whether later repetitions of an instance give the
 * same. Not those below a full cache, unless its elements can pass an operator that may vary.
 */
export function decisiveSources(
  instance: OperatorInstance,
  varies = variesAfterCaches(instance),
): number[] {
  const { node, inputs, shared, sourceIndex } = instance;
  const kept = node.keptIn(shared);
  if (kept !== undefined && (kept.length === 0 || !varies)) return [];
  if (sourceIndex !== undefined) return [sourceIndex];
  return inputs.flatMap((input) => decisiveSources(input, varies));
}

function variesAfterCaches({ node, inputs, shared }: OperatorInstance): boolean {
  return node.keptIn(shared) === undefined && (mayVary(node) || inputs.some(variesAfterCaches));
}
