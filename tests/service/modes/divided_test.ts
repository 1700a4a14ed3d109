/** Assignment of data: dynamic splits, and fixed shares. */
import {
  Dataset,
  type DistributeOptions,
  LeatError,
  type LocalCluster,
  SHARD_HINT,
} from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { outcomesOf, readOutcomes } from "../../data/lib/outcomes.ts";
import { sorted, testInline, upTo } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

type Mode = NonNullable<DistributeOptions["processingMode"]>;

const LINES = 5;

/** A folder of text files with five numbers each, from 0 on. */
async function withFiles(files: number, use: (pattern: string) => Promise<void>): Promise<void> {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  for (let file = 0; file < files; file++) {
    const numbers = Array.from({ length: LINES }, (_, i) => `${file * LINES + i}\n`);
    await Deno.writeTextFile(`${folder}/${String(file).padStart(3, "0")}.txt`, numbers.join(""));
  }
  await use(`${folder}/*.txt`);
}

const linesOf = (pattern: string) =>
  Dataset.textLines(Dataset.listFiles(pattern, { shuffle: false })).map((line) => Number(line));

/** Pipelines that give the same under DYNAMIC as in one process, in any order. */
const DYNAMIC: Record<string, Dataset<unknown>> = {
  "fewer elements than workers": Dataset.range(2),
  "one element": Dataset.fromTensors([7]),
  "a repetition of few": Dataset.range(2).repeat(10),
  "repetitions within repetitions": Dataset.range(3).repeat(2).map((x) => x).repeat(3),
  "a shuffle and a repetition": Dataset.range(30).shuffle(30).repeat(2),
  "a nested zip": Dataset.zip([
    Dataset.range(20),
    Dataset.zip([Dataset.range(20), Dataset.range(100, 120)]),
  ]),
  "a zip of three lengths": Dataset.zip([Dataset.range(9), Dataset.range(40), Dataset.range(20)]),
  "a zip of three lengths, repeated": Dataset.zip([Dataset.range(3), Dataset.range(7)]).repeat(5),
  "concatenated three times": Dataset.range(5).concatenate(Dataset.range(10, 15))
    .concatenate(Dataset.range(20, 25)),
  "concatenated and repeated": Dataset.range(4).concatenate(Dataset.range(10, 13)).repeat(3),
  "nothing and something": Dataset.range(0).concatenate(Dataset.range(5)),
  "something and nothing": Dataset.range(5).concatenate(Dataset.range(0)),
  "an interleave of sources in its function": Dataset.range(4).interleave(
    (x, { Dataset }) => Dataset.range(x).map((y) => 10 + y),
    { cycleLength: 2, blockLength: 2 },
  ),
  "a choice that ends": Dataset.chooseFromDatasets(
    [Dataset.range(0, 20), Dataset.range(20, 40)],
    Dataset.from([0, 1]).repeat(),
    { stopOnEmptyDataset: false },
  ),
  "samples of three": Dataset.sampleFromDatasets([
    Dataset.range(0, 10),
    Dataset.range(10, 30),
    Dataset.range(0),
  ], { seed: 1 }),
};

testInline(
  "DYNAMIC gives the same as one process, also with more workers than elements",
  async (start) => {
    await using cluster = await start({ workers: 4 });
    const texts = (elements: unknown[]) =>
      elements.map((x) => Deno.inspect(x, { depth: 9 })).sort();
    for (const [name, dataset] of Object.entries(DYNAMIC)) {
      const distributed = dataset.distribute({ service: cluster, processingMode: "DYNAMIC" });
      const wanted = texts(await Array.fromAsync(dataset));
      for (let epoch = 0; epoch < 2; epoch++) {
        assertEquals(texts(await Array.fromAsync(distributed)), wanted, `${name}, epoch ${epoch}`);
      }
    }
  },
);

testInline(
  "DYNAMIC repeats few elements endlessly, for more workers than elements",
  async (start) => {
    await using cluster = await start({ workers: 3 });
    for (const count of [1, 2]) {
      const endless = Dataset.range(count).repeat()
        .distribute({ service: cluster, processingMode: "DYNAMIC" });
      const found = await Array.fromAsync(endless.take(300));
      const least = Math.min(...upTo(count).map((x) => found.filter((y) => y === x).length));
      // At most one repetition is in progress at each worker.
      assert(least >= 300 / count - 2 * 3 * 4, `${least} of ${300 / count}`);
    }
  },
);

testInline(
  "DYNAMIC reads each file once, however many and however damaged",
  async (start) => {
    await using cluster = await start({ workers: 3 });
    const options = { service: cluster, processingMode: "DYNAMIC" } as const;
    for (const files of [1, 2, 3, 10]) {
      await withFiles(files, async (pattern) => {
        const numbers = linesOf(pattern).distribute(options);
        assertEquals(sorted(await Array.fromAsync(numbers)), upTo(files * LINES));
        const shuffled = Dataset.textLines(Dataset.listFiles(pattern)).distribute(options);
        assertEquals((await Array.fromAsync(shuffled)).length, files * LINES);
      });
    }
    await withFiles(4, async (pattern) => {
      const folder = pattern.slice(0, -5);
      await Deno.writeTextFile(`${folder}/001.txt`, "");
      await Deno.writeTextFile(`${folder}/002.txt`, "10");
      const numbers = linesOf(pattern).distribute(options);
      const wanted = [0, 1, 2, 3, 4, 10, 15, 16, 17, 18, 19];
      assertEquals(sorted(await Array.fromAsync(numbers)), wanted);
      const names = [`${folder}/000.txt`, `${folder}/none.txt`, `${folder}/003.txt`];
      const outcomes = await outcomesOf(Dataset.textLines(names).distribute(options).iterator());
      const errors = outcomes.flatMap((outcome) => "error" in outcome ? [outcome.error] : []);
      assertEquals([outcomes.length, errors.length], [11, 1]);
      assert(errors[0]!.startsWith("not_found") && errors[0]!.includes("none.txt"), errors[0]);
    });
    // Of several workers one might still be listing when the others have failed, and the test ends.
    await using single = await start({ workers: 1 });
    const none = Dataset.textLines(Dataset.listFiles("/nowhere/*.txt"))
      .distribute({ ...options, service: single });
    const [{ error }, ...rest] = await outcomesOf(none.iterator()) as [{ error: string }];
    assert(error.includes("/nowhere/*.txt"), error);
    assertEquals(rest, []);
  },
);

/** The first elements of the last remaining worker. */
async function shareOf(
  cluster: LocalCluster,
  dataset: Dataset<unknown>,
  processingMode: Mode,
  count: number,
): Promise<unknown[]> {
  await using iterator = dataset.distribute({ service: cluster, processingMode }).iterator();
  return (await readOutcomes(iterator, count)).map((outcome) =>
    "element" in outcome ? outcome.element : outcome.error
  );
}

testInline(
  "worker 3 of 5 has files 3 and 8 of ten, and elements 3, 8, 13 and so on",
  async (start) => {
    await using cluster = await start({ workers: 5 });
    for (const worker of [0, 1, 2, 4]) await cluster.stopWorker(worker);
    await withFiles(10, async (pattern) => {
      const [third, eighth] = [upTo(5).map((i) => 15 + i), upTo(5).map((i) => 40 + i)];
      const lines = linesOf(pattern);
      const fifth = upTo(10).map((i) => 5 * i + 3);
      const batches = [[15, 16, 17, 18, 19], [40, 41, 42, 43, 44]];
      const cases: readonly [Dataset<unknown>, Mode, unknown[]][] = [
        [lines, "FILE", [...third, ...eighth]],
        [lines, "FILE_OR_DATA", [...third, ...eighth]],
        [lines, "DATA", fifth],
        [lines.shard(SHARD_HINT, SHARD_HINT), "HINT", fifth],
        // Operators after the hint apply to the worker's part only.
        [lines.shard(SHARD_HINT, SHARD_HINT).skip(1), "HINT", fifth.slice(1)],
        // Whole batches are the elements of a pipeline that batches.
        [lines.batch(5).map((batch) => batch.toArray()), "DATA", batches],
        [Dataset.range(50), "FILE_OR_DATA", fifth],
        [Dataset.range(50), "DATA", fifth],
        [Dataset.range(5).repeat(10), "DATA", fifth.map(() => 3)],
        [Dataset.range(0, 25).concatenate(Dataset.range(25, 50)), "DATA", fifth],
        [Dataset.range(50).enumerate(), "DATA", fifth.map((x) => [x, x])],
        [
          Dataset.range(50).shard(SHARD_HINT, SHARD_HINT).enumerate(),
          "HINT",
          fifth.map((x, i) => [i, x]),
        ],
        // Without a hint every worker gives the whole pipeline.
        [Dataset.range(50).shard(5, 1), "HINT", fifth.map((x) => x - 2)],
        [Dataset.range(50).filter((x) => x % 5 === 3).shard(2, 0), "OFF", [3, 13, 23, 33, 43]],
      ];
      for (const [dataset, mode, wanted] of cases) {
        const found = await shareOf(cluster, dataset, mode, wanted.length);
        assertEquals(found, wanted, `${mode} of ${dataset.node.kind}`);
      }
    });
  },
);

testInline(
  "static policies refuse what they cannot divide, without a fallback",
  async (start) => {
    await using cluster = await start({ workers: 3 });
    await withFiles(2, async (pattern) => {
      const cases: readonly [Dataset<unknown>, Mode, string, string][] = [
        [linesOf(pattern), "FILE", "invalid_argument", "not enough for the required 3 shards"],
        [
          linesOf(pattern),
          "FILE_OR_DATA",
          "invalid_argument",
          "not enough for the required 3 shards",
        ],
        [Dataset.range(9), "FILE", "not_found", "unshardable"],
        [Dataset.from([1, 2, 3]).batch(2), "FILE", "not_found", "unshardable"],
        [Dataset.range(9).shard(SHARD_HINT, SHARD_HINT), "DYNAMIC", "failed_precondition", "HINT"],
        [
          Dataset.range(9).shard(SHARD_HINT, SHARD_HINT),
          "DETERMINISTIC",
          "failed_precondition",
          "HINT",
        ],
        [
          Dataset.range(9).shard(SHARD_HINT, SHARD_HINT),
          "FILE_OR_DATA",
          "failed_precondition",
          "HINT",
        ],
      ];
      for (const [dataset, processingMode, code, message] of cases) {
        const read = () =>
          Array.fromAsync(dataset.distribute({ service: cluster, processingMode }));
        const error = await assertRejects(read, LeatError, message);
        assertEquals(
          error.code,
          code,
          `${processingMode} of ${dataset.node.kind}: ${error.message}`,
        );
      }
    });
  },
);

testInline("shares are the same in each epoch and for each client of a job", async (start) => {
  await using cluster = await start({ workers: 3 });
  for (const processingMode of ["DATA", "FILE_OR_DATA"] as const) {
    const dataset = Dataset.range(10).distribute({ service: cluster, processingMode });
    assertEquals(sorted(await Array.fromAsync(dataset.repeat(2))), upTo(10, 2));
    const job = { service: cluster, processingMode, jobName: processingMode };
    const both = [0, 1].map(() => Array.fromAsync(Dataset.range(10).distribute(job)));
    assertEquals(sorted((await Promise.all(both)).flat()), upTo(10));
  }
});

testInline(
  "a static job waits for a listed worker that is away, and ends with it",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    await cluster.stopWorker(1);
    const dataset = Dataset.range(10).distribute({ service: cluster, processingMode: "DATA" });
    await using iterator = dataset.iterator();
    const seen: number[] = [];
    for (let i = 0; i < 5; i++) seen.push((await iterator.next()).value!);
    assertEquals(seen, [0, 2, 4, 6, 8]);
    const sixth = iterator.next();
    await cluster.restartWorker(1);
    seen.push((await sixth).value!);
    for await (const x of iterator) seen.push(x);
    assertEquals(sorted(seen), upTo(10));
  },
);

testInline("OFF shards as the pipeline says, equally at every worker", async (start) => {
  await using cluster = await start({ workers: 3 });
  for (const dataset of [Dataset.range(10).shard(2, 1), Dataset.range(10).take(3).skip(1)]) {
    const wanted = await Array.fromAsync(dataset);
    const found = await Array.fromAsync(dataset.distribute({ service: cluster }));
    assertEquals(sorted(found), sorted([...wanted, ...wanted, ...wanted]));
  }
});
