/** Makes the context of a graph's last operator from the options of its iteration. */
import { RandomStream } from "../core/philox.ts";
import { budgetsOf, coresOf } from "./autotune/options.ts";
import { IteratorContext } from "./context.ts";
import { type Host, installedHost } from "./host.ts";
import type { Coordinates, IterationOptions, Settings } from "./iteration_options.ts";
import type { DatasetNode } from "./node.ts";
import {
  autotuneOf,
  deterministicOf,
  optimizationRulesOf,
  seedOf,
  threadsOf,
} from "./operators/options.ts";

/** The random state, with the seed of `options`, or of the graph, or a random one. */
export function coordinatesOf(
  node: DatasetNode,
  host: Host,
  options: IterationOptions,
): Coordinates {
  const seed = options.seed ?? seedOf(node);
  const { salt = 0n, epoch = 0, split = 0 } = options;
  return { seed: seed ?? host.entropy64(), seeded: seed !== undefined, salt, epoch, split };
}

/** The context of a graph's last operator, with its random state. */
export function rootContext(
  node: DatasetNode,
  options: IterationOptions,
  coordinates?: Coordinates,
): IteratorContext {
  const host = options.host ?? installedHost();
  const { seed, seeded, salt, epoch, split } = coordinates ?? coordinatesOf(node, host, options);
  const stream = new RandomStream(seed, [String(salt)]);
  const { task = 0 } = options;
  const chosenSeed = seedOf(node);
  const randomState = { root: () => stream, seeded, chosenSeed, salt, epoch, split, task };
  const deterministic = deterministicOf(node);
  const { splits, batchMemory, lastReaders, within, first, needsOrder, isReadOnly } = options;
  const { settings = settingsOf(node, options) } = options;
  return IteratorContext.root(node, host, {
    randomState,
    deterministic,
    ...settings,
    splits,
    batchMemory,
    lastReaders,
    within,
    first,
    needsOrder,
    isReadOnly,
  });
}

function settingsOf(node: DatasetNode, { tuningPolicy: policy }: IterationOptions): Settings {
  const autotune = autotuneOf(node);
  return {
    tuning: { budgets: budgetsOf(autotune), isOff: autotune === false, policy },
    rules: optimizationRulesOf(node),
    threads: threadsOf(node),
    cores: coresOf(autotune),
  };
}
