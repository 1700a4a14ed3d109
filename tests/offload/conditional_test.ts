/** The conditional operator against real services: every element once, in the promised order. */
import { openIterator } from "../../data/dataset_iterator.ts";
import { Dataset, DenoHost, LeatError, type LocalCluster, offloadProgress } from "../../mod.ts";
import type { Files } from "../../data/host.ts";
import { decide } from "../../offload/decide.ts";
import { OffloadPlan } from "../../offload/plan.ts";
import { StorageFiles } from "../../platform/storage/storage.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";
import { orderedReference, withMisfits } from "../data/lib/ordered_reference.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../data/lib/outcomes.ts";
import { PATIENCE_MS, until } from "../lib/until.ts";
import { testInline, testOnEach } from "../service/lib/carriers.ts";
import { returned } from "../service/lib/fixture_slow.ts";
import { slowly } from "../service/lib/slowly.ts";
import { LossHost, LOST_AFTER_MS } from "./lib/loss_host.ts";

const delay = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A pipeline with random numbers, a filter, remainders, and operators that stay here. */
function makeDataset(): Dataset<unknown> {
  return Dataset.range(400)
    .shuffle(20)
    .map((x, { random }) => x + random.next() / 2)
    .cutPoint("augmented")
    .filter((x) => Math.floor(x) % 7 !== 0)
    .batch(5)
    .prefetch(2);
}

/** The elements of batches, ascending. */
function elementsIn(outcomes: readonly Outcome[]): number[] {
  return outcomes.flatMap((at) =>
    "element" in at ? (at.element as { readonly data: number[] }).data : []
  ).map(Math.floor).sort((a, b) => a - b);
}

const WANTED = Array.from({ length: 400 }, (_, i) => i).filter((x) => x % 7 !== 0);

function offloaded(service: LocalCluster, candidate: string, ratio: number) {
  return makeDataset().offload({ service, plan: { candidate, ratio } });
}

testOnEach("offload gives every element once, whatever is offloaded", async (start) => {
  await using cluster = await start({ workers: 2 });
  for (const [candidate, ratio] of [["p'2", 0.3], ["augmented", 0.3], ["p'3", 1]] as const) {
    const dataset = offloaded(cluster, candidate, ratio);
    assertEquals(elementsIn(await outcomesOf(dataset.iterator())), WANTED);
    const { local, remote, fallbacks } = offloadProgress(dataset);
    assertEquals(fallbacks, 0);
    assert(ratio === 1 ? local.elements === 0 : local.elements > remote.elements);
  }
});

testInline(
  "explain counts what this host prepares before an offload, and no more",
  async (start) => {
    await using service = await start({ workers: 1 });
    const pipeline = Dataset.from(Array.from({ length: 400 }, (_, i) => i)).map((x) => x + 1).batch(
      5,
    );
    for (const candidate of ["p'3", "p'2", "p'1"]) {
      const dataset = pipeline.offload({ service, plan: { candidate, ratio: 0.5 } });
      await using iterator = dataset.iterator();
      await outcomesOf(iterator);
      const { operators, advice } = iterator.explain();
      const [, batch, map, from] = operators.map(({ stats }) => stats!);
      const { elements } = offloadProgress(dataset).local;
      // Elements of workers count where they come in.
      const isBatched = candidate === "p'3";
      assertEquals([batch!.elements, map!.elements === 400], [80, !isBatched]);
      if (isBatched) assert(map!.elements >= 5 * elements, `${map!.elements}`);
      assert(from!.elements >= (isBatched ? 5 * elements : elements), `${from!.elements}`);
      // This host reads all if it reads for workers.
      assertEquals(from!.elements >= 400, candidate === "p'1");
      assert(advice.at(-1)!.startsWith("Workers may prepare"), advice.at(-1));
    }
  },
);

testInline("offload with deterministic gives one stream, whatever the ratio", async (start) => {
  await using cluster = await start({ workers: 2 });
  const chain = Dataset.range(400).shuffle(20).map((x, { random }) => x + random.next() / 2)
    .filter((x) => Math.floor(x) % 7 !== 0);
  const read = async (candidate: string, ratio: number) => {
    const plan = { candidate, ratio };
    const found = chain.batch(5).offload({ service: cluster, plan, deterministic: true });
    const outcomes = await outcomesOf(found.iterator());
    const { local, remote } = offloadProgress(found);
    assert(local.elements > 0);
    assertEquals(remote.elements > 0, ratio > 0);
    return outcomes;
  };
  const wanted = await orderedReference(chain.batch(5));
  for (const ratio of [0, 0.2, 0.7]) assertEquals(await read("p'3", ratio), wanted);
  const lower = await read("p'2", 0.2);
  for (const ratio of [0, 0.7]) assertEquals(await read("p'2", ratio), lower);
});

testInline(
  "offload gives the errors and the batch of one split's rows, also restored",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const plan = { candidate: "p'3", ratio: 0.5 };
    const dataset = withMisfits().offload({ service: cluster, plan, deterministic: true });
    const stream = await orderedReference(withMisfits());
    assertEquals(await outcomesOf(dataset.iterator()), stream);
    for (const position of [...Array(16).keys(), stream.length - 1]) {
      await using iterator = dataset.iterator();
      await readOutcomes(iterator, position);
      await using restored = dataset.iterator();
      await restored.restore(await iterator.save());
      const wanted = stream.slice(position, position + 9);
      assertEquals(await readOutcomes(restored, 9), wanted, `from ${position}`);
    }
  },
);

testInline(
  "offloadProgress counts what this host prepares if nothing is offloaded",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    for (const how of [{}, { adapt: true }, { deterministic: true }]) {
      for (const candidate of [null, "p'3"]) {
        const dataset = Dataset.range(12).map((x) => x + 1).batch(4)
          .offload({ service: cluster, plan: { candidate, ratio: 0 }, ...how });
        assertEquals((await outcomesOf(dataset.iterator())).length, 3);
        const { local, remote } = offloadProgress(dataset);
        assertEquals([local, remote.elements], [{ elements: 3, bytes: 12 * 8 }, 0]);
      }
    }
  },
);

testInline("offload keeps the ratio from the first hundred elements on", async (start) => {
  await using cluster = await start({ workers: 1 });
  for (const ratio of [0.1, 0.5, 0.8]) {
    const dataset = Dataset.range(1000).map((x) => x + 1)
      .offload({ service: cluster, plan: { candidate: "p'2", ratio } });
    await using iterator = dataset.iterator();
    await readOutcomes(iterator, 100);
    assertEquals(offloadProgress(dataset).remote.elements, Math.round(100 * ratio));
  }
});

testInline("offload gives workers all of more splits than fit into one request", async (start) => {
  await using cluster = await start({ workers: 1 });
  // 131,072 splits.
  const dataset = Dataset.range(2 ** 29).map((x) => x + 1)
    .offload({ service: cluster, plan: { candidate: "p'2", ratio: 1 } });
  await using iterator = dataset.iterator();
  await readOutcomes(iterator, 10);
  const { local, remote, fallbacks } = offloadProgress(dataset);
  assertEquals([local.elements, remote.elements, fallbacks], [0, 10, 0]);
});

testInline("offload resumes both sides from a checkpoint", async (start) => {
  await using cluster = await start({ workers: 2 });
  const dataset = offloaded(cluster, "p'3", 0.4);
  const whole = await outcomesOf(dataset.iterator());
  for (const at of [0, 1, 17, whole.length]) {
    const first = dataset.iterator();
    const before = await readOutcomes(first, at);
    const state = await first.save();
    await first.return();
    await using second = offloaded(cluster, "p'3", 0.4).iterator();
    await second.restore(state);
    const after = await outcomesOf(second);
    assertEquals(elementsIn([...before, ...after]), WANTED);
  }
});

testInline(
  "offload prepares here what a lost service was to give, and goes back",
  async (start) => {
    using host = new LossHost();
    const cluster = await start({ workers: 1 });
    const plan = { candidate: "p'2", ratio: 0.5 };
    const dataset = Dataset.range(2000).map((x) => x + 1)
      .offload({ service: cluster, plan, timeoutMs: LOST_AFTER_MS });
    await using iterator = dataset.iterator();
    const before = await readOutcomes(iterator, 200);
    await cluster[Symbol.asyncDispose]();
    host.lose();
    const after = await outcomesOf(iterator);
    const numbers = [...before, ...after].map(numberOf);
    assertEquals(numbers.sort((a, b) => a - b), Array.from({ length: 2000 }, (_, i) => i + 1));
    const { fallbacks, state, lastFailure } = offloadProgress(dataset);
    assertEquals([fallbacks, state], [1, "local"]);
    assert(lastFailure !== undefined);
  },
);

testInline(
  "offload tells the service its ratio and the workers it could use, and distribute none",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const told = async () => {
      const { jobs } = await cluster.describe();
      const readers = jobs.flatMap(({ iterations }) =>
        iterations.flatMap(({ readers }) => readers)
      );
      return readers.flatMap(({ figures }) =>
        figures === null ? [] : [[figures.offloadRatio, figures.offloadWorkers]]
      );
    };
    const numbers = Dataset.range(2000).map((x) => x + 1);
    const metrics = {
      ...{ Gthp: 100, Lthp: 60, Pcycle: 1 },
      candidates: [{ name: "p'2", Rthp: 20, Ocycle: 0, workers: 1 }],
    };
    const parts = { refused: [], source: "measured", planningMs: 0 } as const;
    const measured = new OffloadPlan({ decision: decide(metrics), metrics, ...parts });
    const plan = { candidate: "p'2", ratio: 0.25 };
    for (
      const [dataset, ...wanted] of [
        [numbers.offload({ service: cluster, plan }), 0.25, null],
        [numbers.offload({ service: cluster, plan: measured }), 0.25, 2],
        [numbers.offload({ service: cluster, plan: measured, adapt: true }), 0.25, 2],
        [numbers.distribute({ service: cluster, processingMode: "OFF" }), null, null],
      ] as const
    ) {
      await using iterator = dataset.iterator();
      await readOutcomes(iterator, 10);
      await until(async () => (await told()).length === 1);
      assertEquals(await told(), [wanted]);
      await iterator[Symbol.asyncDispose]();
      await until(async () => (await told()).length === 0);
    }
  },
);

testInline("offload takes what workers have ready while this host has nothing", async (start) => {
  await using cluster = await start({ workers: 1 });
  const folder = await Deno.makeTempDir();
  const paths = Array.from({ length: 40 }, (_, i) => `${folder}/${i}`);
  for (const path of paths) await Deno.writeTextFile(path, "1\n".repeat(10));
  const metrics = {
    ...{ Gthp: 100, Lthp: 60, Pcycle: 1 },
    candidates: [{ name: "p'2", Rthp: 60, Ocycle: 0.1, workers: 1 }],
  };
  const parts = { refused: [], source: "measured", planningMs: 0 } as const;
  const plan = new OffloadPlan({ decision: decide(metrics), metrics, ...parts });
  const dataset = Dataset.textLines(paths).map((line) => Number(line))
    .offload({ service: cluster, plan, adapt: true });
  // This host opens no more files from some time on.
  const gate: { promise?: Promise<void> } = {};
  const files: Files = new StorageFiles();
  const gated: Files = {
    open: async (path, signal) => (await gate.promise, await files.open(path, signal)),
    list: (pattern, signal) => files.list(pattern, signal),
  };
  await using iterator = openIterator(dataset.node, { host: new DenoHost({ files: gated }) });
  const outcomes = await readOutcomes(iterator, 4);
  await until(async () => {
    const { jobs } = await cluster.describe();
    const [reader] = jobs.flatMap(({ iterations }) => iterations.flatMap((at) => at.readers));
    return (reader?.figures?.reads[0]?.elements ?? 0) >= 150;
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  gate.promise = promise;
  const late = setTimeout(resolve, PATIENCE_MS);
  const before = offloadProgress(dataset).remote.elements;
  // It has 32 elements, and the rest of a file.
  outcomes.push(...await readOutcomes(iterator, 120));
  assert(offloadProgress(dataset).remote.elements - before >= 60);
  clearTimeout(late);
  resolve();
  outcomes.push(...await outcomesOf(iterator));
  assertEquals(outcomes.map(numberOf), Array.from({ length: 400 }, () => 1));
  await Deno.remove(folder, { recursive: true });
});

testInline("offload opens nothing at the service once it is disposed", async (start) => {
  await using cluster = await start({ workers: 1 });
  const dataset = Dataset.range(2000).map(slowly)
    .offload({ service: cluster, plan: { candidate: "p'2", ratio: 1 } }).prefetch(2);
  const iterator = dataset.iterator();
  await readOutcomes(iterator, 2);
  await iterator[Symbol.asyncDispose]();
  // Another job would begin within this time, and never end.
  await delay(50);
  await until(async () => (await cluster.describe()).jobs.length === 0);
  await cluster.close();
  await returned();
});

/** A host on which time runs a thousand times as fast, so that a failed service is soon tried again. */
class HastyHost extends DenoHost {
  override nowMs(): number {
    return 1_000 * super.nowMs();
  }
}

for (const deterministic of [false, true]) {
  testInline(`offload returns to a service, deterministic: ${deterministic}`, async (start) => {
    await using cluster = await start({ workers: 1, workerTimeoutMs: 500 });
    const dataset = Dataset.range(20_000).map((x) => x + 1).offload({
      service: cluster,
      plan: { candidate: "p'2", ratio: 0.5 },
      timeoutMs: 500,
      deterministic,
    });
    await using iterator = openIterator(dataset.node, { host: new HastyHost() });
    const numbers = (await readOutcomes(iterator, 1_000)).map(numberOf);
    await cluster.stopWorker(0);
    const readUntil = async (isThere: () => boolean) => {
      while (!isThere()) {
        numbers.push(...(await readOutcomes(iterator, 10)).map(numberOf));
        await delay(5);
      }
    };
    const progress = () => offloadProgress(dataset);
    await readUntil(() => progress().fallbacks > 0);
    await cluster.restartWorker(0);
    await readUntil(() => progress().state === "local and remote");
    const remote = progress().remote.elements;
    await readUntil(() => progress().remote.elements > remote + 100);
    numbers.push(...(await outcomesOf(iterator)).map(numberOf));
    const wanted = Array.from({ length: 20_000 }, (_, i) => i + 1);
    assertEquals(deterministic ? numbers : numbers.sort((a, b) => a - b), wanted);
  });
}

testInline("offload keeps the ratio where one side's splits are larger", async (start) => {
  await using cluster = await start({ workers: 1 });
  // Splits of one element: this host gets the even ones.
  for (const [even, odd] of [[1, 40], [40, 1]] as const) {
    const dataset = Dataset.range(256)
      .flatMap((x, { Dataset, even, odd }) => Dataset.range(x % 2 === 0 ? even : odd), {
        captures: { even, odd },
      })
      .offload({ service: cluster, plan: { candidate: "p'2", ratio: 0.5 } });
    assertEquals((await outcomesOf(dataset.iterator())).length, 128 * 41);
    const { local, remote, fallbacks } = offloadProgress(dataset);
    assertEquals(fallbacks, 0);
    const share = remote.elements / (local.elements + remote.elements);
    assert(share > 0.4 && share < 0.6, `${share}`);
  }
});

testInline("offload with adapt corrects the ratio, and gives every element once", async (start) => {
  await using cluster = await start({ workers: 1 });
  const dataset = Dataset.range(5_000).map((x) => x + 1)
    .offload({ service: cluster, plan: { candidate: "p'2", ratio: 0.5 }, adapt: true });
  await using iterator = openIterator(dataset.node, { host: new HastyHost() });
  const numbers = (await outcomesOf(iterator)).map(numberOf).sort((a, b) => a - b);
  assertEquals(numbers, Array.from({ length: 5_000 }, (_, i) => i + 1));
  const { corrections, ratio } = offloadProgress(dataset);
  assert(corrections > 0 && ratio !== 0.5);
});

function numberOf(outcome: Outcome): number {
  return (outcome as { readonly element: number }).element;
}

testInline("offload repeats, and gives a failed element as an error once", async (start) => {
  await using cluster = await start({ workers: 1 });
  const failing = Dataset.range(50).map((x) => {
    if (x === 33) throw new Error("no 33");
    return x;
  });
  const found = await outcomesOf(
    failing.offload({ service: cluster, plan: { candidate: "p'2", ratio: 0.5 } }).repeat(2)
      .iterator(),
  );
  assertEquals(found.filter((at) => "error" in at).length, 2);
  assertEquals(found.length, 100);
});

testInline("offload pairs the elements of two sources as they belong together", async (start) => {
  await using cluster = await start({ workers: 2 });
  const left = Dataset.range(300).map((x) => x * 2);
  const right = Dataset.range(300).map((x) => x * 3);
  const zipped = Dataset.zip([left, right]).batch(7);
  const plan = { candidate: "p'2/1", ratio: 0.5 };
  const found = await outcomesOf(zipped.offload({ service: cluster, plan }).iterator());
  assertEquals(found, await outcomesOf(zipped.iterator()));
});

testInline(
  "offload keeps the order for operators that need it, and warns where told not to",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const chain = Dataset.range(300).map((x) => x * 2);
    const ordered: Dataset<unknown>[] = [
      chain.window(5).flatMap((window) => window.batch(5)),
      chain.enumerate().skip(3).take(200),
      chain.scan(0, (sum, x) => [sum + x, sum + x]).batch(4),
    ];
    for (const dataset of ordered) {
      const plan = { candidate: "p'2", ratio: 0.3 };
      const offloaded = dataset.offload({ service: cluster, plan, adapt: true });
      assertEquals(await outcomesOf(offloaded.iterator()), await outcomesOf(dataset.iterator()));
      assert(offloadProgress(offloaded).remote.elements > 0);
    }
    const warnings: string[] = [];
    class Host extends DenoHost {
      override warn(message: string): void {
        warnings.push(message);
      }
    }
    for (const how of [{}, { deterministic: false }]) {
      const plan = { candidate: "p'2", ratio: 0.5 };
      const { node } = ordered[1]!.offload({ service: cluster, plan, ...how });
      await using iterator = openIterator(node, { host: new Host() });
      assertEquals((await outcomesOf(iterator)).length, 200);
    }
    assertEquals(warnings.length, 1);
    assert(warnings[0]!.includes("before enumerate, skip, take,"), warnings[0]);
  },
);

testInline("offload shuffles before and after the cut", async (start) => {
  await using cluster = await start({ workers: 2 });
  for (const candidate of ["p'2", "p'3"]) {
    const dataset = Dataset.range(400).shuffle(30).map((x) => x + 1).batch(5).shuffle(8, {
      seed: 1,
    })
      .offload({ service: cluster, plan: { candidate, ratio: 0.5 } });
    const outcomes = await outcomesOf(dataset.iterator());
    assertEquals(elementsIn(outcomes), Array.from({ length: 400 }, (_, i) => i + 1));
    assert(offloadProgress(dataset).remote.elements > 0);
  }
});

testInline("offload leaves a cache here, and fills it once", async (start) => {
  await using cluster = await start({ workers: 1 });
  const plan = { candidate: "p'2", ratio: 0.5 };
  const dataset = Dataset.range(100).map((x) => x + 1).cache().shuffle(10).batch(10)
    .offload({ service: cluster, plan });
  for (let epoch = 0; epoch < 2; epoch++) {
    const elements = elementsIn(await outcomesOf(dataset.iterator()));
    assertEquals(elements, Array.from({ length: 100 }, (_, i) => i + 1));
  }
  assertEquals(offloadProgress(dataset).remote.elements, 50);
});

testInline("offload refuses a plan of another pipeline", async (start) => {
  await using cluster = await start({ workers: 1 });
  const dataset = makeDataset().offload({
    service: cluster,
    plan: { candidate: "p'9", ratio: 0.5 },
  });
  await assertRejects(() => dataset.iterator().next(), Error, "p'2, p'3, augmented");
  assertThrows(() => dataset.distribute({ service: cluster }), LeatError, "has an offload()");
});
