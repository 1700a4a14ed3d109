/** Trainers that read one job together: in rounds, or each at its own pace from a shared window. */
import { Dataset, type DistributeOptions, LeatError, type LocalCluster } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { readOutcomes } from "../../data/lib/outcomes.ts";
import { testInline, testOnEach, upTo } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const PATIENT = { skipAfterMs: 60_000, workerTimeoutMs: 400 } as const;

type Mode = NonNullable<DistributeOptions["processingMode"]>;

function consumers<T>(
  service: LocalCluster,
  numConsumers: number,
  dataset: Dataset<T>,
  options: Omit<DistributeOptions, "service"> = {},
) {
  return upTo(numConsumers).map((consumerIndex) =>
    dataset.distribute({ service, jobName: "rounds", numConsumers, consumerIndex, ...options })
  );
}

/** Datasets that cannot be read, in one mode or in all, and their errors. */
const UNREADABLE: readonly [Dataset<unknown>, Mode, string][] = [
  [Dataset.range(9).repeat(), "FILE", "unshardable"],
  [Dataset.fromGenerator(() => [1, 2]).repeat(), "DYNAMIC", "fromGenerator"],
  [Dataset.textLines("/nowhere/a.txt"), "OFF", "/nowhere/a.txt"],
  [Dataset.textLines(["/nowhere/a.txt", "/nowhere/b.txt"]), "DATA", "/nowhere/"],
  [
    Dataset.range(1).map(() => Promise.reject(new Error("nothing works"))).filter(() => true),
    "OFF",
    "works",
  ],
];

testInline(
  "the error that keeps a dataset from being read is reported to every consumer of its rounds",
  async (start) => {
    await using cluster = await start({ workers: 2, ...PATIENT });
    for (const [number, [dataset, processingMode, message]] of UNREADABLE.entries()) {
      const jobName = `job ${number}`;
      const readers = consumers(cluster, 3, dataset, { jobName, processingMode })
        .map((one) => one.iterator());
      const told = await Promise.all(readers.map((reader) => readOutcomes(reader, 3)));
      for (const outcomes of told) {
        assert(outcomes.length > 0, message);
        for (const outcome of outcomes) {
          assert("error" in outcome && outcome.error.includes(message), Deno.inspect(outcome));
        }
      }
      for (const reader of readers) await reader.return();
    }
  },
);

testInline("rounds are read in every mode, each element of them once", async (start) => {
  await using cluster = await start({ workers: 2, ...PATIENT });
  for (const processingMode of ["OFF", "DYNAMIC", "DATA", "FILE_OR_DATA"] as const) {
    const options = { jobName: processingMode, processingMode };
    const readers = consumers(cluster, 2, Dataset.range(1_000_000), options);
    // It must be endless, as far as that is known.
    await assertRejects(() => readers[0]!.iterator().next(), LeatError, ".repeat()");
    const endless = consumers(cluster, 2, Dataset.range(1_000).repeat(), options)
      .map((one) => one.take(40));
    assertEquals(endless[0]!.cardinality(), 40);
    const taken = await Promise.all(endless.map((one) => Array.fromAsync(one)));
    assertEquals(taken.map(({ length }) => length), [40, 40], processingMode);
    if (processingMode === "OFF") continue; // both workers give the same
    const numbers = taken.flat();
    assertEquals(new Set(numbers).size, numbers.length, processingMode);
  }
});

testInline(
  "an iterator after another one of a consumer is the next repetition, for all of them",
  async (start) => {
    await using cluster = await start({ workers: 2, ...PATIENT });
    const readers = consumers(cluster, 2, Dataset.range(10).repeat());
    for (let repetition = 0; repetition < 3; repetition++) {
      const steps = await Promise.all(readers.map((reader) => Array.fromAsync(reader.take(5))));
      assertEquals(steps[1], steps[0]!.map((x) => (x + 1) % 10), `repetition ${repetition}`);
    }
  },
);

testInline("rounds continue after the dispatcher restarts on its journal", async (start) => {
  await using temporary = await TempFolder.make();
  const journal = temporary.path;
  {
    await using cluster = await start({ workers: 2, journal, ...PATIENT });
    const readers = consumers(cluster, 2, Dataset.range(10).repeat()).map((one) => one.iterator());
    for (let round = 0; round < 12; round++) {
      const [first, second] = await Promise.all(readers.map((reader) => reader.next()));
      assertEquals(second!.value, (first!.value! + 1) % 10, `round ${round}`);
      if (round % 4 !== 1) continue;
      await cluster.stopDispatcher();
      await cluster.restartDispatcher();
    }
    for (const reader of readers) await reader.return();
  }
});

testOnEach("trainers and consumers of one cluster do not disturb each other", async (start) => {
  await using cluster = await start({ workers: 2, skipAfterMs: PATIENT.skipAfterMs });
  const shared = (trainerId: string) =>
    Dataset.range(100).repeat().distribute({
      service: cluster,
      jobName: "shared",
      sharing: { trainerId },
    });
  const rounds = consumers(cluster, 2, Dataset.range(100).repeat());
  const alone = Dataset.range(60).distribute({ service: cluster, processingMode: "DYNAMIC" });
  const [a, b, first, second, whole] = await Promise.all([
    ...[shared("a"), shared("b"), ...rounds].map((one) => Array.fromAsync(one.take(30))),
    Array.fromAsync(alone),
  ]);
  assertEquals([a!.length, b!.length], [30, 30]);
  assertEquals(second, first!.map((x) => (x + 1) % 100));
  assertEquals(whole!.length, 60);
});

testInline(
  "trainers that share a failing pipeline get each of its errors once",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const failing = Dataset.range(4).repeat().map((x) => {
      if (x === 2) throw new Error("no twos");
      return x;
    });
    for (const trainerId of ["a", "b"]) {
      const trainer = failing.distribute({
        service: cluster,
        jobName: "j",
        sharing: { trainerId },
      }).iterator();
      const outcomes = await readOutcomes(trainer, 8);
      const found = outcomes.map((outcome) => "element" in outcome ? outcome.element : "failed");
      assertEquals(found, [0, 1, "failed", 3, 0, 1, "failed", 3], trainerId);
      if (trainerId === "b") await trainer.return();
    }
  },
);
