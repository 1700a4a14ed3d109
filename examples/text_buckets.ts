/**
 * Text of uneven length: how much of a batch is padding with `paddedBatch`, with buckets by length, and with
 * several texts packed into one row.
 *
 *     deno run -P examples/text_buckets.ts
 */
import { Dataset, type Tensor } from "../mod.ts";

const folder = await Deno.makeTempDir();
try {
  await writeTexts(`${folder}/texts.txt`, 2_000);

  // Token 0 is padding. A tokenizer of your own goes here.
  const tokens = Dataset.textLines(`${folder}/texts.txt`)
    .map((line) => Int32Array.from(line.split(" "), (word) => word.length))
    .shuffle(500, { seed: 7 });

  const padded = tokens.paddedBatch(32);
  // Long texts come in smaller batches, so that every batch has about as many tokens.
  const bucketed = tokens.bucketBySequenceLength({
    length: (text) => text.length,
    boundaries: [9, 17, 33, 65],
    batchSizes: [128, 64, 32, 16, 8],
  });
  // `segmentIds` tell the texts of a row apart, for the attention mask; `positions` count within each.
  const packed = tokens.pack({ length: 128 }).batch(16).map(({ tokens }) => tokens);

  await report("padded batches", padded);
  await report("buckets", bucketed);
  await report("packed rows", packed);
} finally {
  await Deno.remove(folder, { recursive: true });
}

async function report(name: string, batches: Dataset<Tensor>): Promise<void> {
  let [places, filled, count] = [0, 0, 0];
  for await (const batch of batches) {
    const data = batch.data as Int32Array;
    places += data.length;
    filled += data.reduce((sum, token) => sum + Number(token !== 0), 0);
    count++;
  }
  const padding = 100 * (1 - filled / places);
  console.log(`${name}: ${count} batches, ${filled} tokens, ${padding.toFixed(1)} % padding`);
}

/** Lines of 1 to 100 words, most of them short. */
async function writeTexts(path: string, count: number): Promise<void> {
  const words = ["a", "leat", "brings", "water", "to", "the", "mill"];
  const lines = Array.from({ length: count }, (_, line) => {
    const length = 1 + Math.floor(100 * ((line * 7919 % count) / count) ** 3);
    return Array.from({ length }, (_, at) => words[(line + at) % words.length]).join(" ");
  });
  await Deno.writeTextFile(path, lines.join("\n"));
}
