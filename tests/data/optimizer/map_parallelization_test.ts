/** Rule `mapParallelization`: what was saved with calls in flight can be saved again and again. */
import { Dataset } from "../../../mod.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { rounds } from "../lib/collect.ts";
import type { Optimizations } from "./rule_law.ts";

const later = (x: number) => rounds(1 + x % 2).then(() => x);

const keepsLater = (async (x: number) => await later(x) % 3 > 0) as unknown as (
  x: number,
) => boolean;

const RULE: Optimizations = { mapParallelization: true };

const PIPELINES: Record<string, () => Dataset<unknown>> = {
  "map that an injected prefetch holds": () =>
    Dataset.range(40).map(later).withOptions({ optimizations: true }),
  "map that prefetch holds": () =>
    Dataset.range(40).map(later).prefetch(4).withOptions({ optimizations: RULE }),
  "filter that prefetch holds": () =>
    Dataset.range(40).filter(keepsLater).prefetch(4).withOptions({ optimizations: RULE }),
  "map of map that prefetch holds": () =>
    Dataset.range(40).map(later).map(later).prefetch(3).withOptions({ optimizations: RULE }),
  "map of filter that prefetch holds": () =>
    Dataset.range(40).filter(keepsLater).map(later).prefetch(3)
      .withOptions({ optimizations: RULE }),
  "map that parallel calls hold": () =>
    Dataset.range(40).map(later).map(later, { numParallelCalls: 3 })
      .withOptions({ optimizations: RULE }),
  "map that shuffle holds": () =>
    Dataset.range(40).map(later).shuffle(5).withOptions({ optimizations: RULE }),
  "map that window holds": () =>
    Dataset.range(40).map(later).window(4, { shift: 1 }).withOptions({ optimizations: RULE }),
  "maps that a parallel interleave holds": () =>
    Dataset.range(6).interleave((n) => Dataset.range(n * 3).map(later), {
      cycleLength: 3,
      numParallelCalls: 2,
    }).withOptions({ optimizations: RULE }),
};

for (const [name, make] of Object.entries(PIPELINES)) {
  Deno.test(`parallelized calls are restored and saved again: ${name}`, async () => {
    await assertCheckpointLaw(make);
    // Operators above hold elements of the restored window when it is saved again.
    await assertCheckpointLaw(make, { beforeSave: () => rounds(6) });
  });
}
