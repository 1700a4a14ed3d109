/** What `explain()` returns: a pipeline's graph in words, with figures and advice once it has run. */
import { adviceOn, type PipelineRun } from "./advice.ts";
import { bytesText, durationText } from "./amounts.ts";
import { isPlainObject } from "../core/tree.ts";
import { show } from "./check.ts";
import { type DatasetNode, UNKNOWN_CARDINALITY } from "./node.ts";
import { NodeFunction } from "./udf/call.ts";
import { type ElementSpec, specText, TensorSpec } from "./elements/spec.ts";
import { AUTOTUNE } from "./parallelism.ts";
import {
  isIdle,
  type IteratorStats,
  type OperatorStats,
  type TuningStats,
} from "./iterators/stats.ts";
import { requireMovable } from "./operators/prefetch.ts";
import { autotuneOf, optimizationRulesOf, threadsOf } from "./operators/options.ts";
import { rewritesOf } from "./optimizer/rules.ts";
import { referenceOf } from "./udf/user_function.ts";
import { LeatError } from "../core/error.ts";
import { coresOf } from "./autotune/options.ts";
import { serializeGraph } from "./wire.ts";

/** One operator of a graph. */
export interface ExplainedOperator {
  /** Its number in the graph: in pre-order, from 0 for the last operator. */
  readonly number: number;
  /** Its distance from the last operator. */
  readonly depth: number;
  /** The name of the method that made it. */
  readonly operator: string;
  /** Its arguments: `size=4, dropRemainder=false`. */
  readonly arguments: string;
  /** The number of its elements; `Infinity`, or `UNKNOWN_CARDINALITY`. */
  readonly cardinality: number;
  /** The spec of its elements. */
  readonly elementSpec: ElementSpec;
  /** Its figures, if the pipeline is running. */
  readonly stats?: OperatorStats | undefined;
  /**
   * Whether it is before a `distribute` or an `offload`. Its figures then count only what runs here,
   * if anything does. Elements of workers count for the last operator that workers run.
   */
  readonly distributed: boolean;
}

/**
 * The graph of a dataset, last operator first. Prints as an indented list; if the pipeline has run,
 * with the figures of each operator, and at the end with what is slow.
 */
export class Explanation {
  /** The operators in pre-order, the last one first. */
  readonly operators: readonly ExplainedOperator[];
  /**
   * Sentences on what is slow or large and what to do about it; the last says where the time goes.
   * Empty if the pipeline has not run.
   */
  readonly advice: readonly string[];
  /** Why other threads cannot run a function with `numParallelCalls`, or a `prefetch` with `thread`. */
  readonly obstacles: readonly string[];
  /** Sentences on what static optimisation has changed, in the order of the operators. */
  readonly rewrites: readonly string[];

  /** @ignore */
  constructor(root: DatasetNode, run?: Omit<PipelineRun, "root">) {
    const operators: ExplainedOperator[] = [];
    const visit = (node: DatasetNode, depth: number, distributed: boolean) => {
      operators.push({
        number: operators.length,
        depth,
        operator: node.kind,
        arguments: describeArguments(node),
        cardinality: node.cardinality,
        elementSpec: node.elementSpec,
        stats: run?.stats[operators.length],
        distributed,
      });
      const below = distributed || node.division === "served";
      for (const input of node.inputs) visit(input, depth + 1, below);
    };
    visit(root, 0, false);
    this.operators = operators;
    this.obstacles = obstaclesOf(root, run?.stats);
    this.rewrites = rewritesOf(root, optimizationRulesOf(root)).map(({ text }) => text);
    this.advice = run === undefined ? [] : adviceOn({ root, ...run });
  }

  /** The explanation as text of several lines. */
  toString(): string {
    const lines = this.operators.map((explained) => {
      const { operator, number, depth, cardinality, stats } = explained;
      const count = cardinality === UNKNOWN_CARDINALITY
        ? "unknown number of"
        : cardinality === Infinity
        ? "endless"
        : `${cardinality}`;
      const call = `${operator}(${explained.arguments})`;
      const spec = specText(explained.elementSpec);
      const indent = "  ".repeat(depth);
      const line = `${indent}${number} ${call} → ${count} ` +
        `${cardinality === 1 ? "element" : "elements"} of ${spec}`;
      if (stats === undefined) return line;
      const isElsewhere = explained.distributed && isIdle(stats);
      const run = isElsewhere ? "not counted here" : describeStats(stats);
      return `${line}\n${indent}  ${run}`;
    });
    return [...lines, ...this.rewrites, ...this.obstacles, ...this.advice].join("\n");
  }

  /** @ignore */
  [Symbol.for("Deno.customInspect")](): string {
    return this.toString();
  }
}

/**
 * `gave 1024 (8.19 kB), 30 ms at work, 12 ms waiting, holds 512 MB, 2 failed`. Zeros are left out,
 * except the first amount.
 */
function describeStats(stats: OperatorStats): string {
  const { elements, errors, bytesIn, bytesOut, selfMs, waitMs, bufferedBytes } = stats;
  const { skipped = 0, tuning, threads: { calls = 0, workMs = 0 } = {} } = stats;
  return [
    `gave ${elements} (${bytesText(bytesOut)})`,
    bytesIn > 0 && `was given ${bytesText(bytesIn)}`,
    selfMs > 0 && `${durationText(selfMs)} at work`,
    waitMs > 0 && `${durationText(waitMs)} waiting`,
    calls > 0 && `${calls} calls on other threads (${durationText(workMs)})`,
    bufferedBytes > 0 && `holds ${bytesText(bufferedBytes)}`,
    tuning !== undefined && describeTuning(tuning),
    errors > 0 && `${errors} failed`,
    skipped > 0 && `${skipped} missed`,
  ].filter((part) => part !== false).join(", ");
}

/** `AUTOTUNE set numParallelCalls to 6: 3.5 ms an element expected, 3.7 ms measured`. */
function describeTuning({ parameter, value, expectedMs, measuredMs }: TuningStats): string {
  const set = `AUTOTUNE set ${parameter} to ${value}`;
  if (expectedMs === undefined || measuredMs === undefined) return set;
  return `${set}: ${durationText(expectedMs)} an element expected, ` +
    `${durationText(measuredMs)} measured`;
}

const ARGUMENT_LENGTH_MAX = 60;
/** Longer lists are only counted. */
const VALUES_MAX = 8;

function describeArguments(node: DatasetNode): string {
  return Object.entries(node.attributes)
    .filter(([name, value]) => value !== undefined && name !== "spec") // the elements' spec follows
    .map(([name, value]) =>
      `${name}=${isAutotune(name, value) ? "AUTOTUNE" : describeArgument(value)}`
    )
    .join(", ");
}

function describeArgument(value: unknown): string {
  if (value instanceof NodeFunction) {
    const { fn } = value;
    const reference = referenceOf(fn);
    if (reference !== undefined) return `${reference.name} of ${reference.place}`;
    return shorten(fn.toString().replace(/\s+/g, " "));
  }
  if (value instanceof TensorSpec) return specText(value);
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) {
    if (value.length > VALUES_MAX) return `${value.length} values`;
    return shorten(`[${value.map(describeArgument).join(", ")}]`);
  }
  if (!isPlainObject(value)) return shorten(show(value));
  const entries = Object.entries(value);
  if (entries.length > VALUES_MAX) return `{ ${entries.length} values }`;
  const parts = entries.map(([name, part]) => `${name}: ${describeArgument(part)}`);
  return shorten(`{ ${parts.join(", ")} }`);
}

function isAutotune(name: string, value: unknown): boolean {
  return value === AUTOTUNE && (name === "bufferSize" || name === "numParallelCalls");
}

function shorten(text: string): string {
  return text.length > ARGUMENT_LENGTH_MAX ? `${text.slice(0, ARGUMENT_LENGTH_MAX)}…` : text;
}

/**
 * Why functions, and segments of pipelines, run on the thread of their pipeline: a sentence for each
 * that cannot run on another thread. Empty if the pipeline may not use other threads.
 */
function obstaclesOf(root: DatasetNode, stats: IteratorStats | undefined): string[] {
  if (threadsOf(root) === false || coresOf(autotuneOf(root)) === 1) return [];
  const sentences: string[] = [];
  let number = 0;
  const visit = (node: DatasetNode, isServed: boolean): void => {
    const operator = number++;
    const obstacle = stats?.[operator]?.threads?.obstacle ??
      (isServed ? undefined : obstacleOf(node));
    if (obstacle !== undefined) {
      const name = `${node.kind} (operator ${operator})`;
      const what = node.attributes["thread"] === true ? "runs" : "calls its function";
      sentences.push(`${name} ${what} on the thread of the pipeline. ${obstacle}`);
    }
    for (const input of node.inputs) visit(input, isServed || node.division === "served");
  };
  visit(root, false);
  return sentences;
}

function obstacleOf(node: DatasetNode): string | undefined {
  if (node.attributes["thread"] === true) {
    return messageOf(() => {
      requireMovable(node);
      serializeGraph(node);
    });
  }
  const { callsSideBySide, opensDatasets } = node.adviceFacts;
  const isParallel = callsSideBySide && node.attributes["numParallelCalls"] !== undefined;
  // Functions that return datasets are not called on other threads: datasets are not sent between them.
  if (!isParallel || opensDatasets) return undefined;
  const fn = Object.values(node.attributes).find((value) => value instanceof NodeFunction);
  if (fn === undefined || !fn.isSendable) return undefined;
  return messageOf(() => fn.serialize());
}

/** The message of the error that `send` throws; undefined if it throws none. */
function messageOf(send: () => unknown): string | undefined {
  try {
    send();
    return undefined;
  } catch (error) {
    return LeatError.from(error).message;
  }
}
