/** The reader of a DETERMINISTIC job: what it sorts, drops and requests. */
import {
  EARLY_BUFFER_ITEMS_MAX,
  IN_FLIGHT_BYTES,
  IN_FLIGHT_MAX,
} from "../../../../actors/client/readers/ordered_reader.ts";
import type { ElementAnswer } from "../../../../actors/worker/protocol.ts";
import { LeatError, type WireError } from "../../../../core/error.ts";
import { encodeMessage } from "../../../../transport/codec.ts";
import { compressFrame } from "../../../../transport/compression.ts";
import { Payload } from "../../../../transport/payload.ts";
import { assert, assertEquals, assertRejects } from "../../../assert.ts";
import { until } from "../../../lib/until.ts";
import { testInVirtualTime } from "../../../lib/virtual_time.ts";
import { settle, SteppedWorld } from "../../dispatcher/lib.ts";
import {
  DIGEST,
  distantBench,
  element,
  ELEMENT_BYTES,
  inOrder,
  ReaderBench,
  splitEnd,
  splits,
} from "./reader_bench.ts";

const codeOf = (error: unknown) => LeatError.from(error).code;

Deno.test("an ordered reader holds at most its window and the answers in flight", async () => {
  const total = 100;
  const bufferBytesMax = 10 * ELEMENT_BYTES;
  await using bench = new ReaderBench({ total, bufferBytesMax });
  const first = Promise.withResolvers<void>();
  const full = Promise.withResolvers<void>();
  const [slow, fast] = [[...splits(0, 1)], [...splits(1, total)]];
  let given = 0;
  let refused = 0;
  bench.addTask(async () => {
    await first.promise;
    return slow.shift() ?? { kind: "end" };
  });
  bench.addTask(({ upTo = Infinity }) => {
    const next = fast[0];
    if (next === undefined) return { kind: "end" };
    if (upTo < (next as { place: { sequence: number } }).place.sequence) {
      if (++refused === 6) full.resolve();
      return { kind: "later" };
    }
    if (next.kind === "element") given += ELEMENT_BYTES;
    return fast.shift()!;
  });
  const rest = bench.rest();
  rest.catch(() => {}); // a failed assertion says more than the disposal that follows
  await full.promise;
  assert(given >= bufferBytesMax, `only ${given} bytes were asked for`);
  const inFlightBytesMax = IN_FLIGHT_MAX * ELEMENT_BYTES;
  assert(given <= bufferBytesMax + inFlightBytesMax, `${given} bytes were asked for`);
  // It reports how long the loop has waited for this one split, and the most that it has held, once
  // that has arrived: split 0 was missing all the time.
  const reported = () => bench.heartbeats.at(-1)!.figures!;
  await until(() => reported().headOfLineMs! > 0 && reported().bufferedBytesMax === given);
  assertEquals(reported().openSplitsMax, given / ELEMENT_BYTES + 1);
  first.resolve();
  assertEquals(await rest, inOrder(total));
});

Deno.test("an ordered reader of a consumer whose operators run here requests nothing while 65,536 items wait", async () => {
  await using bench = new ReaderBench({ total: 3, bufferBytesMax: 1e9, numConsumers: 2 });
  const item = element(0, 0, 0) as Extract<ElementAnswer, { kind: "element" }>;
  for (let i = 0; i < EARLY_BUFFER_ITEMS_MAX; i++) bench.feed.push(item);
  const items = [...splits(0, 2)];
  let asked = 0;
  bench.addTask(() => (asked++, items.shift() ?? { kind: "later" }));
  await until(() => bench.heartbeats.length > 3);
  assertEquals(asked, 0);
  await bench.feed.take();
  await until(() => asked > 0);
});

Deno.test("an ordered reader ends with the refusal of a task that has forgotten an element", async () => {
  await using bench = new ReaderBench({ total: 1, bufferBytesMax: 1e9 });
  bench.addTask(({ sequence }) => {
    if (sequence > 1) return element(0, 1);
    throw new LeatError("aborted", "The task has dropped element 1");
  });
  const refusal = await assertRejects(() => bench.rest(), LeatError, "has dropped element 1");
  assertEquals(refusal.code, "aborted");
});

Deno.test("an ordered reader ends the stream at rows of a split that cannot be unpacked or counted", async () => {
  const frame = encodeMessage({ rows: ["x".repeat(400)] }, { into: "arraybuffer" });
  const damaged = compressFrame(frame, "zstd")!;
  damaged[damaged.length - 3]! ^= 1;
  const uncounted = encodeMessage({ batch: { a: null } }, { into: "arraybuffer" });
  const ordered = { numbering: { first: 0, batchSize: 4, carriedRows: 0 } };
  for (const [bytes, code] of [[damaged, "data_loss"], [uncounted, "invalid_argument"]] as const) {
    const world = new SteppedWorld(() => Promise.reject(new Error("there is no journal")));
    await using bench = new ReaderBench({
      ...{ total: 1, bufferBytesMax: 10_000, numConsumers: 2, ordered, world },
    });
    const place = { sequence: 0, split: 0, index: 0 };
    const answers = [{ kind: "remainder", element: new Payload(bytes), place } as const];
    const last = Promise.withResolvers<ElementAnswer>();
    bench.addTask(() => answers.shift() ?? last.promise);
    const item = await Promise.resolve(bench.feed.take()).catch(LeatError.from);
    const isFinal = item instanceof LeatError || item.kind === "error" && item.isFinal;
    assert(isFinal, Deno.inspect(item));
    const error = item instanceof LeatError ? item : (item as { error: WireError }).error;
    assertEquals([error.code, world.errors], [code, []], "and the client is alive");
    last.resolve({ kind: "end" });
  }
});

Deno.test("an ordered reader keeps more small elements of a task in flight than large ones", async () => {
  const inFlightWith = async (...sizes: number[]) => {
    await using bench = new ReaderBench({ total: 1, bufferBytesMax: 1e9, refreshMs: 60_000 });
    const silent = Promise.withResolvers<ElementAnswer>();
    let asked = 0;
    bench.addTask(() => {
      const size = sizes[asked++];
      return size === undefined ? silent.promise : element(0, asked - 1, size);
    });
    for (const _ of sizes) assertEquals((await bench.feed.take()).kind, "element");
    for (let i = 0; i < 20; i++) await settle();
    silent.resolve({ kind: "end" });
    return asked - sizes.length;
  };
  assertEquals(await inFlightWith(100), IN_FLIGHT_MAX);
  assertEquals(await inFlightWith(IN_FLIGHT_BYTES / 4), 4);
  assertEquals(await inFlightWith(2 * IN_FLIGHT_BYTES), 2);
  assertEquals(await inFlightWith(2 * IN_FLIGHT_BYTES, 100), 2, "a small one among large ones");
});

Deno.test("an ordered reader drops repeated elements and sorts those that overtook others", async () => {
  await using bench = new ReaderBench({ total: 3, bufferBytesMax: 10_000 });
  const answers = [
    element(1, 0),
    element(0, 1),
    element(1, 0),
    splitEnd(0, 2),
    element(0, 0),
    element(0, 0),
    splitEnd(1, 1),
    splitEnd(0, 2),
    splitEnd(2, 0),
  ];
  const last = Promise.withResolvers<ElementAnswer>();
  bench.addTask(() => answers.shift() ?? last.promise);
  assertEquals(await bench.rest(), [
    "element 0.0",
    "element 0.1",
    "split_end 0.2",
    "element 1.0",
    "split_end 1.1",
    "split_end 2.0",
  ]);
});

Deno.test("an ordered reader tells why a split cannot be continued, though more of it had arrived before", async () => {
  await using bench = new ReaderBench({ total: 1, bufferBytesMax: 10_000 });
  const error = new LeatError("permission_denied", "this worker does not grant it").toWire();
  // As from a worker that was restarted with fewer grants, and produces the split again.
  const place = { sequence: 0, split: 0, index: 0 };
  const failed = { kind: "error", error, isFinal: true, place } as const;
  const answers = [element(0, 0), element(0, 1), failed];
  const last = Promise.withResolvers<ElementAnswer>();
  bench.addTask(() => answers.shift() ?? last.promise);
  const kinds = [];
  for (let i = 0; i < 3; i++) kinds.push((await bench.feed.take()).kind);
  assertEquals(kinds, ["element", "element", "error"]);
  last.resolve({ kind: "end" });
});

Deno.test("an ordered reader fails if a split that is produced again ends before or after the first attempt", async () => {
  for (
    const answers of [
      [element(0, 0), element(0, 1), splitEnd(0, 1)],
      [element(0, 0), element(0, 2), splitEnd(0, 1)],
      [element(0, 0), splitEnd(0, 2), element(0, 3), element(0, 1)],
      [element(0, 0), splitEnd(0, 2), splitEnd(0, 3), element(0, 1)],
    ]
  ) {
    await using bench = new ReaderBench({ total: 1, bufferBytesMax: 10_000 });
    const last = Promise.withResolvers<ElementAnswer>();
    bench.addTask(() => answers.shift() ?? last.promise);
    const error = await assertRejects(() => bench.rest(), LeatError, "had another number");
    assertEquals([error.code, error.details], ["data_loss", { sequence: 0 }]);
    last.resolve({ kind: "end" });
  }
});

Deno.test("a restored ordered reader keeps nothing of the splits that it does not read again", async () => {
  const ordered = { behind: [3], startAt: 6 };
  await using bench = new ReaderBench({ total: 7, bufferBytesMax: 10_000, ordered });
  // Another consumer needs splits 4 and 5.
  const answers = [...splits(4, 6), ...splits(3, 4), ...splits(6, 7)];
  bench.addTask(() => answers.shift() ?? { kind: "end" });
  assertEquals(await bench.rest(), [
    "element 3.0",
    "split_end 3.1",
    "element 6.0",
    "split_end 6.1",
  ]);
  assertEquals(bench.feed.stats()?.bufferedBytes, 0);
});

Deno.test("an ordered reader whose tasks have all ended asks the dispatcher for others", async () => {
  await using bench = new ReaderBench({ total: 2, bufferBytesMax: 10_000 });
  const [first, second] = [[...splits(0, 1)], [...splits(1, 2)]];
  bench.addTask(() => {
    const next = first.shift();
    if (next === undefined && first.length === 0 && second.length === 2) {
      bench.addTask(() => second.shift() ?? { kind: "end" });
    }
    return next ?? { kind: "end" };
  });
  assertEquals(await bench.rest(), inOrder(2));
});

Deno.test("an ordered reader gives nothing before it knows the table of splits, and asks for it", async () => {
  for (const isExpected of [true, false]) {
    const told: string[] = [];
    await using bench = new ReaderBench({
      ...{ total: 1, bufferBytesMax: 10_000, refreshMs: 60_000 },
      ordered: {
        expectedDigest: isExpected ? DIGEST : "of other splits",
        onTable: (digest) => told.push(digest),
      },
    });
    // The splits are listed after the client learned of the task, and before it learns of them.
    bench.isListed = false;
    const answers = [...splits(0, 1)];
    bench.addTask(() => {
      bench.isListed = true;
      return answers.shift() ?? { kind: "end" };
    });
    const first = await Promise.resolve(bench.feed.take()).then(({ kind }) => kind, codeOf);
    const expected = isExpected ? ["element", [DIGEST]] : ["failed_precondition", []];
    assertEquals([first, told], expected, "a position keeps the digest of its own table");
  }
});

Deno.test("an ordered reader of no splits ends without any task", async () => {
  await using bench = new ReaderBench({ total: 0, bufferBytesMax: 10_000 });
  assertEquals(await bench.rest(), []);
});

Deno.test("an ordered reader keeps only the longest of overlapping passed runs", async () => {
  const passed = (index: number, count: number): ElementAnswer => {
    return { kind: "passed", place: { sequence: 0, split: 0, index }, count };
  };
  for (
    const runs of [
      [passed(1, 1), passed(0, 3), splitEnd(0, 3)],
      [passed(1, 1), passed(1, 3), passed(0, 1), splitEnd(0, 4)],
      [passed(1, 3), passed(1, 1), passed(0, 1), splitEnd(0, 4)],
    ]
  ) {
    const world = new SteppedWorld(() => Promise.reject(new Error("there is no journal")));
    const refreshMs = 1_000;
    await using bench = new ReaderBench({
      ...{ total: 2, bufferBytesMax: 10_000, refreshMs, world },
      // The first seven elements are those of other consumers.
      numConsumers: 8,
      ordered: { numbering: { first: 1, batchSize: null, carriedRows: 0 } },
    });
    const end = runs.at(-1) as { place: { index: number } };
    const missing = Promise.withResolvers<ElementAnswer>();
    bench.addTask(async ({ upTo }) => {
      const next = runs.shift() ?? await missing.promise;
      const isAhead = upTo === 0 && "place" in next && next.place!.sequence > 0;
      return isAhead ? { kind: "later", from: 1 } : next;
    });
    const fed: unknown[] = [];
    const rest = bench.rest().then((all) => fed.push(...all), (error) => fed.push(codeOf(error)));
    await settle();
    await world.advance(3 * refreshMs);
    const { report: { mark }, figures } = bench.heartbeats.at(-1)!;
    assertEquals([mark, figures!.headOfLineMs], [1, 0], "nothing waits for the second split");
    missing.resolve(splitEnd(1, 0));
    await rest;
    assertEquals(fed, [`split_end 0.${end.place.index}`, "split_end 1.0"]);
  }
});

Deno.test("an ordered reader reports whole splits, and those after a missing one", async () => {
  await using bench = new ReaderBench({ total: 4, bufferBytesMax: 10_000 });
  const missing = Promise.withResolvers<ElementAnswer>();
  const answers = [...splits(0, 1), ...splits(2, 3)];
  bench.addTask(() => answers.shift() ?? missing.promise);
  for (;;) {
    const said = bench.heartbeats.at(-1)?.report;
    if (said?.mark === 1 && said.done.length === 1) {
      assertEquals(said.done, [2]);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
});

Deno.test("an ordered reader backs off from a task that lacks a split, and asks at once for splits that it has", async () => {
  const { bench, world, refusedMs, answer, wanted } = distantBench();
  await using _ = bench;
  await settle();
  await world.advance(1_000);
  assertEquals(refusedMs, [0, 20, 60, 140, 300, 620, 940].flatMap((at) => [at, at]));
  answer();
  assertEquals(await bench.rest(), wanted);
  assertEquals(refusedMs.length, 14);
});

Deno.test("an ordered reader asks again at once for a lacked split when another task is gone", async () => {
  const { bench, world, refreshMs, refusedMs } = distantBench();
  await using _ = bench;
  await settle();
  await world.advance(refreshMs - 10);
  bench.removeTask(0);
  const before = refusedMs.length;
  await world.advance(20);
  assertEquals(refusedMs.slice(before), [refreshMs, refreshMs]);
});

Deno.test("an ordered reader reports its mark at once when no task has the next split", async () => {
  const { bench, world, refusedMs } = distantBench(3);
  await using _ = bench;
  await settle();
  await world.advance(1_000);
  assert(refusedMs.length > 10, "it has asked on and on");
  assertEquals(bench.heartbeats.map(({ report }) => report.mark), [0, 3]);
});

testInVirtualTime(
  "a reader tells what it has before all that is handed out beyond it has come, however little that is",
  async (time) => {
    for (const windowSplits of [1, 3, 16, 256]) {
      const total = 3 * windowSplits;
      const window = { total, bufferBytesMax: 1e9, refreshMs: 600_000, windowSplits };
      const world = time.world(`window of ${windowSplits}`);
      await using bench = new ReaderBench({ ...window, world });
      const items = [...splits(0, total)];
      // Like a dispatcher: a task gets no split beyond the window before the reader has more.
      bench.addTask(async () => {
        const next = items.shift() as (ElementAnswer & { place: { sequence: number } }) | undefined;
        if (next === undefined) return { kind: "end" };
        const { sequence } = next.place;
        await time.until(() => sequence < bench.heartbeats.at(-1)!.report.mark + windowSplits);
        return next;
      });
      assertEquals(await bench.rest(), inOrder(total));
      assert(time.nowMs < window.refreshMs, "no heartbeat came in its time");
    }
  },
);

Deno.test("an ordered reader does not visit all of its tasks for each element", async () => {
  const MapIterator = Object.getPrototypeOf(new Map().values()) as Iterator<unknown>;
  /** How many map entries are visited per element, with this many tasks that do not answer. */
  const looksPerElement = async (silent: number) => {
    const total = 200;
    const { next } = MapIterator;
    await using bench = new ReaderBench({ total, bufferBytesMax: 1e9, refreshMs: 600_000 });
    const items = [...splits(0, total)];
    const answered = Promise.withResolvers<ElementAnswer>();
    for (let i = 0; i < silent; i++) bench.addTask(() => answered.promise);
    bench.addTask(() => items.shift() ?? { kind: "end" });
    let looks = 0;
    MapIterator.next = function (this: Iterator<unknown>) {
      looks++;
      return next.call(this);
    };
    try {
      assertEquals(await bench.rest(), inOrder(total));
    } finally {
      MapIterator.next = next;
      answered.resolve({ kind: "end" });
    }
    return looks / total;
  };
  const few = await looksPerElement(2);
  const many = await looksPerElement(100);
  assert(many < few + 20, `${few} with 2 tasks, ${many} with 100`);
});

Deno.test("an ordered reader tells each task in one message which consumers have left, and repeats only what was refused", async () => {
  await using bench = new ReaderBench({ total: 1, bufferBytesMax: 10_000 });
  const silent = Promise.withResolvers<ElementAnswer>();
  for (let i = 0; i < 2; i++) bench.addTask(() => silent.promise);
  const heard = async () => {
    const { length } = bench.heartbeats;
    await until(() => bench.heartbeats.length > length + 3);
    return bench.leaves.splice(0).sort((a, b) => a.taskId - b.taskId);
  };
  bench.left = [1, 2];
  bench.refusals.push(new LeatError("unavailable", "The link is lost"));
  const [refused] = await until(() => bench.leaves.length > 0 && bench.leaves);
  const told = [{ taskId: 0, consumers: [1, 2] }, { taskId: 1, consumers: [1, 2] }];
  const repeated = { taskId: refused!.taskId, consumers: [1, 2] };
  assertEquals(await heard(), [...told, repeated].sort((a, b) => a.taskId - b.taskId));
  bench.left = [1, 2, 3];
  assertEquals(await heard(), [{ taskId: 0, consumers: [3] }, { taskId: 1, consumers: [3] }]);
  assertEquals(await heard(), []);
  silent.resolve({ kind: "end" });
});
