/**
 * An example pipeline to plan for: mel spectrograms of sounds, in padded batches.
 * `deno task plan cli/plan/demo_pipeline.ts --step-ms 20`
 */
import { fileURLToPath } from "node:url";
import { AUTOTUNE, Dataset } from "../../mod.ts";
import { writeSweeps } from "../mel/sweeps.ts";

/** The folder of the sounds, which are generated if they are missing. */
const FOLDER = fileURLToPath(new URL("../../.cache/leat-sweeps", import.meta.url));
const SOUNDS = 6;

/** An endless dataset of batches of shape `[8, frames, 40]`. */
export default async function pipeline(): Promise<Dataset<unknown>> {
  return Dataset.wav(await writeSweeps(FOLDER, SOUNDS))
    .repeat()
    .map(({ samples, sampleRate }, { audio }) =>
      audio.melSpectrogram(samples, {
        sampleRate,
        frameLength: Math.ceil(0.025 * sampleRate),
        frameStep: Math.ceil(0.01 * sampleRate),
        numMelBins: 40,
        lowerEdgeHertz: 0,
        upperEdgeHertz: sampleRate / 2,
      })
    )
    .paddedBatch(8)
    .prefetch(AUTOTUNE);
}
