/**
 * Preparing a dataset once: the workers of a service write it to disk together, a trainer reads it while it is being
 * written, and later epochs read it from there.
 *
 *     deno run -P examples/prepared_dataset.ts
 */
import { Dataset, distributedSave, LocalCluster, type Tensor } from "../mod.ts";

const folder = await Deno.makeTempDir();
try {
  await using cluster = await LocalCluster.start({ workers: 2 });
  const expensive = Dataset.range(2_000)
    .map((x) => {
      let root = x;
      for (let i = 0; i < 500; i++) root -= (root * root - x) / (2 * root + 1e-9);
      return new Float32Array(64).fill(root);
    })
    .batch(50);

  const path = `${folder}/prepared`; // a path that all workers can access
  const saving = distributedSave(expensive, path, cluster, {
    onProgress: ({ splitsDone, splitsTotal }) =>
      console.log(`saved ${splitsDone} of ${splitsTotal} splits`),
  });
  const growing = await Dataset.load<Tensor>(path, { wait: true });
  let first = 0;
  for await (const batch of growing) first += batch.shape[0]!;
  console.log(`epoch 1, while it was written: ${first} rows`);
  await saving;

  const prepared = await Dataset.load<Tensor>(path);
  for (let epoch = 2; epoch <= 3; epoch++) {
    let rows = 0;
    for await (const batch of prepared.shuffle(10)) rows += batch.shape[0]!;
    console.log(`epoch ${epoch}, from disk: ${rows} rows`);
  }
} finally {
  await Deno.remove(folder, { recursive: true });
}
