/** `withOptions`: settings of a whole pipeline. */
import { type AutotuneOptions, checkAutotune } from "../autotune/options.ts";
import { checkOptionalBoolean, checkSeed, optionsOf } from "../check.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import {
  checkOptimizations,
  type OptimizationOptions,
  type Rules,
  rulesOf,
} from "../optimizer/options.ts";
import { NodeFunction } from "../udf/call.ts";
import { PassedNode } from "./unary.ts";
import { definedFields } from "../../core/tree.ts";

/** Settings of a pipeline. */
export interface DatasetOptions {
  /**
   * The seed of all its random numbers, except those of operators with a `seed` of their own. The
   * numbers also depend on how many operators follow. Without it, every iteration draws one; under
   * DETERMINISTIC, and with `offload({ deterministic: true })`, it is 0.
   */
  readonly seed?: number | bigint | undefined;
  /**
   * Whether operators that make several calls at once keep the order of elements, unless they say
   * otherwise. Those before `cache(path)` and `snapshot` always keep it. Default true.
   */
  readonly deterministic?: boolean | undefined;
  /**
   * Whether `AUTOTUNE` adapts parallelism and buffer sizes while the pipeline runs, and within which
   * budgets. False: they keep their first values (4 calls, 16 elements). Default true.
   */
  readonly autotune?: boolean | AutotuneOptions | undefined;
  /**
   * Whether functions of `map` and `filter` with `numParallelCalls` run on other threads: true from
   * the first element on, false never. A function that cannot be sent to a thread, or whose elements
   * cannot, runs on the thread of the pipeline; `explain()` says why. Default: only functions whose
   * calls are measured to take at least 0.02 ms without waiting.
   */
  readonly threads?: boolean | undefined;
  /**
   * The rules of static optimisation: false for none, true for all, or some by name, as in
   * `{ mapFusion: false }`. They never change elements, order or checkpoints. Errors stay the same,
   * except that `projectionPushdown` may report fewer. Default: each rule's own.
   */
  readonly optimizations?: OptimizationOptions | undefined;
}

/** Attaches options to a pipeline; leaves elements unchanged. */
export class OptionsNode extends PassedNode {
  static readonly options = optionsOf<DatasetOptions>("withOptions", {
    seed: true,
    deterministic: true,
    autotune: true,
    threads: true,
    optimizations: true,
  });
  override readonly isSetting = true;
  readonly seed: bigint | undefined;
  readonly deterministic: boolean | undefined;
  readonly autotune: boolean | AutotuneOptions | undefined;
  readonly threads: boolean | undefined;
  readonly optimizations: OptimizationOptions | undefined;

  constructor(input: DatasetNode, options: DatasetOptions) {
    super("withOptions", input);
    this.seed = checkSeed("withOptions", options.seed);
    this.deterministic = checkOptionalBoolean(
      "withOptions",
      "deterministic",
      options.deterministic,
    );
    this.autotune = checkAutotune(options.autotune);
    this.threads = checkOptionalBoolean("withOptions", "threads", options.threads);
    this.optimizations = checkOptimizations(options.optimizations);
  }

  override get attributes(): Attributes {
    const { autotune, threads, optimizations } = this;
    return {
      ...this.checkpointAttributes,
      ...definedFields({ autotune, threads, optimizations }),
    };
  }

  override get checkpointAttributes(): Attributes {
    return { seed: this.seed, deterministic: this.deterministic };
  }

  override get isLeftOutOfCheckpoints(): boolean {
    return this.seed === undefined && this.deterministic === undefined;
  }
}

registerNode("withOptions", { fromWire: (a, [input]) => new OptionsNode(input!, a) });

export function seedOf(node: DatasetNode): bigint | undefined {
  return optionOf(node, "seed");
}

/** The graph as if `withOptions({ seed })` were its last operator; unchanged if it has this seed. */
export function withSeed(node: DatasetNode, seed: bigint | undefined): DatasetNode {
  return seed === undefined || seedOf(node) === seed ? node : new OptionsNode(node, { seed });
}

/**
 * {@linkcode withSeed} if the graph may draw numbers from that seed; else the graph. Its elements do
 * not depend on the seed otherwise.
 */
export function withDrawnSeed(node: DatasetNode, seed: bigint | undefined): DatasetNode {
  return mayDraw(node) ? withSeed(node, seed) : node;
}

/** Whether the elements of a graph may depend on the seed of its pipeline. */
export function mayDraw(node: DatasetNode): boolean {
  return node.drawsNumbers || node.inputs.some(mayDraw) ||
    functionsOf(node).some((fn) => fn.mayDraw);
}

/** Whether an operator may give other elements, or another order, when it gets the same ones again. */
export function mayVary(node: DatasetNode): boolean {
  const { seed, deterministic } = node.attributes;
  return node.drawsNumbers || seed !== undefined || deterministic === false ||
    functionsOf(node).some((fn) => fn.mayVary);
}

function functionsOf(node: DatasetNode): NodeFunction[] {
  return Object.values(node.attributes).filter((value) => value instanceof NodeFunction);
}

/** Whether operators keep the order unless they say otherwise. */
export function deterministicOf(node: DatasetNode): boolean {
  return optionOf(node, "deterministic") ?? true;
}

/** Whether and within which budgets `AUTOTUNE` adapts the pipeline. */
export function autotuneOf(node: DatasetNode): boolean | AutotuneOptions | undefined {
  return optionOf(node, "autotune");
}

export function threadsOf(node: DatasetNode): boolean | undefined {
  return optionOf(node, "threads");
}

/** The rules of static optimisation that a graph uses. */
export function optimizationRulesOf(node: DatasetNode): Rules {
  return rulesOf(optionOf(node, "optimizations"));
}

/** The value of the last operator that sets the option. The first input that has one decides. */
function optionOf<K extends keyof DatasetOptions>(node: DatasetNode, name: K): OptionsNode[K] {
  if (node instanceof OptionsNode && node[name] !== undefined) return node[name];
  for (const input of node.inputs) {
    const value = optionOf(input, name);
    if (value !== undefined) return value;
  }
  return undefined;
}
