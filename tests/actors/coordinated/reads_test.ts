/** The coordinated-read scheduler as an actor, with a real task. */
import { Repeats } from "../../../actors/exactly_once/repeats.ts";
import { createReads } from "../../../actors/coordinated/reads.ts";
import { LeatError } from "../../../core/error.ts";
import { Dataset } from "../../../mod.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import type { Ref } from "../../../actors/runtime/ref.ts";
import type {
  ElementAnswer,
  ElementReaderProtocol,
  ElementSourceProtocol,
  RoundSourceProtocol,
} from "../../../actors/worker/protocol.ts";
import { testInVirtualTime } from "../../lib/virtual_time.ts";
import { opened, TaskBench } from "../lib/task_bench.ts";

function coordinated(dataset: Dataset<unknown>, numConsumers: number, skipAfterMs = 60_000) {
  const bench = new TaskBench(dataset);
  const reads = bench.spawn<RoundSourceProtocol>({
    name: "reads",
    create: (context) => createReads(context, { task: bench.task, numConsumers, skipAfterMs }),
  });
  const read = async (consumerIndex: number, round: number) =>
    opened(await bench.get(reads, consumerIndex, { consumerIndex, round }));
  return { bench, reads, read };
}

/** A task whose elements are numbers from 0, and the numbers of the requests that it got. */
function counted(bench: TaskBench) {
  const repeats = new Repeats(bench.system.world);
  const asked: number[] = [];
  const task = bench.spawn<ElementSourceProtocol>({
    name: "counted",
    create: () => ({
      handlers: {
        getElement(request, { source }) {
          asked.push(request.sequence);
          const place = new Payload(encodeMessage(request.sequence - 1));
          const asker = source as Ref<ElementReaderProtocol>;
          return repeats.answer(request, () => ({ kind: "element", element: place }), asker);
        },
        leave: () => null,
        stats: () => {
          throw new LeatError("unimplemented", "a source without figures");
        },
      },
    }),
  });
  return { task, asked };
}

Deno.test("reads gives consumer c element c of each round, in any order of requests", async () => {
  const { bench, read } = coordinated(Dataset.range(100).repeat(), 3);
  await using _ = bench;
  assertEquals([await read(2, 0), await read(0, 0), await read(1, 0)], [2, 0, 1]);
  assertEquals([await read(1, 5), await read(1, 6), await read(0, 5), await read(2, 5)], [
    4,
    7,
    3,
    5,
  ]);
});

Deno.test("reads frees a consumer's part once it has arrived, and no other part", async () => {
  const { bench } = coordinated(Dataset.range(100), 2);
  await using _ = bench;
  let reads!: ReturnType<typeof createReads>;
  bench.spawn<RoundSourceProtocol>({
    name: "freeing",
    create: (context) =>
      reads = createReads(context, { task: bench.task, numConsumers: 2, skipAfterMs: 60_000 }),
  });
  const { getElement } = reads.handlers;
  // A consumer on another node gets a copy of the answer.
  const meta = { source: { node: "far", path: "/reader" } } as Parameters<typeof getElement>[1];
  const get = (index: number, sequence: number) => {
    const round = { clientId: index, consumerIndex: index, round: sequence - 1 };
    return getElement({ ...round, sequence, acknowledged: sequence - 1 }, meta);
  };
  const parts = [await get(0, 1), await get(1, 1)];
  assertEquals(opened(await get(0, 1)), 0);
  assertEquals(opened(await get(0, 2)), 2);
  const lengths = parts.map((part) => "element" in part ? part.element.byteLength : undefined);
  assertEquals([lengths[0], opened(parts[1]!)], [0, 1]);
  assertEquals(opened(await get(1, 1)), 1);
});

Deno.test("reads acknowledges its task's answers so that the task can end", async () => {
  const { bench, reads, read } = coordinated(Dataset.range(2), 2);
  await using _ = bench;
  for (const expected of [0, "end"]) assertEquals(await read(0, expected === 0 ? 0 : 1), expected);
  const answer = await bench.system.ask(reads, "askAgain", null, { timeoutMs: 60_000 });
  assertEquals(answer, { acknowledged: 4 });
});

Deno.test("reads says that all is read when all consumers hold their rounds, or have left", async () => {
  const { bench, reads, read } = coordinated(Dataset.range(4), 2);
  await using _ = bench;
  const isRead = () => bench.system.ask(reads, "isRead", null, { timeoutMs: 60_000 });
  const confirm = (consumerIndex: number) =>
    bench.system.ask(reads, "confirm", { consumerIndex, round: 0 }, { timeoutMs: 60_000 });
  assertEquals(await read(0, 0), 0);
  assertEquals(await isRead(), false);
  assertEquals(await read(1, 0), 1);
  await Promise.all([confirm(0), confirm(1)]);
  assertEquals(await isRead(), false, "the next round is complete");
  for (const clientId of [0, 1]) {
    await bench.system.ask(reads, "leave", { clientId }, { timeoutMs: 60_000 });
  }
  assertEquals(await isRead(), true);
});

Deno.test("reads gives no element to two rounds that are requested at once", async () => {
  const { bench, read } = coordinated(Dataset.range(100).repeat(), 2);
  await using _ = bench;
  const asked = [0, 1, 2].flatMap((round) => [read(0, round), read(1, round)]);
  assertEquals(await Promise.all(asked), [0, 1, 2, 3, 4, 5]);
});

Deno.test("reads requests each element once, even with more consumers than a task keeps answers for", async () => {
  await using bench = new TaskBench(Dataset.range(1));
  const { task, asked } = counted(bench);
  const numConsumers = 3_000;
  const reads = bench.spawn<RoundSourceProtocol>({
    name: "reads",
    create: (context) => createReads(context, { task, numConsumers, skipAfterMs: 600_000 }),
  });
  const consumers = Array.from({ length: numConsumers }, (_, i) => i);
  for (const round of [0, 1]) {
    const given = await Promise.all(
      consumers.map((consumerIndex) => bench.get(reads, consumerIndex, { consumerIndex, round })),
    );
    assertEquals(given.map(opened), consumers.map((i) => round * numConsumers + i));
  }
  assertEquals(asked, Array.from(asked, (_, i) => i + 1));
});

Deno.test("reads takes nothing of its task before a consumer asks, because another may take its place", async () => {
  await using bench = new TaskBench(Dataset.range(1));
  const { task, asked } = counted(bench);
  const reads = bench.spawn<RoundSourceProtocol>({
    name: "reads",
    create: (context) => createReads(context, { task, numConsumers: 2, skipAfterMs: 60_000 }),
  });
  for (let i = 0; i < 3; i++) await bench.system.ask(reads, "stats", null, { timeoutMs: 60_000 });
  assertEquals(asked, []);
  const given = [0, 1].map((consumerIndex) =>
    bench.get(reads, consumerIndex, { consumerIndex, round: 0 })
  );
  assertEquals((await Promise.all(given)).map(opened), [0, 1]);
});

Deno.test("reads refuses a round long past, naming the newest one", async () => {
  const { bench, read } = coordinated(Dataset.range(100).repeat(), 2);
  await using _ = bench;
  await read(0, 700);
  const error = await assertRejects(() => read(1, 3), LeatError, "round 700");
  assertEquals(error.code, "failed_precondition");
});

Deno.test("reads serves a lost worker's round after later ones were requested", async () => {
  const { bench, read } = coordinated(Dataset.range(100).repeat(), 2);
  await using _ = bench;
  assertEquals([await read(0, 11), await read(1, 11)], [0, 1]);
  assertEquals([await read(1, 10), await read(0, 10)], [3, 2]);
});

Deno.test("reads skips a late round for all consumers and gives its elements to the next", async () => {
  await using bench = new TaskBench(Dataset.range(1));
  const { gate, read } = gated(bench, 10);
  assertEquals([await read(0, 0), await read(1, 0)], ["skip", "skip"]);
  gate.resolve();
  const rounds: unknown[] = [];
  for (let round = 1; rounds.length === 0; round++) {
    const pair = [await read(0, round), await read(1, round)];
    if (pair[0] !== "skip") rounds.push(pair);
  }
  assertEquals(rounds, [[0, 1]]);
});

Deno.test("reads tells a consumer whose round was passed while it waited the newest one", async () => {
  await using bench = new TaskBench(Dataset.range(1));
  const { reads, gate, read } = gated(bench, 60_000);
  const slow = assertRejects(() => read(0, 0), LeatError, "round 700 has been reached");
  const far = read(1, 700);
  // Answered after the two requests have come.
  await bench.system.ask(reads, "stats", null, { timeoutMs: 60_000 });
  gate.resolve();
  assertEquals((await slow).code, "failed_precondition");
  assertEquals(await far, 3);
});

Deno.test("reads refuses waiting rounds that it forgets, and gives them no elements", async () => {
  await using bench = new TaskBench(Dataset.range(1));
  const { gate, read } = gated(bench, 60_000);
  const first = read(0, 0);
  const dropped = [1, 2, 3].map((round) =>
    assertRejects(() => read(0, round), LeatError, "round 700 has been reached")
  );
  const last = read(0, 700);
  await Promise.all(dropped);
  gate.resolve();
  await assertRejects(() => first, LeatError, "round 700 has been reached");
  // The round that had begun took the first pair of elements.
  assertEquals(await last, 2);
});

/** Reads of two consumers, whose task gives nothing before the gate is open. */
function gated(bench: TaskBench, skipAfterMs: number) {
  const gate = Promise.withResolvers<void>();
  let produced = 0;
  const task = bench.spawn({
    name: "late",
    create: () => ({
      handlers: {
        async getElement(): Promise<ElementAnswer> {
          const element = new Payload(encodeMessage(produced++));
          await gate.promise;
          return { kind: "element", element };
        },
        leave: () => null,
        stats: () => {
          throw new LeatError("unimplemented", "a source without figures");
        },
      },
    }),
  });
  const reads = bench.spawn<RoundSourceProtocol>({
    name: "reads",
    create: (context) => createReads(context, { task, numConsumers: 2, skipAfterMs }),
  });
  const read = async (consumerIndex: number, round: number) =>
    opened(await bench.get(reads, consumerIndex, { consumerIndex, round }));
  return { reads, gate, read };
}

Deno.test("reads gives one element's refusal to its consumer, any other to its round, and continues after both", async () => {
  await using bench = new TaskBench(Dataset.range(1));
  const refusals = new Map([
    [3, new LeatError("resource_exhausted", "too large", { details: { bytes: 9, bytesMax: 8 } })],
    [6, new LeatError("permission_denied", "not yours")],
  ]);
  const refusing = bench.spawn({
    name: "refusing",
    create: () => ({
      handlers: {
        getElement({ sequence }): ElementAnswer {
          const refusal = refusals.get(sequence - 1);
          if (refusal !== undefined) throw refusal;
          return { kind: "element", element: new Payload(encodeMessage(sequence - 1)) };
        },
        leave: () => null,
        stats: () => {
          throw new LeatError("unimplemented", "a source without figures");
        },
      },
    }),
  });
  const reads = bench.spawn<RoundSourceProtocol>({
    name: "reads",
    create: (context) =>
      createReads(context, { task: refusing, numConsumers: 2, skipAfterMs: 60_000 }),
  });
  const read = (consumerIndex: number, round: number): Promise<unknown> =>
    bench.get(reads, consumerIndex, { consumerIndex, round })
      .then(opened, (error) => `refused: ${error.message}`);
  const rounds: unknown[] = [];
  for (let round = 0; round < 5; round++) {
    rounds.push(await Promise.all([read(0, round), read(1, round)]));
  }
  assertEquals(rounds, [
    [0, 1],
    [2, "too large"],
    [4, 5],
    ["refused: not yours", "refused: not yours"],
    [8, 9],
  ]);
});

testInVirtualTime("reads does not count a round refused in time as skipped", async (time) => {
  await using bench = new TaskBench(Dataset.range(1), { world: time.world("bench") });
  const gone = bench.spawn({
    name: "gone",
    create: () => ({
      handlers: {
        getElement(): ElementAnswer {
          throw new LeatError("not_found", "gone");
        },
        leave: () => null,
        stats: () => {
          throw new LeatError("unimplemented", "a source without figures");
        },
      },
    }),
  });
  const skipAfterMs = 500;
  const reads = bench.spawn<RoundSourceProtocol>({
    name: "reads",
    create: (context) => createReads(context, { task: gone, numConsumers: 1, skipAfterMs }),
  });
  await assertRejects(
    () => bench.get(reads, 0, { consumerIndex: 0, round: 0 }),
    LeatError,
    "gone",
  );
  await time.sleep(skipAfterMs + 100);
  const { skipped } = await bench.system.ask(reads, "stats", null, { timeoutMs: 60_000 });
  assertEquals(skipped, 0);
});

Deno.test("reads refuses a consumer index beyond the job's consumers", async () => {
  const { bench, read } = coordinated(Dataset.range(100).repeat(), 2);
  await using _ = bench;
  const error = await assertRejects(() => read(2, 0), LeatError, "2 consumers");
  assertEquals(error.code, "invalid_argument");
});

Deno.test("reads keeps only elements that consumers have not fetched", async () => {
  const bytes = 10_000;
  const dataset = Dataset.range(100).repeat().map((_x, { bytes }) => new Uint8Array(bytes), {
    captures: { bytes },
  });
  const { bench, reads, read } = coordinated(dataset, 2);
  await using _ = bench;
  const heldBytes = async () =>
    (await bench.system.ask(reads, "stats", null, { timeoutMs: 60_000 })).bufferedBytes;
  for (let round = 0; round < 20; round++) await Promise.all([read(0, round), read(1, round)]);
  assertEquals(await heldBytes(), 0);
  for (let round = 20; round < 25; round++) await read(0, round);
  const held = await heldBytes();
  assertEquals(held >= 5 * bytes && held < 6 * bytes, true, `${held} bytes`);
  const error = await assertRejects(() => read(0, 24), LeatError, "which it was given");
  assertEquals(error.code, "failed_precondition");
});

Deno.test("reads confirms a round when all consumers that take part hold it", async () => {
  const { bench, reads, read } = coordinated(Dataset.range(100).repeat(), 3);
  await using _ = bench;
  const heard: string[] = [];
  const confirm = (consumerIndex: number, round: number, absent?: number[]) =>
    bench.system.ask(
      reads,
      "confirm",
      { consumerIndex, round, ...(absent === undefined ? {} : { absent }) },
      { timeoutMs: 60_000 },
    ).then(() => heard.push(`${consumerIndex} of ${round}`));
  for (const round of [0, 1]) await Promise.all([0, 1, 2].map((index) => read(index, round)));
  const first = [confirm(0, 0), confirm(1, 0)];
  const alone = assertRejects(
    () => confirm(0, 1),
    LeatError,
    "confirmed again that it holds round 1",
  );
  await confirm(2, 0);
  await Promise.all(first);
  assertEquals(heard.toSorted(), ["0 of 0", "1 of 0", "2 of 0"]);
  // One of the others is gone: consumers that know it do not wait for it.
  await confirm(1, 1, [2]);
  assertEquals(heard.length, 4);
  await confirm(0, 1, [2]);
  assertEquals(heard.length, 5);
  await confirm(2, 1);
  await alone;
  await confirm(2, 1);
  const error = await assertRejects(() => confirm(1, 7), LeatError, "round 1 has been reached");
  assertEquals(error.code, "failed_precondition");
  await assertRejects(() => confirm(3, 1), LeatError, "3 consumers");
  await assertRejects(() => confirm(0, 1, [9]), LeatError, "Consumer index 9");
});

/** Rounds of two elements of 10,000 bytes, of which 20,000 may wait for a lagging consumer. */
function bounded(numConsumers = 2) {
  const dataset = Dataset.range(100).repeat().map((_x, { bytes }) => new Uint8Array(bytes), {
    captures: { bytes: 10_000 },
  });
  const bench = new TaskBench(dataset);
  const reads = bench.spawn<RoundSourceProtocol>({
    name: "reads",
    create: (context) =>
      createReads(context, {
        task: bench.task,
        numConsumers,
        skipAfterMs: 60_000,
        heldBytesMax: 20_000,
      }),
  });
  const answered: string[] = [];
  const read = async (consumerIndex: number, round: number, more = {}) => {
    opened(await bench.get(reads, consumerIndex, { consumerIndex, round, ...more }));
    answered.push(`${consumerIndex} of ${round}`);
  };
  const heldBytes = async () =>
    (await bench.system.ask(reads, "stats", null, { timeoutMs: 60_000 })).bufferedBytes;
  return { bench, reads, read, answered, heldBytes };
}

Deno.test("reads begins no round while too many bytes wait for a lagging consumer", async () => {
  const { bench, read, answered, heldBytes } = bounded();
  await using _ = bench;
  await read(0, 0);
  await read(0, 1);
  const next = read(0, 2);
  // The lagging one's request is answered after everything that could be done before.
  assertEquals(await heldBytes() < 21_000, true);
  assertEquals(answered, ["0 of 0", "0 of 1"]);
  await read(1, 0);
  await next;
  assertEquals(answered.slice(2).toSorted(), ["0 of 2", "1 of 0"]);
});

Deno.test("reads refuses a confirmation with which its round is forgotten", async () => {
  const { bench, reads, read } = bounded(3);
  await using _ = bench;
  await read(0, 0);
  // No memory is left for these, so that rounds which nobody wants are forgotten.
  const later = [read(0, 5, { floor: 5 }), read(2, 5, { floor: 5 })];
  const request = { consumerIndex: 0, round: 0, absent: [1] };
  const confirmed = () => bench.system.ask(reads, "confirm", request, { timeoutMs: 60_000 });
  assertEquals(
    (await assertRejects(confirmed, LeatError, "Round 0 is over")).code,
    "failed_precondition",
  );
  await Promise.all(later);
});

Deno.test("reads begins a round earlier than the waiting ones, however many bytes wait", async () => {
  const { bench, read, answered } = bounded();
  await using _ = bench;
  await read(0, 10);
  await read(0, 11);
  await Promise.all([read(0, 9), read(1, 9)]);
  assertEquals(answered.length, 4);
});

Deno.test("reads keeps no bytes for absent consumers or unwanted rounds", async () => {
  const { bench, read, answered } = bounded();
  await using _ = bench;
  await read(0, 0);
  await read(0, 1);
  await read(0, 2, { floor: 2, absent: [1] });
  await read(0, 3, { floor: 2, absent: [1] });
  // The other has come back, and begins later.
  await Promise.all([read(0, 5, { floor: 5 }), read(1, 5, { floor: 5 })]);
  assertEquals(answered.length, 6);
});

Deno.test("reads notes the absent consumers of a request that waits its turn at once, to keep no list", async () => {
  const { bench, reads, read } = bounded();
  await using _ = bench;
  await read(0, 0);
  await read(0, 1);
  const next = read(0, 2);
  const early = { clientId: 0, sequence: 5, acknowledged: 2, consumerIndex: 0, round: 3 };
  bench.system.ask(reads, "getElement", { ...early, floor: 2, absent: [1] }, { timeoutMs: 60_000 })
    .catch(() => {});
  // There is room now: what waited for the absent one is dropped.
  await next;
});
