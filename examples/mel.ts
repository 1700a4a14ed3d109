/** From sound to batches of mel spectrograms: `deno run -P examples/mel.ts --help`. */

import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { Dataset, LeatError, type Tensor } from "../mod.ts";
import { runProgram } from "../cli/lib/args.ts";
import type { Program } from "../cli/lib/help.ts";
import { integer, number, text, type Values } from "../cli/lib/options.ts";
import { drawSpectrogram } from "../cli/mel/drawing.ts";
import { writeSweeps } from "../cli/mel/sweeps.ts";

const SWEEP_FOLDER = fileURLToPath(new URL("../.cache/leat-sweeps", import.meta.url));

const OPTIONS = {
  wavs: text({ help: "Your WAV files, as './*.wav'. Default: tones.", placeholder: "PATTERN" }),
  batchSize: integer({ help: "Spectrograms in a batch.", default: 4, min: 1, max: 1024 }),
  melBins: integer({ help: "Bands of pitch.", default: 40, min: 1, max: 512 }),
  frameMs: number({ help: "Length of a frame.", default: 25, min: 1, max: 1_000 }),
  stepMs: number({ help: "From one frame to the next.", default: 10, min: 1, max: 1_000 }),
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno run -P examples/mel.ts",
  summary:
    "Reads WAV files, makes mel spectrograms of them and batches these, the shorter ones padded; " +
    "prints the batches and draws the first spectrogram.",
  options: OPTIONS,
  notes: "Files that cannot be read are named and left out.",
};

if (import.meta.main) await runProgram(PROGRAM, main);

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const files = values.wavs === undefined
    ? await writeSweeps(SWEEP_FOLDER, 6)
    : Dataset.listFiles(values.wavs, { shuffle: false });
  const { batchSize, melBins, frameMs, stepMs } = values;
  const spectrograms = Dataset.wav(files).map(
    ({ path, samples, sampleRate }, { audio, ...how }) => ({
      path,
      mel: audio.melSpectrogram(samples, {
        sampleRate,
        frameLength: Math.ceil(how.frameMs * sampleRate / 1000),
        frameStep: Math.ceil(how.stepMs * sampleRate / 1000),
        numMelBins: how.melBins,
        lowerEdgeHertz: 0,
        upperEdgeHertz: sampleRate / 2,
      }),
    }),
    { captures: { frameMs, stepMs, melBins } },
  );

  const count = await printBatches(spectrograms.paddedBatch(batchSize));
  if (count === 0) throw new LeatError("not_found", "There was no WAV file that could be read");
  console.log(`${count} files`);
}

/** Prints every batch and draws the first spectrogram. Returns the number of files. */
async function printBatches(
  batches: Dataset<{ readonly path: Tensor; readonly mel: Tensor }>,
): Promise<number> {
  await using iterator = batches.iterator();
  let count = 0;
  for (;;) {
    const result = await iterator.next().catch((error) => LeatError.from(error));
    if (result instanceof LeatError) {
      console.error(`left out: ${result.message}`);
      continue;
    }
    if (result.done) return count;
    const { path, mel } = result.value;
    const names = (path.data as string[]).map((one) => basename(one));
    console.log(`mel ${mel.dtype} [${mel.shape.join(", ")}]: ${names.join(", ")}`);
    if (count === 0) {
      console.log(`${names[0]}:\n${drawSpectrogram(mel.row(0), { columns: 96, rows: 20 })}`);
    }
    count += names.length;
  }
}
