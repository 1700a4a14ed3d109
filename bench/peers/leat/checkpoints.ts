/** Saves checkpoints of a pipeline with a full shuffle buffer. */
import { Dataset } from "../../../mod.ts";
import type { Pipelines } from "./step.ts";

export const checkpoints: Pipelines = {
  "checkpoint-shuffle": () => {
    const path = Deno.makeTempFileSync();
    const iterator = Dataset.range(10_000_000).shuffle(10_000, { seed: 1 }).batch(32).repeat()
      .iterator();
    let bytes = 0;
    return {
      async step() {
        await iterator.next();
        const state = await iterator.save();
        await Deno.writeFile(path, state);
        bytes = state.length;
        return 1;
      },
      get also() {
        return { bytes };
      },
      async [Symbol.asyncDispose]() {
        await iterator.return();
        await Deno.remove(path);
      },
    };
  },
};
