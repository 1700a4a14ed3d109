/**
 * Pipelines whose answers were recorded, saved and restored at every position.
 */
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { build, type Fact } from "./pipelines.ts";

/** Pipelines that give no more than this are saved at every position, others up to it. */
const ELEMENTS_MAX = 8;

Deno.test("the random pipelines of the facts continue where they were saved", async () => {
  const path = new URL("./facts/random_pipelines.jsonl", import.meta.url);
  for (const line of (await Deno.readTextFile(path)).trimEnd().split("\n")) {
    const { pipeline }: Fact = JSON.parse(line);
    await assertCheckpointLaw(() => build(pipeline), { elementsMax: ELEMENTS_MAX });
  }
});
