/** Explanations: graphs in words, with figures, and advice from made-up figures. */

import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "../assert.ts";
import { adviceOn } from "../../data/advice.ts";
import { bytesText, durationText } from "../../data/amounts.ts";
import { SplitStats } from "../../offload/conditional/split_stats.ts";
import { OperatorMeter } from "../../data/iterators/stats.ts";
import { AUTOTUNE, Dataset, type OperatorStats } from "../../mod.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import { DenoHost } from "../../platform/deno_host.ts";
import { turn } from "./lib/collect.ts";

const QUIET = { elements: 1e6, errors: 0, bytesIn: 0, bytesOut: 0, selfMs: 0, waitMs: 0 };

/** The last line on a run of a second, with these figures of its operators from the last one down. */
function advice(
  dataset: Dataset<unknown>,
  figures: readonly Partial<OperatorStats>[],
  waitedMs = 1000,
  heldMs = 0,
  isOffloaded = false,
): string {
  const stats = dataset.explain().operators.map(({ operator, number }) => ({
    ...{ operator, number, bufferedBytes: 0 },
    ...QUIET,
    ...figures[number],
  }));
  const run = { stats, runMs: 1000, waitedMs, heldMs, isOffloaded };
  return adviceOn({ root: dataset.node, ...run }).join("\n");
}

const slow = Dataset.range(9).map((x) => x);
const lines = Dataset.textLines("lines.txt");

Deno.test("advice names the operator that works longest, and a remedy", () => {
  const works = { elements: 100, selfMs: 710 };
  assertMatch(
    advice(slow.batch(3), [{}, works]),
    /^map \(operator 1\) takes 71 % of the time: distribute\(\)/,
  );
  assertStringIncludes(advice(slow.batch(3), [{}, works], 100), "prefetch(AUTOTUNE)");
  const parallel = Dataset.range(9).map((x) => x, { numParallelCalls: AUTOTUNE });
  assertStringIncludes(advice(parallel, [works]), "numParallelCalls has no effect");
  assertStringIncludes(advice(slow.batch(3), [{}, { selfMs: 600 }]), "batch() before it");
  assertStringIncludes(advice(lines, [{ ...works, waitMs: 100 }]), "decoding: distribute()");
});

Deno.test("advice names the operator that others wait for", () => {
  const later = Dataset.range(9).map((x) => Promise.resolve(x));
  const waits = { waitMs: 900 };
  assertMatch(
    advice(later.batch(3), [waits]),
    /^map \(operator 1\) is waited for 90 % of the time: numParallelCalls lets/,
  );
  const parallel = Dataset.range(9).map((x) => Promise.resolve(x), { numParallelCalls: 3 });
  assertStringIncludes(
    advice(parallel.batch(3), [{ waitMs: 700 }], 700),
    "prefetch(AUTOTUNE) as the last",
  );
  assertStringIncludes(
    advice(parallel.batch(3).prefetch(2), [waits, waits]),
    "set numParallelCalls above 3",
  );
  assertMatch(
    advice(lines.map((x) => x).batch(3), [waits, waits, waits]),
    /^textLines \(operator 2\) is waited for 90 % of the time: numParallelReads: AUTOTUNE/,
  );
  assertMatch(
    advice(Dataset.zip([lines, Dataset.range(3)]), [waits, waits]),
    /^textLines \(operator 1\)/,
  );
  assertMatch(
    advice(Dataset.range(3).flatMap((_, { Dataset }) => Dataset.range(3)), [waits]),
    /^flatMap \(operator 0\)/,
  );
  const distributed = slow.distribute({ service: "ws://127.0.0.1:1" });
  assertStringIncludes(advice(distributed.batch(2), [waits, waits]), "start more workers");
  assertMatch(
    advice(later.withOptions({ seed: 1 }), []),
    /^map \(operator 1\) is waited for 100 % of the time/,
  );
});

Deno.test("advice names no operator whose time the consumer did not notice, because it is read ahead", () => {
  const later = Dataset.range(9).map((x) => Promise.resolve(x));
  const keepsUp = /^The pipeline keeps up: its consumer is at work 98 % of the time/;
  // The prefetch waited nearly all the time, but its consumer did not.
  assertMatch(advice(later.prefetch(2), [{ waitMs: 990 }], 20), keepsUp);
  assertMatch(advice(later.batch(3).prefetch(2), [{ waitMs: 990 }, { waitMs: 990 }], 20), keepsUp);
  assertMatch(advice(lines.prefetch(2), [{ waitMs: 990 }, { waitMs: 990 }], 20), keepsUp);
  // Nor did it notice work while a device was busy. Work that fills the thread delays it.
  const works = { elements: 100, selfMs: 320 };
  assertMatch(advice(slow.prefetch(2), [{}, works], 20), keepsUp);
  assertMatch(advice(slow, [works], 0, 320), /^map \(operator 0\) takes 32 % of the time/);
  assertMatch(
    advice(slow.prefetch(2), [{}, { ...works, selfMs: 900 }], 20),
    /^map \(operator 1\) takes 90 % of the time/,
  );
});

Deno.test("advice proposes no prefetch to a consumer that does nothing but wait", () => {
  const waits = { waitMs: 900 };
  const parallel = Dataset.range(9).map((x) => Promise.resolve(x), { numParallelCalls: 3 });
  assertStringIncludes(advice(parallel.batch(3), [waits]), "set numParallelCalls above 3");
  const nested = Dataset.range(3).flatMap((_, { Dataset }) => Dataset.range(3));
  assertMatch(
    advice(nested, [waits]),
    /^flatMap \(operator 0\) is waited for 100 % of the time: distribute\(\)/,
  );
  assertStringIncludes(advice(nested, [waits], 700), "prefetch(AUTOTUNE) as the last");
});

Deno.test("advice proposes more workers only if requests wait for elements, and not for the network", () => {
  const distributed = slow.distribute({ service: "ws://127.0.0.1:1" });
  const adviceWith = (answerMs: number, heldMs: number) => {
    const read = { worker: "w", taskId: 1, elements: 9, bytes: 9, wireBytes: 9, outstanding: 2 };
    const times = { waitingMs: 900, trainingMs: 100, decodingMs: 0, unpackingMs: 0 };
    const sizes = { elements: 9, bytes: 9, wireBytes: 9, inFlight: 2, bufferedBytes: 0 };
    const service = { ...times, ...sizes, reads: [{ ...read, answerMs, heldMs }] };
    return advice(distributed, [{ waitMs: 900, service }]);
  };
  assertMatch(adviceWith(1_000, 900), /^distribute \(operator 0\) .* 90 % .*start more workers/);
  const onTheWay = adviceWith(4_000, 30);
  assertMatch(onTheWay, /^distribute \(operator 0\) .* 90 % .* ready: the network/);
  assertMatch(onTheWay, /compression.*maxOutstandingRequests.*More workers do not/);
});

Deno.test("advice leaves out the time in which an offload makes its plan", () => {
  const offloaded = slow.offload({ service: "ws://127.0.0.1:1" });
  const planned = { waitMs: 300 };
  assertMatch(
    advice(offloaded, [planned]),
    /^map \(operator 1\) is waited for 100 % of the time: numParallelCalls lets/,
  );
  assertMatch(advice(offloaded, [planned], 335), /^The pipeline keeps up: .* work 95 % of/);
});

Deno.test("advice names no operator if workers may have prepared a part of the elements", () => {
  const offloaded = slow.offload({ service: "ws://127.0.0.1:1" });
  const sentence = /^Workers may prepare a part of the elements.*offloadProgress\(\)/;
  for (const figures of [{ waitMs: 900 }, { selfMs: 900 }, {}]) {
    assertMatch(advice(offloaded, [{}, figures], 900, 0, true), sentence);
  }
});

Deno.test("SplitStats adds what splits count to the operators that they run", () => {
  const counted = (operator: string, elements: number, selfMs = 0, bufferedBytes = 0) => {
    const meter = new OperatorMeter(operator, 0);
    for (let i = 0; i < elements; i++) meter.gave(i);
    meter.spent(selfMs);
    meter.holds(bufferedBytes);
    return meter.read(8);
  };
  const part = new SplitStats(["batch", "map", "range"]);
  const run = (batches: number, isOver: boolean) => ({
    isOver,
    stats: () => [
      counted("fullBatches", batches),
      counted("batch", batches, 1, 10),
      counted("map", 4 * batches, 5),
      counted("range", 4 * batches),
    ],
  });
  part.add(run(1, true));
  part.add(run(2, false));
  // Workers run the rest.
  part.add(run(3, false), 1);
  const own = ["batch", "map", "range"].map((kind, i) => ({
    ...counted(kind, i === 0 ? 9 : 0),
    number: i + 1,
    bytesIn: 0,
  }));
  const found = part.addTo(own);
  assertEquals(found.map(({ number }) => number), [1, 2, 3]);
  assertEquals(found.map(({ elements }) => elements), [9, 12, 12]);
  assertEquals(found.map(({ selfMs }) => selfMs), [3, 10, 0]);
  assertEquals(found.map(({ bytesIn }) => bytesIn), [24, 16, 16]);
  assertEquals(part.addTo(own), found);
});

Deno.test("advice says when nothing can be improved, and which operator holds much memory", () => {
  assertStringIncludes(advice(slow, [{ selfMs: 50 }], 60), "The pipeline keeps up");
  assertStringIncludes(advice(slow, [{ selfMs: 50 }], 60, 900), "No operator stands out");
  assertStringIncludes(advice(slow, [{ elements: 0 }]), "The pipeline has given no element yet");
  const held = advice(slow.shuffle(9), [{ bufferedBytes: 512e6 }, { selfMs: 900 }]).split("\n");
  assertMatch(held[0]!, /^shuffle \(operator 0\) holds 512 MB: a smaller bufferSize/);
  assertMatch(held[1]!, /^map \(operator 1\) takes 90 %/);
});

/** What `explain()` says at the end of an iterator that was read to its end. */
async function adviceAtEnd(dataset: Dataset<unknown>): Promise<string> {
  await using iterator = dataset.iterator();
  for await (const _ of iterator);
  return iterator.explain().advice.at(-1)!;
}

Deno.test("explain names the lowest operator that gave no element to a pipeline that has ended", async () => {
  const ten = Dataset.range(10);
  const none = ten.filter(() => false);
  const fails = ten.map((): number => {
    throw new Error("no");
  });
  const cases: [Dataset<unknown>, string][] = [
    [Dataset.range(0), "range (operator 0)"],
    [Dataset.range(0).batch(2).prefetch(2), "range (operator 2)"],
    [none, "filter (operator 0)"],
    [none.map((x) => x).shuffle(3).batch(2), "filter (operator 3)"],
    [ten.take(0).batch(2), "take (operator 1)"],
    [none.take(0), "take (operator 0)"],
    [Dataset.zip(ten, none), "filter (operator 2)"],
    [fails.map((x) => x).batch(2).ignoreErrors(), "map (operator 3)"],
  ];
  for (const [dataset, operator] of cases) {
    const sentence = await adviceAtEnd(dataset);
    assertMatch(sentence, /^The pipeline has ended, and has given no element since it was opened/);
    assertStringIncludes(sentence, `: ${operator} gave none.`);
  }
});

Deno.test("explain of an ended pipeline names no operator below a distribute", () => {
  const dataset = Dataset.textLines("lines.txt").distribute({ service: "ws://127.0.0.1:1" });
  const figures = { runMs: 1000, waitedMs: 0, heldMs: 0, hasEnded: true };
  const run = { root: dataset.node, stats: dataset.iterator().stats(), ...figures };
  assertMatch(adviceOn(run).at(-1)!, /: distribute \(operator 0\) gave none\.$/);
});

/** A host whose clock moves only when a test moves it. */
class StillHost extends DenoHost {
  ms = 0;
  override nowMs(): number {
    return this.ms;
  }
}

Deno.test("explain counts no time after an iterator was closed, by the caller or by an error", async () => {
  const host = new StillHost();
  const dataset = Dataset.range(9).map(async (x) => {
    await turn();
    host.ms += 10;
    if (x === 5) throw new Error("no 5");
    return x;
  });
  for (const closesAtError of [false, true]) {
    const iterator = openIterator(dataset.node, { host, closesAtError });
    for (let i = 0; i < 5; i++) await iterator.next();
    const before = iterator.explain().advice;
    assertMatch(before[0]!, /^map \(operator 0\) is waited for 100 % of the time/);
    await (closesAtError ? assertRejects(() => iterator.next()) : iterator.return());
    host.ms += 10_000;
    assertEquals(iterator.explain().advice, before);
  }
});

Deno.test("explain prints each operator's figures for an iterator, and none for a dataset", async () => {
  const dataset = Dataset.range(20).map(async (x) => {
    await turn(10); // much more than the rest takes on any machine
    return { x };
  }).shuffle(4).batch(5);
  await using iterator = dataset.iterator();
  await iterator.next();
  const explanation = iterator.explain();
  const text = String(explanation);
  assertStringIncludes(text, "gave 1 (48 bytes)");
  assertStringIncludes(text, "holds 48 bytes");
  assertEquals(text.split("\n").length, 2 * 4 + 1);
  assertMatch(text.split("\n").at(-1)!, /^map \(operator 2\) is waited for \d+ % of the time/);
  assertEquals(explanation.advice.length, 1);
  assertEquals(dataset.explain().advice, []);
  assert(!String(dataset.explain()).includes("gave"));
});

Deno.test("explain reports operators before a distribute as not counted here, not as idle", () => {
  const dataset = slow.distribute({ service: "ws://127.0.0.1:1" }).batch(2);
  const text = String(dataset.iterator().explain()).split("\n");
  assertEquals(text.slice(1, 8).filter((_, line) => line % 2 === 0).map((line) => line.trim()), [
    "gave 0 (0 bytes)",
    "gave 0 (0 bytes)",
    "not counted here",
    "not counted here",
  ]);
  assertEquals(dataset.explain().operators.map(({ distributed }) => distributed), [
    false,
    false,
    true,
    true,
  ]);
});

Deno.test("explain counts what runs here before an offload that offloads nothing", async () => {
  const plan = { candidate: null, ratio: 0 };
  const dataset = slow.batch(3).offload({ service: "ws://127.0.0.1:1", plan });
  await using iterator = dataset.iterator();
  const linesOf = () => String(iterator.explain()).split("\n").slice(1, 8);
  const counted = () => linesOf().filter((_, line) => line % 2 === 0).map((line) => line.trim());
  assertEquals(counted(), ["gave 0 (0 bytes)", ...Array(3).fill("not counted here")]);
  await iterator.next();
  assertEquals(counted().map((line) => line.split(" (")[0]), [
    "gave 1",
    "gave 1",
    "gave 3",
    "gave 3",
  ]);
});

Deno.test("amounts have three digits and a unit", () => {
  assertEquals([0, 999, 1000, 8192, 512e6, 3e15].map(bytesText), [
    ...["0 bytes", "999 bytes", "1 kB", "8.19 kB", "512 MB", "3000 TB"],
  ]);
  assertEquals([0.1234, 80, 999.9, 61_000].map(durationText), ["0.123 ms", "80 ms", "1 s", "61 s"]);
});

Deno.test("explain shortens functions and lists, and shows objects and AUTOTUNE as written", () => {
  const paths = Array.from({ length: 30 }, (_, i) => `/${i}.txt`);
  const long = (x: string) => x.toUpperCase().toLowerCase().trim().padStart(10).padEnd(20);
  const text = String(
    Dataset.textLines(paths).map(long).shuffle(2, { seed: 7 }).prefetch(AUTOTUNE).explain(),
  );
  for (const part of ["files(paths=30 values)", "…", "seed=7,", "bufferSize=AUTOTUNE"]) {
    assertStringIncludes(text, part);
  }
  const decode = { resize: { width: 8, height: 4 } };
  const folder = String(Dataset.imageFolder("/images", { decode }).explain());
  assertStringIncludes(folder, "decode={ resize: { width: 8, height: 4 } }");
  const tensors = String(Dataset.fromTensors({ x: new Float32Array(1e5) }).explain());
  assertStringIncludes(tensors, "1 element of { x: float32[100000] }");
  assert(tensors.length < 200);
});
