/**
 * Workers that answer a trainer's requests for elements with answers of other modes or of no request.
 * The trainer ends the stream with an error that names the worker, or asks again slowly, and says so.
 */
import { type ClientOptions, createClient } from "../../actors/client/client.ts";
import { Feed } from "../../actors/client/feed.ts";
import type { ClientProtocol } from "../../actors/client/protocol.ts";
import { dispatcherAt, type DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import type {
  ElementAnswer,
  ElementSourceProtocol,
  GetElementRequest,
} from "../../actors/worker/protocol.ts";
import { provideIterators } from "../../actors/client/distributed_iterator.ts";
import { Dataset, LeatError } from "../../mod.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { InlineHub } from "../../platform/nodes/inline_hub.ts";
import { Payload } from "../../transport/payload.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { runInVirtualTime, testInVirtualTime, type VirtualTime } from "../lib/virtual_time.ts";

type Answer = (request: GetElementRequest) => ElementAnswer | Promise<ElementAnswer>;

/** After so many requests the worker answers no more: a reader that spins must not stop the clock. */
const ASKED_MAX = 5_000;

const ROUNDS = {
  ...{ kind: "rounds", absent: [] },
  schedules: [{ version: 1, fromRound: 0, taskIds: [0] }],
};
const ORDERED = {
  ...{ kind: "ordered", windowSplits: 100, left: [] },
  table: { total: 5, digest: "d" },
};

/** How a trainer reads. */
const MODES = {
  any: { options: {}, parameters: { processingMode: "DYNAMIC" }, news: undefined },
  rounds: {
    options: { consumerIndex: 0 },
    parameters: { processingMode: "OFF", numConsumers: 2 },
    news: ROUNDS,
  },
  ordered: { options: {}, parameters: { processingMode: "DETERMINISTIC" }, news: ORDERED },
  consumer: {
    options: {
      consumerIndex: 1,
      ordered: { numbering: { first: 0, batchSize: null, carriedRows: 0 } },
    },
    parameters: { processingMode: "DETERMINISTIC", numConsumers: 4 },
    news: ORDERED,
  },
} as const;

type Mode = keyof typeof MODES;

/** A trainer, its dispatcher, and one worker. */
class Bench implements AsyncDisposable {
  readonly feed = new Feed();
  readonly warnings: string[] = [];
  asked = 0;
  heartbeats = 0;
  readonly #systems: ActorSystem[];

  constructor(time: VirtualTime, mode: Mode, answer: Answer, news: object = {}) {
    const hub = new InlineHub();
    const log = (level: string, line: string) => level === "warn" && this.warnings.push(line);
    this.#systems = ["trainer", "host"].map((node) =>
      new ActorSystem({
        ...{ node, connector: hub.connector },
        world: Object.assign(time.world(node), { log }),
      })
    );
    const [trainer, host] = this.#systems as [ActorSystem, ActorSystem];
    for (const system of this.#systems) hub.add(system);
    const source = host.spawn<ElementSourceProtocol>({
      name: "task",
      create: () => ({
        handlers: {
          getElement: (request: GetElementRequest) =>
            ++this.asked > ASKED_MAX ? new Promise<never>(() => {}) : answer(request),
          ...{ leave: () => null, stats: () => ({}), confirm: () => null },
        } as never,
      }),
    });
    const { options, parameters, news: modeNews } = MODES[mode];
    trainer.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: () => ({
        handlers: {
          openIteration: () => ({ jobId: 1, iterationId: 1, clientId: 1, clusterId: "c" }),
          clientHeartbeat: () => {
            this.heartbeats++;
            if (this.heartbeats > ASKED_MAX) return new Promise<never>(() => {});
            return {
              kind: "whole",
              tasks: [{ taskId: 0, worker: "w", source }],
              finished: false,
              ...(modeNews === undefined ? {} : { news: modeNews }),
              ...news,
            };
          },
          releaseClient: () => null,
        } as never,
      }),
    });
    trainer.spawn<ClientProtocol>({
      name: "client",
      create: (context) =>
        createClient(context, {
          ...options,
          dispatcher: dispatcherAt("trainer"),
          dataset: { datasetId: "d" },
          parameters: { sharing: false, ...parameters },
          repetition: 0,
        } as ClientOptions, this.feed),
    });
  }

  /** Waits for an element, of which nothing is expected, as long as this bench lasts. */
  wait(): void {
    Promise.resolve(this.feed.take()).catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const system of this.#systems) await system.stop();
  }
}

const element = new Payload(new Uint8Array(8));
const place = { sequence: 0, split: 0, index: 0 };
const inSplit = (sequence: number) => ({ ...place, sequence });
const passed = (count: number, at = place): ElementAnswer => ({ kind: "passed", place: at, count });

/** Answers that no worker gives in a mode. */
const FORGED: readonly (readonly [Mode, ElementAnswer])[] = [
  ["any", { kind: "skip" }],
  ["any", { kind: "remainder", element, place }],
  ["any", passed(1)],
  ["any", { kind: "split_end", place }],
  ["rounds", { kind: "later" }],
  ["rounds", { kind: "remainder", element, place }],
  ["rounds", passed(1)],
  ["rounds", { kind: "split_end", place }],
  ["ordered", { kind: "skip" }],
  ["ordered", { kind: "element", element }],
  ["ordered", { kind: "element", element, place: inSplit(5) }],
  ["ordered", { kind: "later" }],
  ["ordered", passed(1)],
  ["consumer", { kind: "later", from: 0 }],
  ["consumer", passed(2)],
  ["consumer", passed(4, { ...place, index: 2 })],
  ["consumer", passed(0)],
  ["consumer", passed(1, { ...place, index: 1 })],
  ["consumer", passed(Number.MAX_SAFE_INTEGER, { ...place, index: Number.MAX_SAFE_INTEGER })],
];

Deno.test("an answer that no worker gives in a mode ends the stream with data_loss that names the worker", async () => {
  for (const [mode, answer] of FORGED) {
    await runInVirtualTime(async (time) => {
      await using bench = new Bench(time, mode, () => answer);
      const taken = assertRejects(async () => await bench.feed.take(), LeatError);
      taken.catch(() => {});
      // A reader that drops the answer would wait for ever.
      const error = await Promise.race([taken, time.sleep(60_000)]);
      assertEquals(error?.code, "data_loss", `${mode}: ${answer.kind}`);
      assertStringIncludes(error!.message, 'Worker "w" at host (task 0) broke the protocol');
      assertStringIncludes(error!.message, "same version of Leat");
    });
  }
});

testInVirtualTime(
  "elements that are another consumer's may be left out, as many as there are",
  async (time) => {
    const items: ElementAnswer[] = [
      passed(1),
      { kind: "element", element, place: { ...place, index: 1 } },
      passed(3, { ...place, index: 2 }),
      { kind: "element", element, place: { ...place, index: 5 } },
    ];
    await using bench = new Bench(
      time,
      "consumer",
      () => items.shift() ?? new Promise<never>(() => {}),
    );
    for (let i = 0; i < 2; i++) assertEquals((await bench.feed.take()).kind, "element");
  },
);

testInVirtualTime(
  "a worker that answers a reader of any element with `later` at once is asked slowly",
  async (time) => {
    // While no element has come, requests limit their wait.
    await using bench = new Bench(time, "any", () => ({ kind: "later" }));
    bench.wait();
    await time.sleep(60_000);
    assert(bench.asked < ASKED_MAX, `it was asked ${bench.asked} times`);
  },
);

Deno.test("a worker that cancels all requests is asked slowly, and the trainer says so", async () => {
  for (const mode of Object.keys(MODES) as Mode[]) {
    await runInVirtualTime(async (time) => {
      await using bench = new Bench(time, mode, () => {
        throw new LeatError("cancelled", "no");
      });
      bench.wait();
      await time.sleep(60_000);
      assert(bench.asked > 10 && bench.asked < ASKED_MAX, `${mode}: ${bench.asked} requests`);
      assertStringIncludes(bench.warnings.at(-1) ?? "", 'worker "w" at host: no', mode);
    });
  }
});

Deno.test("a client whose workers have sent the end of tasks that the dispatcher lists says so each minute", async () => {
  for (const mode of ["any", "ordered"] as const) {
    for (const code of [undefined, "not_found", "failed_precondition"] as const) {
      await runInVirtualTime(async (time) => {
        await using bench = new Bench(time, mode, async () => {
          // Several requests are open, and their answers arrive one after the other.
          await time.sleep(10 * bench.asked);
          if (code !== undefined) throw new LeatError(code, "no task");
          return { kind: "end" };
        });
        bench.wait();
        await time.sleep(150_000);
        assertEquals(bench.warnings.length, 3, `${mode} ${code}`);
        assertStringIncludes(bench.warnings[0]!, "makes no progress. All 1 workers");
        assertStringIncludes(bench.warnings[0]!, "If no other worker still works for it");
        assertStringIncludes(bench.warnings[0]!, 'worker "w" at host');
      });
    }
  }
});

testInVirtualTime(
  "a client whose dispatcher says that it times out at once sends heartbeats with pauses",
  async (time) => {
    await using bench = new Bench(time, "any", () => new Promise<never>(() => {}), {
      timeoutMs: 0,
    });
    bench.wait();
    await time.sleep(10_000);
    assert(bench.heartbeats < ASKED_MAX, `${bench.heartbeats} heartbeats`);
  },
);

Deno.test("a refusal of a worker, also with an unknown code, ends the stream with the worker's name", async () => {
  for (const mode of ["any", "ordered"] as const) {
    for (const code of ["internal", "no such code"]) {
      await runInVirtualTime(async (time) => {
        await using bench = new Bench(time, mode, () => {
          throw new LeatError(code as "internal", "no");
        });
        const error = await assertRejects(async () => await bench.feed.take(), LeatError);
        assertEquals(error.code, code === "internal" ? code : "unknown", mode);
        assertStringIncludes(error.message, 'Worker "w" at host (task 0) cannot be read: no');
      });
    }
  }
});

testInVirtualTime(
  "an element that cannot be decoded is an error that names its worker",
  async (time) => {
    await using bench = new Bench(time, "any", () => ({ kind: "element", element }));
    const item = await bench.feed.take();
    assert(item.kind === "element");
    const error = await assertRejects(async () => await bench.feed.decode(item), LeatError);
    assertStringIncludes(error.message, 'Worker "w" at host (task 0) sent an element that cannot');
    assertStringIncludes(error.message, "same version of Leat");
  },
);

const FAULTY_ROWS = 'Worker "w" at host sent an element that cannot be read: its split can leave';

Deno.test("rows that no split leaves over end a DETERMINISTIC stream, and are not kept", async () => {
  const numbers = Dataset.range(100).map((x) => x + 1);
  const rows = (count: number) => ({ rows: Array.from({ length: count }, (_, i) => i) });
  for (
    const [dataset, left, fault] of [
      [numbers, rows(1), FAULTY_ROWS],
      [numbers.batch(4), rows(4), FAULTY_ROWS],
      [numbers.batch(4), { other: 1 }, "neither a batch nor rows"],
    ] as const
  ) {
    provideIterators({
      read: (_service, _credentials, _options, feed) => {
        const element = new Payload(encodeMessage(left));
        feed.push({ kind: "remainder", element, place, sender: 'Worker "w" at host' });
        return () => {};
      },
      dataset: () => Promise.reject(new Error("no dataset has an id")),
    });
    const read = dataset.distribute({ service: "ws://host:1", processingMode: "DETERMINISTIC" });
    await using iterator = read.iterator();
    const error = await assertRejects(async () => await iterator.next(), LeatError);
    assertStringIncludes(error.message, fault);
    assertEquals((await iterator.next()).done, true, "nothing comes after the failure");
  }
});
