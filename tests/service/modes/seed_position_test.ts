/** A seed that `withOptions` sets after a part of the pipeline which a service runs. */
import { Dataset, LeatError, type LocalCluster } from "../../../mod.ts";
import { assert, assertEquals, assertNotEquals, assertRejects } from "../../assert.ts";
import { testInline } from "../lib/carriers.ts";

const shuffled = () => Dataset.range(100).shuffle(100).map((x, { random }) => [x, random.int(9)]);

/** Both numbers of every element, in order. */
async function streamOf(dataset: Dataset<unknown>): Promise<string> {
  return (await Array.fromAsync(dataset)).map(String).join(" ");
}

/** Without the numbers of `random`, which under DYNAMIC belong to a task. */
async function orderOf(dataset: Dataset<unknown>): Promise<string> {
  return (await Array.fromAsync(dataset)).map((pair) => (pair as number[])[0]).join(" ");
}

for (const processingMode of ["OFF", "DYNAMIC", "DETERMINISTIC"] as const) {
  testInline(
    `withOptions after distribute sets the seed of a job under ${processingMode}`,
    async (start) => {
      await using service = await start({ workers: 1 });
      const read = processingMode === "DYNAMIC" ? orderOf : streamOf;
      const options = { service, processingMode };
      const before = (seed: number) => read(shuffled().withOptions({ seed }).distribute(options));
      const after = (seed: number) =>
        read(shuffled().distribute(options).take(100).withOptions({ seed }));
      assertEquals(await after(1), await before(1));
      assertEquals(await after(2), await before(2));
      assertNotEquals(await after(1), await after(2));
      const both = shuffled().withOptions({ seed: 1 }).distribute(options).withOptions({ seed: 2 });
      assertEquals(await read(both), await before(2));
    },
  );
}

testInline("withOptions sets the seed of jobs beside it that have none", async (start) => {
  await using service = await start({ workers: 1 });
  const apart = (seed?: number) =>
    (seed === undefined ? shuffled() : shuffled().withOptions({ seed })).distribute({ service });
  const joined = await Array.fromAsync(Dataset.zip(apart(1), apart(), apart(2)));
  const streams = [0, 1, 2].map((i) => joined.map((pairs) => String(pairs[i])).join(" "));
  const [first, second] = [await streamOf(apart(1)), await streamOf(apart(2))];
  assertEquals(streams, [first, first, second]);
});

testInline(
  "withOptions sets the seed of a DETERMINISTIC job whose reader runs operators",
  async (start) => {
    await using service = await start({ workers: 1 });
    const apart = (seed: number) =>
      streamOf(
        shuffled().skip(3).withOptions({ seed }).distribute({
          service,
          processingMode: "DETERMINISTIC",
        }),
      );
    assertNotEquals(await apart(1), await apart(2));
  },
);

testInline(
  "withOptions after distribute sets the seed of the order of splits if shuffle has its own seed",
  async (start) => {
    await using service = await start({ workers: 1 });
    const options = { service, processingMode: "DETERMINISTIC" } as const;
    const shuffled = () => Dataset.range(50).shuffle(3, { seed: 5 });
    const after = (seed: number) => streamOf(shuffled().distribute(options).withOptions({ seed }));
    const before = (seed: number) => streamOf(shuffled().withOptions({ seed }).distribute(options));
    assertEquals(await after(1), await before(1));
    assertEquals(await after(2), await before(2));
    assertNotEquals(await after(1), await after(2));
  },
);

testInline("withOptions after offload sets the seed of both sides", async (start) => {
  await using service = await start({ workers: 1 });
  for (const deterministic of [true, false]) {
    const plan = { candidate: "p'2", ratio: 0.5 };
    const options = { service, plan, deterministic };
    const sorted = async (dataset: Dataset<unknown>) =>
      (await Array.fromAsync(dataset)).map(String).sort().join(" ");
    const after = (seed: number) => sorted(shuffled().offload(options).withOptions({ seed }));
    assertEquals(
      await after(1),
      await sorted(shuffled().withOptions({ seed: 1 }).offload(options)),
    );
    assertNotEquals(await after(1), await after(2));
  }
});

testInline(
  "clients of one job that set other seeds after distribute are refused",
  async (start) => {
    await using service = await start({ workers: 1 });
    const client = (service: LocalCluster, seed: number) =>
      shuffled().distribute({ service, jobName: "one" }).withOptions({ seed }).iterator();
    await using first = client(service, 1);
    await first.next();
    await using second = client(service, 1);
    await second.next();
    await using other = client(service, 2);
    const { code, message } = await assertRejects(() => other.next(), LeatError);
    assertEquals(code, "invalid_argument");
    assert(message.includes("seed"), message);
  },
);

testInline(
  "clients of one job that draws no numbers may set other seeds for their own operators",
  async (start) => {
    await using service = await start({ workers: 1 });
    const client = (seed: number) =>
      Dataset.range(100).map((x) => x + 1).distribute({ service, jobName: "one" }).shuffle(9)
        .withOptions({ seed }).iterator();
    await using first = client(1);
    await first.next();
    await using second = client(2);
    assertEquals((await second.next()).done, false);
  },
);
