/**
 * `distributedSave`: the workers of a service write a dataset together.
 *
 * @module
 */
import {
  Dataset,
  distributedSave,
  type DistributedSaveProgress,
  LeatError,
  type LocalCluster,
  type LocalClusterOptions,
} from "../../mod.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { testInline, testOnEach, upTo } from "./carriers.ts";

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
}

/** What a folder holds beside the manifest and the chunks that it lists. */
async function leftIn(folder: string): Promise<string[]> {
  const names = await namesIn(folder);
  return names.filter((name) => name !== "DONE" && !/\.tfrecord(\.gz)?$/.test(name));
}

async function loaded<T>(path: string): Promise<T[]> {
  return await Array.fromAsync(await Dataset.load<T>(path));
}

testOnEach(
  "distributedSave writes the DETERMINISTIC stream, whatever the number of workers",
  async (start) => {
    await inFolder(async (folder) => {
      const dataset = Dataset.range(1000).filter((x) => x % 3 !== 0).shuffle(20).batch(16)
        .map((batch) => batch.toArray());
      let wanted: unknown;
      for (const workers of [1, 3]) {
        await using cluster = await start({ workers });
        wanted ??= await Array.fromAsync(
          dataset.distribute({ service: cluster, processingMode: "DETERMINISTIC" }),
        );
        const path = `${folder}/${workers}`;
        const told: DistributedSaveProgress[] = [];
        const onProgress = (progress: DistributedSaveProgress) => told.push(progress);
        await distributedSave(dataset, path, cluster, { onProgress });
        assertEquals(await loaded(path), wanted);
        assertEquals(await leftIn(path), []);
        const { splitsDone, splitsTotal, elements } = told.at(-1)!;
        assertEquals([splitsDone, elements], [splitsTotal, (wanted as unknown[]).length]);
      }
    });
  },
);
