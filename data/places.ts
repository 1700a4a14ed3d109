/** The places of an iteration: the occurrences of nodes in its graph, numbered. */
import type { Knob } from "./autotune/knob.ts";
import type { Measured } from "./autotune/measured_model.ts";
import type { Tuner } from "./autotune/tuner.ts";
import type { DatasetNode } from "./node.ts";
import { isReplicated, isSplittable, replicatedInputOf } from "./sharding/splits.ts";
import { type IteratorStats, OperatorMeter, type OperatorStats } from "./iterators/stats.ts";

/** One occurrence of a node in the graph of one iteration. */
export interface Place {
  /** State that the operator's iterators share during this iteration, such as a cache. */
  shared: unknown;
  /** The parameter of the operator that the tuner may change. */
  knob: Knob | undefined;
  /** The fields of its elements that later operators need; `undefined` for all. */
  readonly wantedFields: readonly string[] | undefined;
  /** The figures of the operator and all below it, if another thread runs them. */
  elsewhere?: IteratorStats;
  /** Whether the operator has no iterator of its own, because it does not change its input. */
  isPassed: boolean;
  readonly node: DatasetNode;
  readonly stats: OperatorMeter;
  /** The operator's number without counting settings, for its random numbers. */
  readonly randomStateNumber: number;
  /**
   * The number among the sources whose splits a service assigns; `undefined` for other operators.
   */
  readonly sourceIndex: number | undefined;
  readonly inputs: readonly Place[];
}

/** The numbers of a graph's last operator: one counts settings, one does not. */
export interface FirstNumbers {
  readonly number: number;
  readonly randomStateNumber: number;
}

/** The figures of a place and all below it. */
export function statsOf(place: Place, tuner: Tuner): OperatorStats[] {
  if (place.elsewhere !== undefined) return [...place.elsewhere];
  const inputs = place.inputs.map((input) => statsOf(input, tuner));
  const bytesIn = inputs.reduce((sum, [input]) => sum + input!.bytesOut, 0);
  const own = place.stats.read(bytesIn);
  const passed = place.isPassed ? inputs[0]![0]! : own;
  const { elements, bytesOut } = passed;
  const tuning = place.knob === undefined ? {} : { tuning: tuner.describe(place.knob) };
  return [{ ...own, elements, bytesOut, ...tuning }, ...inputs.flat()];
}

/** What the tuner's model needs to know of a place and all below it. */
export function measuredOf({ node, isPassed, stats, knob, inputs, elsewhere }: Place): Measured {
  // If another thread runs the operators below, it measures and tunes them itself.
  const measured = elsewhere === undefined ? inputs.map(measuredOf) : [];
  return { node, isPassed, figures: stats.figures, knob, inputs: measured };
}

/**
 * Counts the sources that are read by splits. Below an aligned node they all read the same splits.
 */
interface Sources {
  count: number;
  readonly isAligned: boolean;
}

/**
 * Numbers every occurrence of a node in pre-order, and every source among them. `opener`: the meter of
 * the operator whose function made the graph.
 */
export function placesOf(
  root: DatasetNode,
  opener?: OperatorMeter,
  first: FirstNumbers = { number: 0, randomStateNumber: 0 },
): Place {
  let numbers = first.number;
  let settings = first.number - first.randomStateNumber;
  // Every task reads all of the sources below a splittable source, and of replicated inputs.
  const place = (
    node: DatasetNode,
    among: Sources | undefined,
    wantedFields?: readonly string[],
  ): Place => {
    const stats = new OperatorMeter(node.kind, numbers++, opener);
    const randomStateNumber = stats.number - settings;
    if (node.isSetting) settings++;
    const isSource = isSplittable(node) || among?.isAligned === true && isReplicated(node);
    const sourceIndex = isSource ? among && among.count++ : undefined;
    const replicated = replicatedInputOf(node);
    const below = isSource ? sourcesBelow(node, among) : among;
    const inputs = node.inputs.map((input, i) =>
      place(input, i === replicated ? undefined : below, node.fieldsOfInput(wantedFields))
    );
    return {
      node,
      stats,
      randomStateNumber,
      sourceIndex,
      inputs,
      shared: undefined,
      knob: undefined,
      isPassed: false,
      wantedFields,
    };
  };
  return place(root, { count: 0, isAligned: false });
}

function sourcesBelow(node: DatasetNode, among: Sources | undefined): Sources | undefined {
  const isAligned = isSplittable(node) && node.isAligned === true;
  return isAligned && among !== undefined ? { count: 0, isAligned } : undefined;
}

/** The source numbers of a place and all places below it. */
export function sourceIndexesOf(place: Place): number[] {
  if (place.sourceIndex !== undefined) return [place.sourceIndex];
  return place.inputs.flatMap(sourceIndexesOf);
}
