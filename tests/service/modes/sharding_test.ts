/** The guarantees of each sharding policy, end to end, on every carrier. */
import { Dataset, LeatError } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { numbersOf, sorted, testInline, testOnEach, upTo } from "../lib/carriers.ts";

testOnEach("DYNAMIC delivers every element exactly once", async (start) => {
  await using cluster = await start({ workers: 3 });
  const batches = Dataset.range(1_000).map((x) => x).batch(7).distribute({
    service: cluster,
    processingMode: "DYNAMIC",
  });
  assertEquals(sorted(await numbersOf(batches)), upTo(1_000));
});

testOnEach("DYNAMIC gives every element its own random numbers, on any worker", async (start) => {
  await using cluster = await start({ workers: 3 });
  const draws = Dataset.range(300).map((_, { random }) => random.next()).batch(5).distribute({
    service: cluster,
    processingMode: "DYNAMIC",
  });
  assertEquals(new Set(await numbersOf(draws)).size, 300);
});

testOnEach("OFF delivers the whole dataset once per worker", async (start) => {
  await using cluster = await start({ workers: 2 });
  const batches = Dataset.range(50).shuffle(50).batch(5).distribute({
    service: cluster,
  });
  assertEquals(sorted(await numbersOf(batches)), upTo(50, 2));
});

testOnEach("OFF shuffles differently on each worker", async (start) => {
  await using cluster = await start({ workers: 2 });
  const dataset = Dataset.range(64).shuffle(64).batch(64).distribute({
    service: cluster,
  });
  const orders: string[] = [];
  for await (const batch of dataset) orders.push(String(batch.toArray()));
  assertEquals(new Set(orders).size, 2);
});

testOnEach(
  "OFF gives the order of a chosen seed on every worker, as a local run does",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const dataset = Dataset.range(64).shuffle(64, { seed: 5 }).batch(64);
    const [local] = await Array.fromAsync(dataset);
    const orders: string[] = [];
    for await (const batch of dataset.distribute({ service: cluster })) {
      orders.push(String(batch.toArray()));
    }
    assertEquals(orders, [String(local!.toArray()), String(local!.toArray())]);
  },
);

testOnEach(
  "DYNAMIC runs every epoch of a repeated pipeline once",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const batches = Dataset.range(40).repeat(3).batch(4).distribute({
      service: cluster,
      processingMode: "DYNAMIC",
    });
    assertEquals(sorted(await numbersOf(batches)), upTo(40, 3));
  },
);

testInline(
  "DYNAMIC runs every epoch of a cache once, though an element fails",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const cached = Dataset.range(100).map((x) => {
      if (x === 50) throw new Error("50 is bad");
      return x;
    }).cache().ignoreErrors();
    const batches = cached.repeat(3).batch(1).distribute({
      service: cluster,
      processingMode: "DYNAMIC",
    });
    assertEquals(sorted(await numbersOf(batches)), upTo(100, 3).filter((x) => x !== 50));
  },
);

testOnEach(
  "a second iterator of a distributed dataset is another epoch",
  async (start) => {
    await using cluster = await start();
    const dataset = Dataset.range(20).batch(5).distribute({
      service: cluster,
      processingMode: "DYNAMIC",
    });
    assertEquals(sorted(await numbersOf(dataset)), upTo(20));
    assertEquals(sorted(await numbersOf(dataset)), upTo(20));
  },
);

testOnEach(
  "two clients of one named job divide its elements",
  async (start) => {
    await using cluster = await start();
    const open = () =>
      Dataset.range(200).batch(5).distribute({
        service: cluster,
        processingMode: "DYNAMIC",
        jobName: "shared",
      });
    const [one, two] = await Promise.all([
      numbersOf(open()),
      numbersOf(open()),
    ]);
    assertEquals(sorted([...one!, ...two!]), upTo(200));
  },
);

testOnEach("an element that fails costs that element", async (start) => {
  await using cluster = await start({ workers: 1 });
  const dataset = Dataset.range(6).map((x) => {
    if (x === 3) throw new Error("three is bad");
    return x;
  }).distribute({ service: cluster, processingMode: "DYNAMIC" });
  await using iterator = dataset.iterator();
  const seen: unknown[] = [];
  for (;;) {
    try {
      const { done, value } = await iterator.next();
      if (done) break;
      seen.push(value);
    } catch (error) {
      seen.push((error as Error).message.includes("three is bad"));
    }
  }
  assertEquals(seen, [0, 1, 2, true, 4, 5]);
});

testInline(
  "the error of a function says what the numbers of element and operator count",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const failing = Dataset.range(1_000).map((x) => {
      if (x === 503) throw new Error("503 is bad");
      return x;
    }).batch(10);
    const messageOf = async (dataset: Dataset<unknown>) =>
      (await assertRejects(() => Array.fromAsync(dataset), LeatError)).message;
    assertEquals(
      await messageOf(failing),
      "map (operator 1): the function failed at element 503: 503 is bad",
    );
    const under = (processingMode: "DYNAMIC" | "DETERMINISTIC") =>
      messageOf(failing.distribute({ service: cluster, processingMode }));
    assertEquals(
      await under("DYNAMIC"),
      "map (operator 1 of those on the worker): the function failed at element 503 of those that the " +
        "worker reads: 503 is bad",
    );
    assertEquals(
      await under("DETERMINISTIC"),
      "map (operator 2 of those that run on each split): the function failed at element 3 of its split: " +
        "503 is bad",
    );
  },
);

testOnEach(
  "a job name with other parameters is refused, showing both",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const job = { service: cluster, jobName: "j" } as const;
    const first = Dataset.range(10).repeat().batch(2).distribute({
      ...job,
      processingMode: "OFF",
    });
    await using holding = first.iterator();
    await holding.next();
    const other = Dataset.range(10).repeat().batch(2).distribute({
      ...job,
      processingMode: "DYNAMIC",
    });
    const error = await assertRejects(
      () => numbersOf(other),
      LeatError,
      "DYNAMIC",
    );
    assertEquals([error.code, error.message.includes("OFF")], [
      "invalid_argument",
      true,
    ]);
  },
);

testOnEach(
  "a missing file is reported by name, and the rest is read",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const path = await Deno.makeTempFile();
    await Deno.writeTextFile(path, "a\nb\n");
    const missing = `${path}-missing`;
    const dataset = Dataset.textLines([missing, path]).distribute({
      service: cluster,
      processingMode: "DYNAMIC",
    });
    await using iterator = dataset.iterator();
    const error = await assertRejects(
      () => iterator.next(),
      LeatError,
      missing,
    );
    assertEquals(error.code, "not_found");
    assertEquals(
      [(await iterator.next()).value, (await iterator.next()).value],
      ["a", "b"],
    );
    assertEquals((await iterator.next()).done, true);
    await Deno.remove(path);
  },
);

testInline("OFF says what to do if workers fill one cache on disk", async (start) => {
  await using folder = await TempFolder.make();
  await using cluster = await start({ workers: 1 });
  const cached = Dataset.range(6).cache(`${folder.path}/cache`);
  await using first = cached.iterator();
  await first.next();
  const distributed = cached.distribute({ service: cluster, processingMode: "OFF" });
  const error = await assertRejects(() => Array.fromAsync(distributed), LeatError);
  assertEquals(error.code, "already_exists");
  assert(error.message.includes("Fill it before distribute()"), error.message);
});
