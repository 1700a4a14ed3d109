/** What random pipelines contain. Their runs are in `workloads_long_test.ts`. */
import { drawPipeline } from "../../../sim/reference/random_pipelines.ts";
import { SimRandom } from "../../../sim/engine/random.ts";
import { assert } from "../../assert.ts";

Deno.test("random pipelines use every operator, alone and combined", () => {
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
