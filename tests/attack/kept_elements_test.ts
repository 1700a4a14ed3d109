/** A client must not make a worker keep elements, or answers, without bound. */
import { createCache } from "../../actors/cache/cache.ts";
import { createReads } from "../../actors/coordinated/reads.ts";
import { ABSENT_BYTES_MAX, Rounds } from "../../actors/coordinated/rounds.ts";
import { KeptAnswers } from "../../actors/exactly_once/kept_answers.ts";
import {
  ALL_UNACKNOWLEDGED_BYTES_MAX,
  PRESSED_IDLE_MS,
  Repeats,
  SOURCE_BYTES_MAX,
  SOURCE_CLIENTS_MAX,
} from "../../actors/exactly_once/repeats.ts";
import { KEPT_BYTES_MAX } from "../../actors/runtime/asking/answers.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { Identity } from "../../actors/runtime/identity.ts";
import type { FencedRef } from "../../actors/runtime/ref.ts";
import type { World } from "../../actors/runtime/world.ts";
import type {
  CacheProtocol,
  ElementAnswer,
  ElementSourceProtocol,
  GetElementRequest,
  RoundSourceProtocol,
} from "../../actors/worker/protocol.ts";
import type { RunnerFactory } from "../../actors/worker/runner/runner.ts";
import { Dataset, LeatError } from "../../mod.ts";
import { inlinePair } from "../../transport/inline.ts";
import { Payload } from "../../transport/payload.ts";
import { TaskBench } from "../actors/lib/task_bench.ts";
import { settle, TestNode } from "../actors/runtime/nodes.ts";
import { assert, assertEquals, assertThrows } from "../assert.ts";
import { until } from "../lib/until.ts";

const MIB = 2 ** 20;
const asker = { node: "reader", path: "/client" };
const SIZE = 16 * MIB;

/** One memory for all elements of a test. */
const memory = new SharedArrayBuffer(64 * MIB);

function large(byteLength = SIZE): ElementAnswer {
  return { kind: "element", element: new Payload(new Uint8Array(memory, 0, byteLength)) };
}

/** Asks as ever more clients, until even the first request of one is refused. */
function fill(repeats: Repeats): number {
  let kept = 0;
  const isGiven = (clientId: number, sequence: number) => {
    try {
      repeats.answer({ clientId, sequence, acknowledged: 0 }, () => large(), asker);
    } catch (error) {
      assertEquals(LeatError.from(error).code, "resource_exhausted");
      return false;
    }
    kept += SIZE;
    return true;
  };
  for (let clientId = 0; isGiven(clientId, 1); clientId++) {
    for (let sequence = 2; sequence <= 20 && isGiven(clientId, sequence);) sequence++;
  }
  return kept;
}

Deno.test("one limit bounds what a task keeps for all invented clients together", () => {
  const world = { nowMs: () => 0 } as World;
  const repeats = new Repeats(world);
  assert(fill(repeats) <= SOURCE_BYTES_MAX);
  assert(repeats.isFull);
  const first = { clientId: 0, sequence: 1, acknowledged: 0 };
  const repeated = repeats.answer(first, () => large(1), asker) as { readonly element: Payload };
  assertEquals(repeated.element.byteLength, SIZE, "what was given is repeated");
  // Who acknowledges is served, even by a request that was refused.
  const next = { clientId: 0, sequence: 21, acknowledged: 20 };
  assertEquals((repeats.answer(next, () => large(), asker) as ElementAnswer).kind, "element");
});

Deno.test("a client that has acknowledged all gets one beyond the limit, as a consumer of a round", () => {
  const repeats = new Repeats({ nowMs: () => 0 } as World);
  const round = (sequence: number) => {
    for (let clientId = 0; clientId < 200; clientId++) {
      const request = { clientId, sequence, acknowledged: sequence - 1 };
      repeats.answer(request, () => large(), asker);
    }
  };
  for (const sequence of [1, 2, 3]) round(sequence);
  assert(repeats.isFull);
});

Deno.test("beyond the limit a request that came early is refused, and not the one before it", () => {
  const repeats = new Repeats({ nowMs: () => 0 } as World);
  for (let clientId = 1; !repeats.isFull; clientId++) {
    repeats.answer({ clientId, sequence: 1, acknowledged: 0 }, () => large(), asker);
  }
  const ask = (sequence: number) =>
    repeats.answer({ clientId: 0, sequence, acknowledged: 0 }, () => large(), asker);
  assertThrows(() => ask(3), LeatError, "Ask again later");
  assertEquals((ask(1) as ElementAnswer).kind, "element");
});

Deno.test("elements of clients that ended keep others waiting for minutes at most", () => {
  let nowMs = 0;
  const repeats = new Repeats({ nowMs: () => nowMs } as World);
  fill(repeats);
  const alive = (sequence: number) => ({ clientId: -1, sequence, acknowledged: sequence - 1 });
  assertThrows(() => repeats.answer(alive(1), () => large(), asker), LeatError);
  nowMs += PRESSED_IDLE_MS + 1;
  assertEquals((repeats.answer(alive(1), () => large(), asker) as ElementAnswer).kind, "element");
  assertEquals(repeats.clients, 1);
});

Deno.test("at the limit, clients that ended while they waited are forgotten, and live ones are not", async () => {
  let nowMs = 0;
  const ended: string[] = [];
  const onEnded = (reader: string) => void ended.push(reader.split(" ")[0]!);
  const repeats = new Repeats({ nowMs: () => nowMs } as World, { onEnded });
  const never = new Promise<ElementAnswer>(() => {});
  const waiting = (clientId: number) =>
    repeats.answer({ clientId, sequence: 1, acknowledged: 0 }, () => never, asker) as Promise<
      ElementAnswer
    >;
  const dead = waiting(-1);
  const alive = waiting(-2);
  alive.catch(() => {});
  fill(repeats);
  assert(repeats.isAtLimit);
  nowMs += PRESSED_IDLE_MS - 1;
  waiting(-2).catch(() => {});
  nowMs += 2_000;
  const other = { clientId: -3, sequence: 1, acknowledged: 0 };
  assertEquals((repeats.answer(other, () => large(), asker) as ElementAnswer).kind, "element");
  assert(!repeats.isAtLimit);
  assertEquals(LeatError.from(await dead.catch((error) => error)).code, "aborted");
  assert(ended.includes("-1") && !ended.includes("-2"));
  // What it asks for after all, it gets.
  const late = { clientId: -1, sequence: 1, acknowledged: 0 };
  assertEquals((repeats.answer(late, () => large(), asker) as ElementAnswer).kind, "element");
});

Deno.test("an element that a cache gives to many clients counts once", () => {
  const repeats = new Repeats({ nowMs: () => 0 } as World);
  const same = large();
  for (let clientId = 0; clientId < 200; clientId++) {
    repeats.answer({ clientId, sequence: 1, acknowledged: 0 }, () => same, asker);
  }
  assert(!repeats.isFull);
  for (let clientId = 0; clientId < 200; clientId++) {
    repeats.answer({ clientId, sequence: 2, acknowledged: 1 }, () => same, asker);
  }
  assert(!repeats.isFull);
});

Deno.test("a failed element counts with its texts, unacknowledged and in a round", () => {
  const cause = { code: "unknown" as const, message: "x".repeat(100_000), details: { a: ["y"] } };
  const error = { code: "unknown" as const, message: "x".repeat(100_000), cause };
  const answer: ElementAnswer = { kind: "error", error };
  const kept = new KeptAnswers();
  kept.add(answer);
  assert(kept.bytes > 400_000, `${kept.bytes}`);
  kept.remove(answer);
  assertEquals(kept.bytes, 0);
  const rounds = new Rounds(1);
  const round = rounds.add(0, Promise.resolve());
  rounds.fill(round, [answer]);
  assert(rounds.bytes > 400_000, `${rounds.bytes}`);
  rounds.give(round, 0);
  assertEquals(rounds.bytes, 0);
});

Deno.test("confirmations that each name other absent consumers are refused at a limit of bytes", () => {
  const CONSUMERS = 65_536;
  const rounds = new Rounds(CONSUMERS);
  const round = rounds.add(0, Promise.resolve());
  let refused: LeatError | undefined;
  let kept = 0;
  for (let index = 1; index < 2_000 && refused === undefined; index++) {
    const absent = Array.from({ length: 500 }, (_, i) => CONSUMERS - 1 - 17 * i - index);
    try {
      rounds.confirm(round, index, absent)!.catch(() => {});
      kept++;
    } catch (error) {
      refused = LeatError.from(error);
    }
  }
  assertEquals(refused?.code, "resource_exhausted");
  assert(rounds.absentBytes <= ABSENT_BYTES_MAX && kept > 100, `${kept} of them`);
  // Those who know of the same absent ones share what is kept of them.
  const bytes = rounds.absentBytes;
  for (let index = 2_000; index < 3_000; index++) {
    const absent = Array.from({ length: 500 }, (_, i) => CONSUMERS - 1 - 17 * i - 1);
    rounds.confirm(round, index, absent)!.catch(() => {});
  }
  assertEquals(rounds.absentBytes, bytes);
});

Deno.test("a task has a bounded number of clients", () => {
  let nowMs = 0;
  const repeats = new Repeats({ nowMs: () => nowMs } as World);
  const ask = (clientId: number) =>
    repeats.answer({ clientId, sequence: 1, acknowledged: 0 }, () => ({ kind: "end" }), asker);
  for (let clientId = 0; clientId < SOURCE_CLIENTS_MAX; clientId++) ask(clientId);
  const error = assertThrows(() => ask(SOURCE_CLIENTS_MAX), LeatError);
  assertEquals(error.code, "resource_exhausted");
  ask(0);
  nowMs += PRESSED_IDLE_MS + 1;
  ask(SOURCE_CLIENTS_MAX);
});

/** What clients read, and what a request to it says besides. */
interface Source {
  readonly name: string;
  /** Kept bytes at which it produces no more. */
  readonly bytesMax?: number;
  readonly ordered?: boolean;
  readonly sharing?: boolean;
  spawn(bench: TaskBench): FencedRef<ElementSourceProtocol>;
  wish?(clientId: number): Partial<GetElementRequest>;
}

const SOURCES: readonly Source[] = [
  {
    name: "a task whose clients acknowledge nothing produces no more, and goes on when some leave",
    bytesMax: ALL_UNACKNOWLEDGED_BYTES_MAX,
    spawn: ({ task }) => task,
  },
  {
    name: "an ordered task whose readers acknowledge nothing produces no more, until some leave",
    ordered: true,
    spawn: ({ task }) => task,
  },
  {
    name: "a cache whose clients acknowledge nothing fetches no more, until some leave",
    sharing: true,
    spawn: (bench) =>
      bench.spawn<CacheProtocol>({
        name: "cache",
        create: (context) =>
          createCache(context, {
            task: bench.task,
            windowBytesMax: 256 * MIB,
            elementBytesMax: 256 * MIB,
          }),
      }),
    wish: () => ({ trainerId: "one" }),
  },
  {
    name: "a scheduler whose consumers acknowledge nothing begins no round, until some leave",
    spawn: (bench) =>
      bench.spawn<RoundSourceProtocol>({
        name: "reads",
        create: (context) =>
          createReads(context, { task: bench.task, numConsumers: 5, skipAfterMs: 600_000 }),
      }),
    wish: (clientId) => ({ consumerIndex: clientId % 5, round: Math.floor(clientId / 5) }),
  },
];

for (const source of SOURCES) {
  const { name, bytesMax = SOURCE_BYTES_MAX, ordered = false, sharing = false } = source;
  Deno.test(name, async () => {
    const frame = new Uint8Array(memory);
    const runner = {
      bytesRead: 0,
      next: () => Promise.resolve({ kind: "element" as const, frame }),
      dispose: () => {},
    };
    const runnersOf = (runners: RunnerFactory): RunnerFactory => ({
      start: () => runner,
      listSplits: (graph) => runners.listSplits(graph),
      close: () => runners.close(),
    });
    await using bench = new TaskBench(Dataset.range(1), { ordered, sharing, runnersOf });
    const ref = source.spawn(bench);
    const given: number[] = [];
    const mayLeave = Promise.withResolvers<void>();
    // All of them are accepted, as nothing is kept yet.
    const asked = Array.from({ length: 100 }, async (_, clientId) => {
      const request = { clientId, sequence: 1, acknowledged: 0, ...source.wish?.(clientId) };
      await bench.system.ask(ref, "getElement", request, { timeoutMs: 600_000 });
      given.push(clientId);
      await mayLeave.promise;
      await bench.system.ask(ref, "leave", { clientId }, { timeoutMs: 60_000 });
    });
    for (const one of asked) one.catch(() => {});
    const most = bytesMax / frame.byteLength;
    await until(() => given.length >= most);
    await settle(100);
    assert(given.length <= most + 10, `${given.length} elements of 64 MiB were given`);
    mayLeave.resolve();
    await Promise.all(asked);
  });
}

const TEAM: Identity = { name: "team", role: "client" };

Deno.test("answers that their asker never settles are kept up to a limit; then its requests are refused", async () => {
  await using node = new TestNode("node");
  const { world } = node.system;
  let calls = 0;
  const target = node.system.spawn<{ echo(value: unknown): unknown }>({
    name: "probe",
    create: () => ({
      access: { echo: ["client"] },
      handlers: { echo: (value) => (calls++, value) },
    }),
  });
  const remote = { node: "attacker", incarnation: "1" };
  const [link, end] = inlinePair(world, remote, world, node.system.id);
  node.system.attach(
    new Proxy(end, {
      get(of, key) {
        if (key === "identity") return TEAM;
        const value = Reflect.get(of, key);
        return typeof value === "function" ? value.bind(of) : value;
      },
    }),
  );
  const answers = new Map<number, Envelope>();
  link.start((envelope) => {
    if ("id" in envelope) answers.set(envelope.id, envelope);
  });
  let number = 0;
  const ask = async (id: number, value: unknown): Promise<Envelope> => {
    const source = { node: "attacker", path: "/x", incarnation: "1-1" };
    answers.delete(id);
    link.send({
      ...{ kind: "ask", source, target, number: ++number, id, method: "echo", body: value },
      ...{ timeoutMs: 60_000, settledBelow: 0 },
    });
    return await until(() => answers.get(id) ?? false, 0);
  };
  const eighth = new Payload(new Uint8Array(KEPT_BYTES_MAX / 8));
  for (let id = 1; id <= 20; id++) assertEquals((await ask(id, eighth)).kind, "reply");
  assertEquals((await ask(1, null)).kind, "reply", "it is kept");
  const late = await ask(20, null);
  assert(late.kind === "failure");
  assertEquals(late.error.code, "aborted");
  assertEquals(calls, 20, "no repetition was handled again");
});
