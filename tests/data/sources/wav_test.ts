/** `wav` over real files, and audio in serialised functions. */

import { assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { gzipSync } from "node:zlib";
import wavefile from "wavefile";
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import { Dataset, TensorSpec } from "../../../mod.ts";
import { WavNode } from "../../../data/sources/wav.ts";
import { deserializeGraph, serializeGraph } from "../../../data/wire.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { collect } from "./running.ts";

/** A WAV file of 16-bit samples. */
function wav(samples: number[]): Uint8Array {
  const file = new wavefile.WaveFile();
  file.fromScratch(1, 8_000, "16", samples);
  return file.toBuffer();
}

const FILES = {
  "1.wav": wav([0, 16_384, -32_768]),
  "2.wav": wav([8_192]).slice(0, 45),
  "3.wav": wav([]),
};

Deno.test("wav gives path, samples and rate of each file; a damaged file is lost", async () => {
  await withFiles(FILES, async (folder) => {
    const node = new WavNode(Dataset.listFiles(`${folder}/*.wav`, { shuffle: false }).node);
    assertEquals(node.elementSpec, {
      path: new TensorSpec("string", []),
      samples: new TensorSpec("float32", [null, null]),
      sampleRate: new TensorSpec("int32", []),
    });
    const found = await collect(node);
    const [first, second, third, ...rest] = found;
    const samples = (...values: number[]) =>
      new Tensor("float32", [values.length, 1], Float32Array.from(values));
    assertEquals(first, {
      path: `${folder}/1.wav`,
      samples: samples(0, 0.5, -1),
      sampleRate: 8_000,
    });
    assertEquals((second as LeatError).code, "data_loss");
    assertStringIncludes((second as LeatError).message, `${folder}/2.wav: Damaged WAV file`);
    assertEquals(third, { path: `${folder}/3.wav`, samples: samples(), sampleRate: 8_000 });
    assertEquals(rest, []);
    const copy = deserializeGraph(serializeGraph(node), { isOwn: true });
    assertEquals(await collect(copy).then((all) => all.map(String)), found.map(String));
    assertEquals((await collect(copy))[0], first);
    await assertCheckpointLaw(() => Dataset.wav([`${folder}/1.wav`, `${folder}/3.wav`]));
  });
});

Deno.test("wav reads compressed files that are larger than one read", async () => {
  const long = wav(Array.from({ length: 300_000 }, (_, i) => i * 7919 % 30_000));
  await withFiles({ "long.wav": long, "long.wav.gz": gzipSync(long) }, async (folder) => {
    const [plain] = await Array.fromAsync(Dataset.wav(`${folder}/long.wav`));
    const [compressed] = await Array.fromAsync(
      Dataset.wav(`${folder}/long.wav.gz`, { compression: "gzip" }),
    );
    assertEquals(plain!.samples.shape, [300_000, 1]);
    assertEquals(compressed!.samples, plain!.samples);
  });
});

Deno.test("serialised functions decode and transform audio", async () => {
  const options = { sampleRate: 8_000, frameLength: 4, frameStep: 2 };
  const dataset = Dataset.from([wav([0, 16_384, -32_768, 5, 6])])
    .map(
      (bytes, { audio, options }) => audio.melSpectrogram(audio.decodeWav(bytes).samples, options),
      {
        captures: { options },
      },
    );
  const [here] = await Array.fromAsync(dataset);
  assertEquals(here!.shape, [1, 20]);
  assertEquals(
    await Array.fromAsync(Dataset.deserialize(dataset.serialize(), { trustPipeline: true })),
    [here],
  );
});

Deno.test("a capture cannot have the name of a value that functions get", () => {
  const error = assertThrows(
    () => Dataset.range(1).map((x) => x, { captures: { audio: 1 } }),
    LeatError,
  ) as LeatError;
  assertStringIncludes(error.message, `cannot be called "audio"`);
});
