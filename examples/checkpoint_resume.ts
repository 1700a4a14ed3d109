/**
 * Checkpoint and resume: a training run is interrupted in the middle of an epoch, and another one goes on from its
 * checkpoint with exactly the batches that were left.
 *
 *     deno run -P examples/checkpoint_resume.ts
 */
import { Dataset } from "../mod.ts";

/** What a training run writes in addition to its iterator's state. */
interface Checkpoint {
  readonly step: number;
  readonly weight: number;
}

const folder = await Deno.makeTempDir();
try {
  const whole = await train({});
  console.log(`uninterrupted: ${whole.batches.length} steps, weight ${whole.weight}`);

  const first = await train({ folder, stopAfter: 13 });
  console.log(`first run: stopped after ${first.batches.length} steps, weight ${first.weight}`);
  const second = await train({ folder });
  console.log(`second run: ${second.batches.length} steps more, weight ${second.weight}`);

  const both = [...first.batches, ...second.batches];
  const same = String(both) === String(whole.batches) && second.weight === whole.weight;
  console.log(`the two runs together are the uninterrupted one: ${same}`);
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Trains, from the folder's checkpoint if there is one, like a restarted program. */
async function train(
  { folder, stopAfter = Infinity }: { folder?: string; stopAfter?: number },
): Promise<{ batches: string[]; weight: number }> {
  const dataset = Dataset.range(1_000)
    .shuffle(200)
    .map((x, { random }) => x + random.next()) // an augmentation
    .batch(32)
    .withOptions({ seed: 42 });
  await using iterator = dataset.iterator();
  let { step, weight }: Checkpoint = { step: 0, weight: 0 };
  if (folder !== undefined && await exists(`${folder}/model.json`)) {
    ({ step, weight } = JSON.parse(await Deno.readTextFile(`${folder}/model.json`)) as Checkpoint);
    await iterator.restore(await Deno.readFile(`${folder}/data.bin`));
  }
  const batches: string[] = [];
  for await (const batch of iterator) {
    for (const x of batch.data as Float64Array) weight += 0.001 * (x - weight);
    step++;
    batches.push(String(batch.data));
    if (batches.length < stopAfter) continue;
    // Saved together: the weights after this step, and the position in the data after it.
    await Deno.writeFile(`${folder}/data.bin`, await iterator.save());
    await Deno.writeTextFile(`${folder}/model.json`, JSON.stringify({ step, weight }));
    break;
  }
  return { batches, weight };
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
