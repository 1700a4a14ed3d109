/** Folders with a file for each element: splits of many files, and every file once all the same. */
import { openIterator } from "../../data/dataset_iterator.ts";
import { openSplit } from "../../data/deterministic/split_run.ts";
import { listSplitTable } from "../../data/sharding/splits.ts";
import { Dataset, DenoHost, offloadProgress } from "../../mod.ts";
import { cutPointsOf } from "../../offload/cut_points.ts";
import { assert, assertEquals, assertNotEquals, assertRejects } from "../assert.ts";
import { orderedReference } from "../data/lib/ordered_reference.ts";
import { outcomesOf, readOutcomes } from "../data/lib/outcomes.ts";
import { type Files, withFiles } from "../lib/temp_folder.ts";
import { testInline } from "../service/lib/carriers.ts";

const COUNT = 100;
/** Two classes; the contents of a file are its number. */
const FILES: Files = Object.fromEntries(
  Array.from(
    { length: COUNT },
    (_, i) => [`${i % 2 === 0 ? "cat" : "dog"}/${100 + i}.png`, `${i}`],
  ),
);
const NUMBERS = Array.from({ length: COUNT }, (_, i) => i);

function numbersOf(folder: string, shuffle = true) {
  return Dataset.imageFolder(folder, { decode: false, shuffle })
    .map(({ image }) => Number(new TextDecoder().decode(image as unknown as Uint8Array)));
}

/** The rows of batches. */
function rowsIn(outcomes: readonly unknown[]): number[] {
  return outcomes.flatMap((at) => [...(at as { element: { data: number[] } }).element.data]);
}

const sorted = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b);

/** The splits of the part that workers may run. */
async function splitsOf(dataset: Dataset<unknown>, groupsFiles = true) {
  const { candidates } = cutPointsOf(dataset.node, groupsFiles ? undefined : true);
  const { root, chain } = candidates.find(({ name }) => name === "p'2")!;
  return { chain, splits: (await listSplitTable(root, new DenoHost()))[0]! };
}

Deno.test("a split has as many files as fill a batch, if enough splits are left", async () => {
  await withFiles(FILES, async (folder) => {
    const lengthsOf = async (dataset: Dataset<unknown>, groups?: boolean) =>
      (await splitsOf(dataset, groups)).splits.map(({ start, stop }) => stop - start);
    const fours = await lengthsOf(numbersOf(folder).batch(4));
    assertEquals(fours, Array.from({ length: COUNT / 4 }, () => 4));
    for (const dataset of [numbersOf(folder).batch(64), numbersOf(folder)]) {
      const few = await lengthsOf(dataset);
      assertEquals([few.length, Math.max(...few)], [17, 6]);
    }
    // Records: a file of them is a split of its own. So it is where splits are promised.
    const records = Dataset.textLines(Dataset.listFiles(`${folder}/*/*.png`)).map((x) => x);
    for (
      const at of [await lengthsOf(records.batch(4)), await lengthsOf(numbersOf(folder), false)]
    ) {
      assertEquals(at.length, COUNT);
    }
  });
});

Deno.test("groups have every file once, drawn anew in each epoch if the listing is shuffled", async () => {
  await withFiles(FILES, async (folder) => {
    const read = async (shuffle: boolean, epoch: number) => {
      const { chain, splits } = await splitsOf(numbersOf(folder, shuffle).batch(10));
      const groups = splits.map((split, index) =>
        outcomesOf(openSplit({ ...chain, batch: undefined }, {
          ...{ seed: 7n, epoch, index, split, onRemainder() {} },
        }))
      );
      return (await Promise.all(groups)).map((group) =>
        group.map((at) => (at as { element: number }).element)
      );
    };
    const first = await read(true, 0);
    assertEquals(sorted(first.flat()), NUMBERS);
    assertEquals(await read(true, 0), first);
    const second = await read(true, 1);
    assertEquals(sorted(second.flat()), NUMBERS);
    assertNotEquals(sorted(second[0]!), sorted(first[0]!));
    // Both classes come together.
    assert(first[0]!.some((x) => x % 2 === 0) && first[0]!.some((x) => x % 2 === 1));
    const listed = NUMBERS.filter((x) => x % 2 === 0).concat(NUMBERS.filter((x) => x % 2 === 1));
    assertEquals((await read(false, 0)).flat(), listed);
  });
});

Deno.test("a group of another listing is refused, and no files are read instead", async () => {
  await withFiles(FILES, async (folder) => {
    const { chain, splits } = await splitsOf(numbersOf(folder).batch(10));
    await Deno.rename(`${folder}/cat/100.png`, `${folder}/cat/099.png`);
    await using iterator = openSplit(chain, {
      ...{ seed: 7n, epoch: 0, index: 0, split: splits[0]!, onRemainder() {} },
    });
    await assertRejects(() => iterator.next(), Error, "the listing has changed");
  });
});

testInline("offload gives every file of a folder once, and resumes", async (start) => {
  await using service = await start({ workers: 2 });
  await withFiles(FILES, async (folder) => {
    for (const [candidate, shuffle] of [["p'1", true], ["p'2", false], ["p'3", true]] as const) {
      const offloaded = () =>
        numbersOf(folder, shuffle).batch(4)
          .offload({ service, plan: { candidate, ratio: 0.5 } });
      const dataset = offloaded();
      await using first = dataset.iterator();
      const before = await readOutcomes(first, 7);
      const state = await first.save();
      const rest = await outcomesOf(first);
      assertEquals(sorted(rowsIn([...before, ...rest])), NUMBERS, candidate);
      const { local, remote, fallbacks } = offloadProgress(dataset);
      assert(local.elements > 0 && remote.elements > 0 && fallbacks === 0);
      await using second = offloaded().iterator();
      await second.restore(state);
      const after = await outcomesOf(second);
      assertEquals(sorted(rowsIn([...before, ...after])), NUMBERS, candidate);
    }
  });
});

testInline("offload with deterministic keeps the stream of a folder's job", async (start) => {
  await using service = await start({ workers: 1 });
  await withFiles(FILES, async (folder) => {
    const batches = numbersOf(folder).batch(4);
    const dataset = batches.offload({
      ...{ service, plan: { candidate: "p'3", ratio: 0.5 }, deterministic: true },
    });
    assertEquals(await outcomesOf(dataset.iterator()), await orderedReference(batches));
    assert(offloadProgress(dataset).remote.elements > 0);
  });
});

testInline("offload of a folder in which nothing is offloaded is the pipeline", async (start) => {
  await using service = await start({ workers: 1 });
  await withFiles(FILES, async (folder) => {
    const batches = numbersOf(folder).cache().batch(4);
    const dataset = batches.offload({ service, plan: { candidate: "p'2", ratio: 0.5 } });
    const epoch = async (of: Dataset<unknown>) =>
      sorted(rowsIn(await outcomesOf(openIterator(of.node))));
    assertEquals([await epoch(dataset), await epoch(dataset)], [NUMBERS, NUMBERS]);
    // The cache is the pipeline's own: files are not needed any more.
    await Deno.remove(folder, { recursive: true });
    await Deno.mkdir(folder);
    assertEquals(await epoch(batches), NUMBERS);
  });
});
