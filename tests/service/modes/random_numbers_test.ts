/** The numbers of a function's `random` on a service: what they depend on, mode by mode. */
import { Dataset } from "../../../mod.ts";
import { assertEquals, assertNotEquals } from "../../assert.ts";
import { testInline } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const ELEMENTS = 60;

const drawn = (seed: number) =>
  Dataset.range(ELEMENTS).map((x, { random }) => 1_000 * x + random.int(1_000))
    .withOptions({ seed });

async function sortedOf(numbers: Dataset<number>): Promise<number[]> {
  return (await Array.fromAsync(numbers)).sort((a, b) => a - b);
}

testInline(
  "OFF gives the random numbers of a local run, and DATA those of shard()",
  async (start) => {
    const local = await sortedOf(drawn(1));
    const sharded = await sortedOf(drawn(1).shard(1, 0));
    for (const workers of [1, 2]) {
      await using service = await start({ workers });
      const off = await sortedOf(drawn(1).distribute({ service }));
      assertEquals(off, local.flatMap((x) => Array<number>(workers).fill(x)));
      const data = drawn(1).distribute({ service, processingMode: "DATA" });
      assertEquals(await sortedOf(data), sharded);
    }
  },
);

testInline("FILE gives the random numbers of a share in every run", async (start) => {
  await using folder = await TempFolder.make({ "a.txt": "1\n2\n3\n", "b.txt": "4\n5\n6\n" });
  await using service = await start({ workers: 2 });
  const read = async (seed: number) => {
    const lines = Dataset.textLines(Dataset.listFiles(`${folder.path}/*.txt`, { shuffle: false }))
      .map((x, { random }) => [Number(x), random.int(1_000)])
      .withOptions({ seed }).distribute({ service, processingMode: "FILE" });
    return (await Array.fromAsync(lines)).sort(([a], [b]) => a! - b!);
  };
  const first = await read(1);
  assertEquals(await read(1), first);
  assertNotEquals(await read(2), first);
  const numbers = first.map(([, number]) => number);
  assertNotEquals(numbers.slice(0, 3), numbers.slice(3));
});

testInline(
  "offload gives the random numbers of a DETERMINISTIC job with the same splits",
  async (start) => {
    await using service = await start({ workers: 1 });
    const rows = (dataset: Dataset<unknown>) => sortedOf((dataset as Dataset<number[]>).unbatch());
    const batches = drawn(1).batch(8);
    const wanted = await rows(batches.distribute({ service, processingMode: "DETERMINISTIC" }));
    for (const ratio of [0.5, 1]) {
      const plan = { candidate: "p'3", ratio };
      assertEquals(await rows(batches.offload({ service, plan })), wanted);
    }
    assertNotEquals(wanted, await rows(batches));
  },
);
