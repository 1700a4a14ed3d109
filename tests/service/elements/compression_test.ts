/** Compressed elements, in every reading mode. */

import {
  Dataset,
  type DistributeOptions,
  LeatError,
  registerDataset,
  type Tensor,
} from "../../../mod.ts";
import type { ElementSourceStats, TaskStats } from "../../../actors/worker/protocol.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import { CARRIERS, numbersOf, sorted, testInline, testOnEach, upTo } from "../lib/carriers.ts";

/** Batches that compression makes smaller. */
const compressible = () => Dataset.range(4_000).batch(500);

/** A task, and its statistics of compression. */
type Sending = ElementSourceStats & Required<Pick<TaskStats, "compression" | "servedBytes">>;

const isTask = (stats: ElementSourceStats): stats is Sending => stats.role === "task";

testOnEach("DYNAMIC gives the same elements, compressed or not", async (start) => {
  await using cluster = await start({ workers: 2 });
  for (const compression of ["auto", "none", "zstd", "gzip"] as const) {
    const jobName = compression;
    const options = { service: cluster, processingMode: "DYNAMIC", jobName, compression } as const;
    assertEquals(sorted(await numbersOf(compressible().distribute(options))), upTo(4_000));
  }
});

for (const compression of ["zstd", "gzip"] as const) {
  testInline(`OFF sends smaller elements with ${compression}`, async (start) => {
    await using cluster = await start({ workers: 1 });
    await using iterator = compressible().repeat().distribute({ service: cluster, compression })
      .iterator();
    for (let step = 0; step < 8; step++) {
      const { value } = await iterator.next();
      assertEquals((value as Tensor).data, Float64Array.from(upTo(500), (x) => x + 500 * step));
    }
    const [task] = (await cluster.sources()).filter(isTask);
    const { setting, active, bytes, compressedBytes } = task!.compression;
    assertEquals([setting, active], [compression, compression]);
    assert(bytes >= 8 * 500 * 8 && compressedBytes < bytes / 2, `${compressedBytes} of ${bytes}`);
    assert(task!.servedBytes < bytes / 2, "what is sent is what counts");
  });
}

testInline("DETERMINISTIC gives the same stream, compressed or not", async (start) => {
  await using cluster = await start({ workers: 2 });
  const streams: number[][] = [];
  for (const compression of ["none", "zstd", "gzip"] as const) {
    const options = {
      service: cluster,
      processingMode: "DETERMINISTIC",
      jobName: compression,
      compression,
    } as const;
    // Batches of 300 join leftover rows of splits.
    const dataset = Dataset.range(4_000).shuffle(100).batch(300).distribute(options);
    streams.push(await numbersOf(dataset));
  }
  assertEquals(sorted(streams[0]!), upTo(4_000));
  assertEquals(streams[1], streams[0]);
  assertEquals(streams[2], streams[0]);
});

testInline("a sharing window holds elements as they were compressed", async (start) => {
  await using cluster = await start({ workers: 1 });
  const read = (trainerId: string) =>
    compressible().repeat().distribute({
      service: cluster,
      jobName: "shared",
      sharing: { trainerId },
      compression: "zstd",
    }).iterator();
  await using first = read("first");
  await using second = read("second");
  for (let step = 0; step < 4; step++) {
    const [one, other] = [await first.next(), await second.next()];
    assertEquals((one.value as Tensor).data, (other.value as Tensor).data);
  }
  const sources = await cluster.sources();
  const cache = sources.find(({ role }) => role === "cache")!;
  const { bytes } = sources.find(isTask)!.compression;
  assert(cache.produced >= 4);
  assert(cache.bufferedBytes < bytes / 2, `${cache.bufferedBytes} of ${bytes}`);
});

testInline("coordinated reads get their rounds, compressed", async (start) => {
  await using cluster = await start({ workers: 2 });
  const consume = async (consumerIndex: number) => {
    const options: DistributeOptions = {
      service: cluster,
      jobName: "rounds",
      consumerIndex,
      numConsumers: 2,
      compression: "zstd",
    };
    await using iterator = compressible().repeat().distribute(options).iterator();
    const firsts: number[] = [];
    for (let round = 0; round < 6; round++) {
      const { value } = await iterator.next();
      firsts.push((value as Tensor).data[0] as number);
    }
    return firsts;
  };
  const [even, odd] = await Promise.all([consume(0), consume(1)]);
  assertEquals(odd, even.map((first) => first + 500), "consecutive batches of one worker");
});

testInline("incompressible elements are sent as they are, whatever was asked", async (start) => {
  await using cluster = await start({ workers: 1 });
  const noise = Dataset.random({ seed: 1 }).batch(1_000).map((batch) => batch);
  await using iterator = noise.distribute({ service: cluster, compression: "zstd" }).iterator();
  for (let step = 0; step < 4; step++) await iterator.next();
  const { compression } = (await cluster.sources()).find(isTask)!;
  assert(compression.bytes > 0);
});

for (const carrier of CARRIERS) {
  testInline(`"auto" does not compress on one host (${carrier})`, async (start) => {
    await using cluster = await start({
      carrier,
      workers: 1,
      runners: carrier === "inline" ? "inline" : "thread",
    });
    await using iterator = compressible().repeat().distribute({ service: cluster }).iterator();
    for (let step = 0; step < 50; step++) await iterator.next();
    const { compression } = (await cluster.sources()).find(isTask)!;
    const { setting, active, reason, bytes, ms } = compression;
    assertEquals([setting, active, bytes, ms], ["auto", "none", 0, 0]);
    assertEquals(reason, "no client reads over a network");
  });
}

testInline("a registered dataset is compressed as registered", async (start) => {
  await using cluster = await start({ workers: 1 });
  const datasetId = await registerDataset(cluster, compressible(), { compression: "gzip" });
  const batches = Dataset.fromId(cluster, datasetId, { processingMode: "DYNAMIC" });
  await using iterator = batches.iterator();
  await iterator.next();
  const { compression } = (await cluster.sources()).find(isTask)!;
  assertEquals(compression.active, "gzip");
});

testInline("one id stands for one compression, and a mismatch shows both", async (start) => {
  await using cluster = await start({ workers: 1 });
  const register = (compression?: "auto" | "zstd" | "gzip", datasetId?: string) =>
    registerDataset(cluster, compressible(), {
      ...(compression === undefined ? {} : { compression }),
      ...(datasetId === undefined ? {} : { datasetId }),
    });
  const plain = await register();
  assertEquals(await register("auto"), plain);
  const zstd = await register("zstd");
  assert(zstd !== plain);
  assertEquals(await register("zstd"), zstd);
  await register("zstd", "mine");
  await register("zstd", "mine");
  const error = await assertRejects(() => register("gzip", "mine"), LeatError, '"gzip"');
  assertEquals(error.code, "already_exists");
  assert(error.message.includes('"zstd"'), error.message);
});

testInline("clients of one job agree on compression, or are shown what differs", async (start) => {
  await using cluster = await start({ workers: 1 });
  const read = (compression: "zstd" | "gzip") =>
    compressible().distribute({ service: cluster, jobName: "job", compression }).iterator();
  await using first = read("zstd");
  await first.next();
  await using second = read("gzip");
  const error = await assertRejects(() => second.next(), LeatError, 'compression: "zstd"');
  assertEquals(error.code, "invalid_argument");
  assert(error.message.includes('compression: "gzip"'), error.message);
});

Deno.test("distribute and registerDataset refuse unknown compressions", async () => {
  const service = "ws://127.0.0.1:1";
  const options = { compression: "snappy" as "zstd" };
  const distribute = () => compressible().distribute({ service, ...options });
  const error = assertThrows(distribute, LeatError, "snappy");
  assertEquals((error as LeatError).code, "invalid_argument");
  await assertRejects(
    () => registerDataset(service, compressible(), options),
    LeatError,
    "zstd",
  );
});
