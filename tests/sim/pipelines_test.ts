/**
 * Pipelines drawn at random, in modes drawn at random, under faults: they give what the plain
 * definitions of their operators say. A seed that fails is repeated by putting it into `runPipelines`,
 * or, where all its faults are drawn, into `sim/vopr.ts --workload pipelines --seed`.
 */
import { NO_FAULTS } from "../../sim/options.ts";
import { drawPipeline } from "../../sim/random_pipelines.ts";
import { SimRandom } from "../../sim/random.ts";
import { drawOptions } from "../../sim/swarm.ts";
import { runPipelines } from "../../sim/workload_pipelines.ts";
import { assert } from "../assert.ts";
import { expectAllKept, seeds } from "./lib/seeds.ts";

const CALM_SEEDS = 20;
const SEEDS = 40;

Deno.test("pipelines drawn at random use every operator, alone and together", () => {
  const texts = Array.from(
    { length: 300 },
    (_, seed) => drawPipeline(new SimRandom(BigInt(seed))).text,
  );
  for (const name of ["map", "filter", "shuffle", "flatMap", "interleave", "concatenate"]) {
    assert(texts.some((text) => text.includes(`.${name}(`)), name);
  }
  for (const name of ["repeat", "take", "skip", "batch", "paddedBatch", "prefetch"]) {
    assert(texts.some((text) => text.includes(`.${name}(`)), name);
  }
  assert(texts.some((text) => text.startsWith("zip(")));
  assert(texts.some((text) => text.split(").").length > 5), "deep ones");
});

Deno.test("pipelines drawn at random give all that their operators' definitions say", async () => {
  const runs = seeds(CALM_SEEDS, (seed) => ({ seed, faults: NO_FAULTS }));
  await expectAllKept(runPipelines, runs);
});

Deno.test("pipelines drawn at random give nothing twice and end through crashes and all other faults", async () => {
  const counters = await expectAllKept(runPipelines, seeds(SEEDS, drawOptions));
  assert(counters.get("node_crashed") > SEEDS / 2);
  assert(counters.get("iterator_restored") > 0, "tokens of random pipelines were restored");
});
