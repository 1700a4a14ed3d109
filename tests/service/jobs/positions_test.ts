/**
 * Saved and restored positions in distributed datasets, datasets that are saved by a service, and
 * those that are read by their ids.
 */
import {
  Dataset,
  type DatasetIterator,
  distributedSave,
  LeatError,
  registerDataset,
  TensorSpec,
} from "../../../mod.ts";
import { assert, assertEquals, assertNotEquals, assertRejects } from "../../assert.ts";
import { outcomesOf, readOutcomes } from "../../data/lib/outcomes.ts";
import { sorted, testInline, testOnEach, upTo } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

/** Modes whose iterators have no position to save. */
const PLACELESS = ["OFF", "DYNAMIC", "FILE_OR_DATA", "DATA", "HINT"] as const;

testInline(
  "save() and restore() are refused in all modes but one, before and after reading",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const state = await Dataset.range(3).iterator().save();
    for (const processingMode of PLACELESS) {
      const pipeline = Dataset.range(6).distribute({ service: cluster, processingMode });
      for (const dataset of [pipeline, pipeline.batch(2), pipeline.repeat(2).map((x) => x)]) {
        // Before the first repetition everything can still be saved.
        for (const read of dataset.node.kind === "map" ? [1] : [0, 1]) {
          await using iterator: DatasetIterator<unknown> = dataset.iterator();
          for (let i = 0; i < read; i++) await iterator.next();
          const error = await assertRejects(() => iterator.save(), LeatError, "DETERMINISTIC");
          assertEquals(error.code, "failed_precondition");
          assert(error.message.includes(processingMode), error.message);
          await assertRejects(() => iterator.restore(state), LeatError);
          // Reading continues normally.
          const { length } = await outcomesOf(iterator);
          assertEquals(length > 0, true, processingMode);
        }
      }
    }
  },
);

/** Pipelines around a DETERMINISTIC dataset, with a part that runs at the reader. */
const PLACES: Record<string, (dataset: Dataset<number>) => Dataset<unknown>> = {
  "as it is": (dataset) => dataset,
  "batched by its reader": (dataset) => dataset.batch(4),
  "shuffled by its reader": (dataset) => dataset.shuffle(5, { seed: 1 }),
  "repeated": (dataset) => dataset.repeat(2),
  "taken from and counted": (dataset) => dataset.skip(2).take(20).enumerate(),
  "zipped with numbers": (dataset) => dataset.zip(Dataset.counter()),
  "read ahead": (dataset) => dataset.prefetch(3),
};

testInline(
  "a DETERMINISTIC position can be saved anywhere, and continues on another service",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    await using other = await start({ workers: 1 });
    const open = (
      service: typeof cluster,
      around: (dataset: Dataset<number>) => Dataset<unknown>,
    ) =>
      around(
        Dataset.range(24).filter((x) => x % 5 !== 0).shuffle(4).map((x) => x * 3)
          .distribute({ service, processingMode: "DETERMINISTIC" }),
      ).iterator();
    for (const [name, around] of Object.entries(PLACES)) {
      const wanted = await outcomesOf(open(cluster, around));
      for (const at of [0, 1, wanted.length >> 1, wanted.length]) {
        await using reader = open(cluster, around);
        assertEquals(await readOutcomes(reader, at), wanted.slice(0, at), name);
        const state = await reader.save();
        await using restored = open(other, around);
        await restored.restore(state);
        assertEquals(await outcomesOf(restored), wanted.slice(at), `${name}, at ${at}`);
        // A restored one can be saved again, and the saved one continues.
        assertEquals(await outcomesOf(reader), wanted.slice(at), `${name}, at ${at}`);
      }
    }
  },
);

testInline(
  "a position of one dataset is invalid for another, and so are arbitrary bytes",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const options = { service: cluster, processingMode: "DETERMINISTIC" } as const;
    await using iterator = Dataset.range(9).distribute(options).iterator();
    await iterator.next();
    const state = await iterator.save();
    const others = [
      Dataset.range(8).distribute(options),
      Dataset.range(9).batch(2).distribute(options),
      Dataset.range(9),
    ];
    for (const other of others) {
      await using refusing: DatasetIterator<unknown> = other.iterator();
      const error = await assertRejects(() => refusing.restore(state), LeatError);
      assertEquals(error.code, "failed_precondition");
      assertEquals((await outcomesOf(refusing)).length > 3, true);
    }
    for (
      const bytes of [new Uint8Array(), new Uint8Array(40), state.subarray(0, state.length - 1)]
    ) {
      await assertRejects(() => iterator.restore(bytes), LeatError);
    }
    assertEquals(sorted(await Array.fromAsync(iterator)), upTo(8).map((x) => x + 1));
  },
);

testInline("epochs after a restored one are those that follow it", async (start) => {
  await using cluster = await start({ workers: 1 });
  const open = () =>
    Dataset.range(30).shuffle(30).distribute({ service: cluster, processingMode: "DETERMINISTIC" });
  const dataset = open();
  const epochs = [await Array.fromAsync(dataset), await Array.fromAsync(dataset)];
  assertNotEquals(epochs[0], epochs[1]);
  const saver = open().iterator();
  for (let i = 0; i < 10; i++) await saver.next();
  const resumed = open();
  const iterator = resumed.iterator();
  await iterator.restore(await saver.save());
  assertEquals(await Array.fromAsync(iterator), epochs[0]!.slice(10));
  assertEquals(await Array.fromAsync(resumed), epochs[1]);
});

/** Datasets that a service saves. */
const SAVED: Record<string, Dataset<unknown>> = {
  "nothing": Dataset.range(0),
  "one": Dataset.from(["only"]),
  "trees": Dataset.range(7).map((x, { tensor }) => ({ x, of: [String(x), tensor([x, x])] })),
  "ragged batches": Dataset.range(9).map((x) => new Int32Array(x)).raggedBatch(2),
  "strings and bytes": Dataset.from([["a", new Uint8Array([1])], ["", new Uint8Array()]]),
  "repetitions": Dataset.range(5).repeat(3),
  "a choice": Dataset.chooseFromDatasets(
    [Dataset.range(5), Dataset.range(10, 15)],
    Dataset.from([0, 1, 0, 1, 1]),
  ),
  "concatenated": Dataset.range(5).concatenate(Dataset.range(10, 15)),
  "from a generator": Dataset.fromGenerator(function* () {
    yield* [3, 1, 2];
  }),
};

testInline(
  "a service saves every kind of dataset, and a loaded one can be distributed again",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    await using temporary = await TempFolder.make();
    const folder = temporary.path;
    for (const [name, dataset] of Object.entries(SAVED)) {
      for (const compression of [undefined, "gzip"] as const) {
        const path = `${folder}/${name} ${compression}`;
        await distributedSave(
          dataset,
          path,
          cluster,
          compression === undefined ? {} : { compression },
        );
        const loaded = await Dataset.load(path);
        assertEquals(
          await outcomesOf(loaded.iterator()),
          await outcomesOf(dataset.iterator()),
          name,
        );
        for (let epoch = 0; epoch < 2; epoch++) {
          const again = loaded.distribute({ service: cluster, processingMode: "DYNAMIC" });
          assertEquals((await Array.fromAsync(again)).length, loaded.cardinality(), name);
        }
      }
    }
  },
);

testInline("several datasets are saved concurrently, each completely", async (start) => {
  await using cluster = await start({ workers: 2 });
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const datasets = [3, 300, 40].map((count) => Dataset.range(count).batch(3));
  await Promise.all(
    datasets.map((dataset, i) => distributedSave(dataset, `${folder}/${i}`, cluster)),
  );
  for (const [i, dataset] of datasets.entries()) {
    const loaded = await Dataset.load(`${folder}/${i}`);
    assertEquals(await outcomesOf(loaded.iterator()), await outcomesOf(dataset.iterator()));
  }
  const missing = await assertRejects(() => Dataset.load(`${folder}/none`), LeatError);
  assertEquals(missing.code, "not_found");
});

testOnEach(
  "a registered dataset never changes for clients that know its id",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const spec = { a: new TensorSpec("float64", []), b: [new TensorSpec("string", [])] };
    const trees = Dataset.range(6).map((x) => ({ a: x, b: [String(x)] }), { spec });
    const id = await registerDataset(cluster, trees);
    const read = Dataset.fromId<{ a: number; b: string[] }>(cluster, id, {
      processingMode: "DYNAMIC",
      spec,
    });
    assertEquals(read.elementSpec, trees.elementSpec);
    const batches = await Array.fromAsync(read.batch(6));
    assertEquals(
      sorted(Array.from((batches[0] as unknown as { a: { data: Float64Array } }).a.data)),
      upTo(6),
    );
    for (let epoch = 0; epoch < 2; epoch++) {
      assertEquals((await Array.fromAsync(read)).length, 6, `epoch ${epoch}`);
    }
  },
);

testInline(
  "registered datasets are read in every mode, together with holders of the dataset",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const dataset = () => Dataset.range(20).map((x) => x + 1);
    const id = await registerDataset(cluster, dataset());
    for (
      const processingMode of ["OFF", "DYNAMIC", "DATA", "FILE_OR_DATA", "DETERMINISTIC"] as const
    ) {
      const mine = Array.fromAsync(dataset().distribute({ service: cluster, processingMode }));
      const theirs = Array.fromAsync(Dataset.fromId<number>(cluster, id, { processingMode }));
      assertEquals(sorted(await mine), sorted(await theirs), processingMode);
    }
    // Its own id, and that of an unread dataset.
    assertEquals(await registerDataset(cluster, dataset()), id);
    const endless = await registerDataset(cluster, Dataset.range(3).repeat());
    const job = { jobName: "shared", sharing: { trainerId: "t" } };
    const shared = Dataset.fromId<number>(cluster, endless, job);
    assertEquals((await Array.fromAsync(shared.take(10))).length, 10);
    const rounds = [0, 1].map((consumerIndex) =>
      Dataset.fromId<number>(cluster, endless, {
        jobName: "rounds",
        numConsumers: 2,
        consumerIndex,
      })
        .iterator()
    );
    for (let round = 0; round < 4; round++) {
      const given = await Promise.all(rounds.map((reader) => reader.next()));
      assertEquals(given.map(({ done }) => done), [false, false]);
    }
    for (const reader of rounds) await reader.return();
  },
);

testInline(
  "registering refuses values that are no dataset, no id or no option, and functions that cannot be sent",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const factor = 2;
    const refused: readonly [() => Promise<unknown>, string, string][] = [
      [() => registerDataset(cluster, [1, 2] as never), "invalid_argument", "dataset"],
      [() => registerDataset(cluster, undefined as never), "invalid_argument", "dataset"],
      [
        () => registerDataset(cluster, Dataset.range(1), { datasetId: "" }),
        "invalid_argument",
        "datasetId",
      ],
      [
        () => registerDataset(cluster, Dataset.range(1), { dataset_id: "x" } as never),
        "invalid_argument",
        "dataset_id",
      ],
      [
        () => registerDataset(cluster, Dataset.range(1).map((x) => x * factor)),
        "failed_precondition",
        "factor",
      ],
      [() => registerDataset("", Dataset.range(1)), "invalid_argument", "service"],
      [() => registerDataset("a:1", Dataset.range(1)), "invalid_argument", "ws://a:1"],
    ];
    for (const [register, code, message] of refused) {
      const error = await assertRejects(register, LeatError, message);
      assertEquals(error.code, code, error.message);
    }
  },
);
