/** What is measured, on a clock that only the measured parts move. */
import { Dataset, LeatError } from "../../mod.ts";
import { cutPointsOf } from "../../offload/cut_points.ts";
import { staysLocal } from "../../offload/decide.ts";
import { profileCandidate, profileLocal } from "../../offload/profile.ts";
import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertMatch,
  assertRejects,
  assertThrows,
} from "../assert.ts";
import { turn } from "../data/lib/collect.ts";

/**
 * A pipeline of which a batch of 8,000 bytes takes `batchMs`, `cpuMs` of it on a CPU. The first `cold`
 * batches take more: the very first `coldMs`, each one less than the one before.
 */
function machine({ batchMs, cpuMs, trainMs, batches = Infinity, cold = 0, coldMs = 0 }: {
  readonly batchMs: number;
  readonly cpuMs: number;
  readonly trainMs: number;
  readonly batches?: number;
  readonly cold?: number;
  readonly coldMs?: number;
}) {
  let nowMs = 0;
  let usedMs = 0;
  let trained = 0;
  const open = () => {
    let given = 0;
    return {
      next: () => {
        if (given === batches) return Promise.resolve({ done: true as const, value: undefined });
        given++;
        // The first batches of a run are slow.
        nowMs += given === 1 ? 100 * batchMs : batchMs;
        nowMs += coldMs * Math.max(0, 1 - given / (cold + 1));
        usedMs += cpuMs;
        return Promise.resolve({ done: false as const, value: new Float64Array(1_000) });
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  };
  const train = () => {
    nowMs += trainMs;
    usedMs += 1_000;
    trained++;
  };
  const options = {
    clocks: { nowMs: () => nowMs, cpuMs: () => usedMs },
    sleep: (ms: number) => Promise.resolve(void (nowMs += ms)),
    steps: 50,
  };
  return { open, options: { ...options, train }, untrained: options, trained: () => trained };
}

Deno.test("profileLocal measures Gthp without, Lthp with waiting for data, and Pcycle without training", async () => {
  const { open, options, trained } = machine({ batchMs: 3, cpuMs: 2, trainMs: 1 });
  const { Gthp, Lthp, Pcycle } = (await profileLocal(open, options))!;
  assertAlmostEquals(Gthp, 8_000 / 0.001, 1);
  assertAlmostEquals(Lthp, 8_000 / 0.004, 1);
  assertAlmostEquals(Pcycle, 2, 1e-9);
  // Every step takes the same time: half of 50 to warm up, 8 to measure, and 9 with one batch.
  assertEquals(trained(), 25 + 8 + 9);
});

Deno.test("profileCandidate measures Rthp and Ocycle", async () => {
  const { open, options } = machine({ batchMs: 1, cpuMs: 0.5, trainMs: 1 });
  const { metrics: { name, Rthp, Ocycle } } = (await profileCandidate("p'2", open, options))!;
  assertEquals(name, "p'2");
  assertAlmostEquals(Rthp, 8_000 / 0.002, 1);
  assertAlmostEquals(Ocycle, 0.5, 1e-9);
});

Deno.test("profileCandidate counts what other workers give of later splits while the first is read", async () => {
  const { open, options } = machine({ batchMs: 9, cpuMs: 2, trainMs: 1 });
  let [takenBytes, bufferedBytes] = [0, 0];
  const opened = () => {
    const run = open();
    const next = () => {
      takenBytes += 100;
      bufferedBytes += 300;
      return run.next();
    };
    return { ...run, next };
  };
  const supply = () => ({ takenBytes, bufferedBytes });
  const { metrics } = (await profileCandidate("p'3", opened, { ...options, supply }))!;
  // Four workers, of which one gives the split that is read. This host receives from all four.
  assertAlmostEquals(metrics.Rthp, 4 * 8_000 / 0.01, 1);
  assertAlmostEquals(metrics.Ocycle, 0.5, 1e-9);
});

Deno.test("profileCandidate gives up early on a candidate that is much slower than this host", async () => {
  const { open, options, trained } = machine({ batchMs: 99, cpuMs: 0.5, trainMs: 1 });
  const { metrics } = (await profileCandidate("p'3", open, { ...options, localStepMs: 4 }))!;
  assertAlmostEquals(metrics.Rthp, 8_000 / 0.1, 1);
  // 300 ms, in case that it only has to be compiled, and three steps.
  assertEquals(trained(), 1 + 4 + 3);
});

Deno.test("profileLocal starts a short dataset again, and takes a step's time where none is given", async () => {
  const { open, untrained } = machine({ batchMs: 1, cpuMs: 1, trainMs: 0, batches: 7 });
  const { Gthp } = (await profileLocal(open, { ...untrained, stepMs: 4 }))!;
  assertAlmostEquals(Gthp, 8_000 / 0.004, 1);
  assertEquals((await profileLocal(open, untrained))!.Gthp, Infinity);
});

Deno.test("profileLocal finds no stall where only the timers of short steps are late", async () => {
  for (const [stepMs, lateMs] of [[4, 1.2], [0.5, 1.2], [4, -0.5]] as const) {
    const { open, untrained } = machine({ batchMs: 0, cpuMs: 1, trainMs: 0 });
    const sleep = (ms: number) => untrained.sleep(ms + lateMs);
    const measured = (await profileLocal(open, { ...untrained, sleep, stepMs }))!;
    assert(staysLocal(measured), `${stepMs} ms: ${measured.Gthp / measured.Lthp}`);
    assertAlmostEquals(measured.Gthp / measured.Lthp, 1, 0.1);
  }
});

Deno.test("profileLocal finds the stall of a host so busy that timers are very late", async () => {
  const { open, untrained } = machine({ batchMs: 0, cpuMs: 1, trainMs: 0 });
  const sleep = (ms: number) => untrained.sleep(ms + 20);
  const measured = (await profileLocal(open, { ...untrained, sleep, stepMs: 5 }))!;
  assertAlmostEquals(measured.Gthp / measured.Lthp, 21 / 5, 1e-9);
});

Deno.test("profileLocal measures Gthp with a full batch, though the last step's batch is short", async () => {
  // The last of 50 + 10 steps is the end of an epoch.
  const { open, options } = machine({ batchMs: 3, cpuMs: 1, trainMs: 1, batches: 12 });
  const short = () => {
    const run = open();
    let given = 0;
    return {
      ...run,
      next: async () => {
        const { done, value } = await run.next();
        return done ? { done, value } : { done, value: ++given === 12 ? value.slice(0, 1) : value };
      },
    };
  };
  const { Gthp } = (await profileLocal(short, options))!;
  assertAlmostEquals(Gthp, 8_000 / 0.001, 1);
});

Deno.test("a measurement warms up for 300 ms, and not longer", async () => {
  const { open, options, trained } = machine({ batchMs: 19, cpuMs: 1, trainMs: 21 });
  await profileCandidate("p'3", open, options);
  assertEquals(trained(), 1 + 8 + 8);
});

Deno.test("profileCandidate waits for a candidate whose steps become faster", async () => {
  // At first they are five times as slow as local ones: code is compiled.
  const { open, options } = machine({ batchMs: 8, cpuMs: 1, trainMs: 1, cold: 15, coldMs: 60 });
  const { metrics } = (await profileCandidate("p'3", open, { ...options, localStepMs: 7 }))!;
  assertAlmostEquals(metrics.Rthp, 8_000 / 0.009, 1);
});

Deno.test("profileCandidate gives up on one whose first steps are slower than another's", async () => {
  const { open, options, trained } = machine({ batchMs: 1, cpuMs: 0.5, trainMs: 1 });
  const limited = { ...options, firstThroughputMin: 8_000 / 0.0019 };
  const { metrics, firstThroughput } = (await profileCandidate("p'2", open, limited))!;
  assertAlmostEquals(firstThroughput, 8_000 / 0.002, 1);
  assertAlmostEquals(metrics.Rthp, firstThroughput, 1);
  assertEquals(trained(), 8);
  await profileCandidate("p'2", open, { ...limited, firstThroughputMin: 8_000 / 0.0021 });
  assertEquals(trained(), 8 + 25 + 8);
});

Deno.test("a measurement ends when its time is up, with what it has", async () => {
  const { open, options, trained } = machine({ batchMs: 9, cpuMs: 1, trainMs: 1 });
  // The first batch takes 901 ms. Of the next ones, 24 warm up, and there is time for 2 more.
  const never = () => new Promise<void>(() => {});
  const limited = { ...options, sleep: never, untilMs: 901 + 24 * 10 + 15 };
  const { metrics: { Rthp, Ocycle }, isComplete } = (await profileCandidate("p'2", open, limited))!;
  assertAlmostEquals(Rthp, 8_000 / 0.01, 1);
  assertEquals([trained(), Ocycle, isComplete], [25 + 2, 1_001, false]);
  const local = (await profileLocal(open, { ...limited, untilMs: 5_000 }))!;
  assertEquals([local.Gthp > 0, local.Lthp > 0, local.isComplete], [true, true, true]);
});

Deno.test("a measurement gives up on a batch that does not come in time", async () => {
  const { open, options } = machine({ batchMs: 1, cpuMs: 1, trainMs: 1 });
  for (const batches of [0, 1, 2, 24, 27]) {
    let given = 0;
    let closed = 0;
    const up = Promise.withResolvers<void>();
    const stuck = () => {
      const { next } = open();
      return {
        next: () => {
          if (given++ < batches) return next();
          // Only now: nothing here waits for a clock.
          up.resolve();
          return new Promise<never>(() => {});
        },
        [Symbol.asyncDispose]: () => Promise.resolve(void closed++),
      };
    };
    const limited = { ...options, sleep: () => up.promise, untilMs: 1e9 };
    const measured = await profileCandidate("p'3", stuck, limited);
    // The first batch compiles; a step of the warm-up already tells something.
    assertEquals([measured?.metrics.name, closed], [batches > 1 ? "p'3" : undefined, 1]);
    if (measured === undefined) continue;
    assertAlmostEquals(measured.metrics.Rthp, 8_000 / 0.002, 1);
    assertEquals(measured.isComplete, false);
  }
});

Deno.test("profileCandidate opens no other run when its time is up or it is aborted during a batch", async () => {
  const aborted = new Error("aborted");
  for (const reason of [undefined, aborted]) {
    const { open, options } = machine({ batchMs: 1, cpuMs: 1, trainMs: 1 });
    const up = Promise.withResolvers<void>();
    let given = 0;
    let opened = 0;
    let closed = 0;
    const waiting = () => {
      const { next } = open();
      const end = Promise.withResolvers<{ done: true; value: undefined }>();
      opened++;
      return {
        next: () => {
          if (given++ < 1) return next();
          if (reason === undefined) up.resolve();
          else up.reject(reason);
          return end.promise;
        },
        [Symbol.asyncDispose]: () => {
          closed++;
          // As an iterator of a service does.
          end.resolve({ done: true, value: undefined });
          return Promise.resolve();
        },
      };
    };
    const limited = { ...options, sleep: () => up.promise, untilMs: 1e9 };
    const measured = profileCandidate("p'3", waiting, limited);
    if (reason === undefined) assertEquals(await measured, undefined);
    else assertEquals(await assertRejects(() => measured), reason);
    await turn();
    assertEquals([opened, closed > 0], [1, true]);
  }
});

Deno.test("profileLocal tells its steps", async () => {
  const { open, options } = machine({ batchMs: 1, cpuMs: 1, trainMs: 1 });
  const told: [number, number][] = [];
  const onStep = (...step: [number, number]) => void told.push(step);
  await profileLocal(open, { ...options, onStep });
  assertEquals(told.map(([step]) => step), Array.from(told, (_, i) => i + 1));
  assert(told.every(([step, most]) => step <= most && most === 50 + 50 + 8));
});

Deno.test("profileLocal measures the CPU time of training, and what is left", async () => {
  // Training is 1,000 ms of CPU time, in whatever time the clock says.
  const busy = machine({ batchMs: 3, cpuMs: 2, trainMs: 1 });
  const { Gcycle, idle } = (await profileLocal(busy.open, busy.options))!;
  assertEquals([Gcycle, idle], [1_000, 0]);
  const waiting = machine({ batchMs: 9, cpuMs: 2, trainMs: 0 });
  const measured = (await profileLocal(waiting.open, { ...waiting.untrained, stepMs: 1 }))!;
  assertEquals(measured.Gcycle, 0);
  // Of 10 ms it uses 2, and could use 8.
  assertAlmostEquals(measured.idle!, 3, 1e-9);
});

Deno.test("profileLocal goes on after elements that fail, unless too many do or no other follows", async () => {
  const { open, options } = machine({ batchMs: 1, cpuMs: 1, trainMs: 1 });
  const failing = (isFailed: (number: number) => boolean, end = Infinity) => () => {
    const { next, ...others } = open();
    let number = 0;
    const step = () => {
      if (number >= end) return Promise.resolve({ done: true as const, value: undefined });
      return isFailed(number++) ? Promise.reject(new Error(`bad ${number}`)) : next();
    };
    return { ...others, next: step };
  };
  const some = (await profileLocal(failing((number) => number % 20 < 16), options))!;
  assertEquals(some.isComplete, true);
  await assertRejects(() => profileLocal(failing(() => true), options), Error, "bad 17");
  await assertRejects(() => profileLocal(failing(() => true, 3), options), Error, "bad 1");
});

Deno.test("profileLocal refuses an empty dataset", async () => {
  const { open, options } = machine({ batchMs: 1, cpuMs: 1, trainMs: 0, batches: 0 });
  await assertRejects(() => profileLocal(open, options), Error, "gives no elements");
});

/** The names of a dataset's candidates, with the operator at which each is cut. */
function cuts(dataset: Dataset<unknown>): string[] {
  return cutPointsOf(dataset.node).candidates.map(({ name, root, keepsOrder }) =>
    `${name} ${root.kind}${keepsOrder ? " in order" : ""}`
  );
}

Deno.test("cutPointsOf finds the paper's candidates and the user's cut points", () => {
  const read = Dataset.textLines(["a", "b"]);
  assertEquals(cuts(read.map((x) => x).batch(2).prefetch(1)), ["p'2 map", "p'3 batch", "p'1 map"]);
  assertEquals(
    cuts(read.map((x) => x).cutPoint("decoded").filter(() => true).batch(2)),
    ["p'2 filter", "p'3 batch", "decoded map", "p'1 filter"],
  );
  assertEquals(cuts(read.map((x) => x).repeat().batch(2)), ["p'2 map", "p'1 map"]);
  // Nothing above the source, or no source that this host reads for others.
  assertEquals(cuts(read), ["p'2 textLines"]);
  assertEquals(cuts(Dataset.range(9).map((x) => x)), ["p'2 map"]);
});

Deno.test("cutPoint refuses a name that another candidate has", () => {
  const marked = Dataset.range(9).cutPoint("a").map((x) => x);
  for (const name of ["p'1", "p'2", "p'3", "a"]) {
    const error = assertThrows(() => marked.cutPoint(name), LeatError, "cutPoint: name");
    assertEquals(error.code, "invalid_argument");
    assertMatch(error.message, new RegExp(`other than p'1, p'2, p'3 and those .* got "${name}"`));
  }
  const twice = marked.cutPoint("b").map((x) => x);
  assertEquals(cuts(twice), ["p'2 map", "b map", "a range"]);
  // Each part of a pipeline has its own candidates.
  const names = cutPointsOf(Dataset.zip([marked, marked]).node).candidates.map(({ name }) => name);
  assertEquals(names, ["p'2/0", "a/0", "p'2/1", "a/1"]);
});

Deno.test("cutPointsOf stays below caches, keeps pairs together, and says what it refuses", () => {
  const numbers = Dataset.range(10);
  assertEquals(cuts(numbers.map((x) => x).cache().map((x) => x).batch(2)), ["p'2 map"]);
  assertEquals(
    cuts(Dataset.zip([numbers.map((x) => x), numbers]).batch(2)),
    ["p'2/0 map in order", "p'2/1 range in order"],
  );
  const refusedOf = (dataset: Dataset<unknown>) => cutPointsOf(dataset.node).refused.join();
  const outside = 3;
  assertEquals(cuts(numbers.map((x) => x + outside)), []);
  assertEquals(refusedOf(numbers.map((x) => x + outside)).includes("outside"), true);
  assertEquals(refusedOf(numbers.map((x) => x + Math.random())).includes("Math.random"), true);
  assertEquals(refusedOf(Dataset.fromGenerator(function* () {})).includes("source"), true);
});

Deno.test("cutPointsOf keeps the order below operators that need it, unless deterministic is false", () => {
  const chain = Dataset.range(9).map((x) => x);
  const windows = chain.window(3).flatMap((window) => window.batch(3)).enumerate();
  assertEquals(cuts(windows), ["p'2 map in order"]);
  assertEquals(cutPointsOf(windows.node).ordered, ["window", "enumerate"]);
  const loose = cutPointsOf(windows.node, false);
  assertEquals(loose.candidates.map(({ keepsOrder }) => keepsOrder), [false]);
  assertEquals(loose.ordered, ["window", "enumerate"]);
  for (const dataset of [chain.batch(2).repeat(2), chain.take(-1), chain.cache().shuffle(3)]) {
    assertEquals(cutPointsOf(dataset.node).ordered, []);
    assert(cutPointsOf(dataset.node).candidates.every(({ keepsOrder }) => !keepsOrder));
  }
});

Deno.test("cutPointsOf says which operator keeps the batch and p'1 from workers", () => {
  const refusedOf = (dataset: Dataset<unknown>) => cutPointsOf(dataset.node).refused;
  const stays = "and stays on this host with all that follows it";
  const remedy = "; call `repeat` last, or train with fit({ epochs })";
  const read = Dataset.textLines(["a", "b"]);
  assertEquals(refusedOf(read.repeat(10).map((x) => x).batch(2).prefetch(1)), [
    `p'3: \`repeat\` comes before \`batch\`, ${stays}${remedy}`,
    `p'1: \`repeat\` follows \`textLines\`, ${stays}${remedy}`,
  ]);
  assertEquals(refusedOf(read.map((x) => x).take(5).batch(2)), [
    `p'3: \`take\` comes before \`batch\`, ${stays}`,
  ]);
  assertEquals(refusedOf(read.map((x) => x).batch(2).repeat(10)), []);
  assertEquals(refusedOf(read.map((x) => x).repeat(10)), []);
  assertEquals(refusedOf(read), ["p'1: no operator follows `textLines`"]);
  assertEquals(refusedOf(Dataset.range(9).map((x) => x).batch(2)), [
    "p'1: it needs a source of files, or of elements in memory",
  ]);
  assertEquals(refusedOf(Dataset.zip([read, Dataset.range(9).batch(2)]).batch(2)), [
    `p'3/0: \`zip\` comes before \`batch\`, ${stays}`,
    `p'1/0: \`zip\` follows \`textLines\`, ${stays}`,
    "p'1/1: it needs a source of files, or of elements in memory",
  ]);
});

Deno.test("cutPointsOf refuses data that is too large to be sent, except with p'1, which sends none", () => {
  const bytes = new Uint8Array(64 * 2 ** 20);
  const { node } = Dataset.from(Array.from({ length: 9 }, () => bytes)).map((b) => b.length);
  const { candidates, refused } = cutPointsOf(node);
  assertEquals(candidates.map(({ name }) => name), ["p'1"]);
  assertMatch(refused.join(), /^p'2: Cannot serialise from: its data is too large .*from files/);
  const captured = Dataset.from([1]).map((x, { f }) => f(x), { captures: { f: console.log } });
  assertMatch(cutPointsOf(captured.node).refused[1]!, /^p'1: Cannot serialise map/);
});
