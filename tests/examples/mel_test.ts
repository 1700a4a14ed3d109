/** The program that makes spectrograms of sound: what it draws, what it prints, what it refuses. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { drawSpectrogram } from "../../cli/mel/drawing.ts";
import { SWEEP_SAMPLE_RATE, writeSweeps } from "../../cli/mel/sweeps.ts";
import { Dataset, Tensor } from "../../mod.ts";
import { startChild } from "../lib/child.ts";
import { namesIn, withFiles } from "../lib/temp_folder.ts";

Deno.test("drawSpectrogram draws time to the right, pitch upwards, and the loudest of each part", () => {
  const mel = (frames: number, bins: number, loud: Record<number, number>) => {
    const data = new Float32Array(frames * bins);
    for (const [at, level] of Object.entries(loud)) data[Number(at)] = level;
    return new Tensor("float32", [frames, bins], data);
  };
  // Frame 0 has bin 0, frame 1 has bin 1 at a hundredth, which is 40 dB less.
  const size = { columns: 10, rows: 10 };
  assertEquals(drawSpectrogram(mel(3, 2, { 0: 1, 3: 0.01, 4: 0.9 }), size), "   \n█ █");
  assertEquals(drawSpectrogram(mel(4, 4, { 0: 1, 15: 0.1 }), { columns: 2, rows: 2 }), " ▒\n█ ");
  assertEquals(drawSpectrogram(mel(2, 2, {}), size), "  \n  ");
  assertEquals(drawSpectrogram(mel(0, 2, {}), size), "\n");
});

Deno.test("writeSweeps writes WAV files that rise in pitch", async () => {
  await withFiles({}, async (folder) => {
    const paths = await writeSweeps(`${folder}/new`, 2);
    const sounds = await Array.fromAsync(Dataset.wav(paths));
    assertEquals(sounds.map(({ path }) => path), paths);
    const [first, second] = sounds;
    assertEquals(first!.sampleRate, SWEEP_SAMPLE_RATE);
    assert(first!.samples.shape[0]! > second!.samples.shape[0]!);
    const crossings = (from: number) => {
      const part = first!.samples.data.subarray(from, from + SWEEP_SAMPLE_RATE / 2);
      return part.filter((x, i) => i > 0 && Math.sign(x) !== Math.sign(part[i - 1]!)).length;
    };
    assert(crossings(SWEEP_SAMPLE_RATE * 2) > 3 * crossings(0));
  });
});

Deno.test("writeSweeps leaves files that are there as they are, and no partial ones", async () => {
  await withFiles({ "sweep-0.wav": "of another program" }, async (folder) => {
    await writeSweeps(folder, 2);
    assertEquals(await Deno.readTextFile(`${folder}/sweep-0.wav`), "of another program");
    assertEquals(await namesIn(folder), ["sweep-0.wav", "sweep-1.wav"]);
  });
});

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  await using child = startChild("examples/mel.ts", { args, flags: ["-P", "--no-check"] });
  const { code } = await child.status;
  return { code, out: child.stdout.text, err: child.stderr.text };
}

Deno.test("mel prints batches and a drawing, names unreadable files, and fails if there is no other", async () => {
  await withFiles({ "broken.wav": "RIFF" }, async (folder) => {
    await writeSweeps(folder, 3);
    const some = await run("--wavs", `${folder}/*.wav`, "--batch-size", "2", "--mel-bins", "10");
    assertEquals(some.code, 0, some.err);
    assertMatch(some.out, /^mel float32 \[2, 298, 10\]: sweep-0.wav, sweep-1.wav$/m);
    assertMatch(some.out, /^mel float32 \[1, \d+, 10\]: sweep-2.wav$/m);
    assertStringIncludes(some.out, "█");
    assertStringIncludes(some.out, "3 files");
    assertStringIncludes(some.err, "broken.wav: Damaged WAV file");
    const none = await run("--wavs", `${folder}/broken.wav`);
    assertEquals(none.code, 1);
    assertStringIncludes(none.err, "error: There was no WAV file that could be read");
  });
  const wrong = await run("--mel-bins", "0");
  assertEquals(wrong.code, 2);
  assertStringIncludes(wrong.err, "--mel-bins is '0'");
});
