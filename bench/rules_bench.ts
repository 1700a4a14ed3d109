/**
 * The rules of static optimisation one by one: a pipeline without any rule beside the same pipeline
 * with one.
 *
 * @module
 */
import { Dataset, type OptimizationRules } from "../mod.ts";
import { RULE_NAMES } from "../data/optimizer/options.ts";
import { type Load, pipelinedLoad } from "./bare/load.ts";
import type { Bench } from "./lib/bench.ts";

interface Case {
  /** The rules that are on. */
  readonly rules: readonly (keyof OptimizationRules)[];
  readonly what: string;
  readonly pipeline: () => Dataset<unknown>;
  /** Elements of the source in a pass. */
  readonly elements: number;
  readonly floor: number;
}

const ELEMENTS = 1 << 18;

const numbers = () => Dataset.range(ELEMENTS);

const CASES: readonly Case[] = [
  {
    rules: ["mapFusion"],
    what: "three maps",
    pipeline: () => numbers().map((x) => x + 1).map((x) => x * 3).map((x) => x - 2).batch(1024),
    elements: ELEMENTS,
    floor: 1,
  },
  {
    rules: ["filterFusion"],
    what: "three filters",
    pipeline: () =>
      numbers().filter((x) => x % 3 > 0).filter((x) => x % 5 > 0).filter((x) => x % 7 > 0)
        .batch(1024),
    elements: ELEMENTS,
    floor: 1,
  },
  {
    rules: ["mapAndFilterFusion"],
    what: "map, filter, map",
    pipeline: () =>
      numbers().map((x) => x * 2 + 1).filter((x) => x % 3 > 0).map((x) => x * 0.5).batch(1024),
    elements: ELEMENTS,
    floor: 1,
  },
  {
    rules: ["mapAndBatchFusion"],
    what: "map to floats, batch",
    pipeline: () => numbers().map((x) => x * 0.5).batch(1024),
    elements: ELEMENTS,
    floor: 1,
  },
  {
    rules: ["mapFusion", "filterFusion", "mapAndFilterFusion", "mapAndBatchFusion"],
    what: "map, filter, filter, map, batch",
    pipeline: () =>
      numbers().map((x) => x * 2 + 1).filter((x) => x % 3 > 0).filter((x) => x % 5 > 0)
        .map((x) => x * 0.5).batch(1024),
    elements: ELEMENTS,
    floor: 1,
  },
];

function open({ pipeline, elements }: Case, rules: OptimizationRules | false): Load {
  const dataset = pipeline().withOptions({ optimizations: rules, seed: 1 });
  return pipelinedLoad(1, async () => {
    for await (const _ of dataset);
    return elements;
  });
}

/** These rules and no others. */
function only(names: Case["rules"]): OptimizationRules {
  const none = Object.fromEntries(RULE_NAMES.map((name) => [name, false]));
  return { ...none, ...Object.fromEntries(names.map((name) => [name, true])) };
}

export const benches: Bench[] = CASES.map((bench) => ({
  name: `rule ${bench.rules.join(", ")}: ${bench.what}`,
  unit: "M elements/s",
  scale: 1e-6,
  floor: bench.floor,
  bare: () => open(bench, false),
  leat: () => open(bench, only(bench.rules)),
}));
