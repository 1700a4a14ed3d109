/**
 * Ordered tasks: the order in which they produce and give splits, their answers to a reader whose
 * window is full, and what remains of a split when a runner dies.
 */
import { dispatcherAt, type DispatcherProtocol } from "../../../../actors/dispatcher/protocol.ts";
import type { AnswerOf, RequestOf } from "../../../../actors/runtime/protocol.ts";
import type { FencedRef } from "../../../../actors/runtime/ref.ts";
import { ActorSystem } from "../../../../actors/runtime/system.ts";
import { createOrderedTask } from "../../../../actors/worker/tasks/ordered_task.ts";
import type { Actor } from "../../../../actors/runtime/actor.ts";
import type { ElementAnswer, GetElementRequest } from "../../../../actors/worker/protocol.ts";
import type { OnlySplit, Runner, RunnerOutcome } from "../../../../actors/worker/runner/runner.ts";
import {
  ACKNOWLEDGED_WITHIN_MS,
  AHEAD_BYTES_MAX,
  type TaskProtocol,
} from "../../../../actors/worker/tasks/task.ts";
import { LeatError, type LeatErrorCode } from "../../../../core/error.ts";
import { DenoWorld } from "../../../../platform/deno_world.ts";
import { assert, assertEquals, assertRejects } from "../../../assert.ts";
import { until } from "../../../lib/until.ts";
import { testInVirtualTime, type VirtualTime } from "../../../lib/virtual_time.ts";

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;
type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;

const PATIENCE = { timeoutMs: 60_000 };
const ELEMENT: RunnerOutcome = { kind: "element", frame: new Uint8Array(1) };
const END: RunnerOutcome = { kind: "end" };
/** A reader on another node. */
const FAR = { node: "far", path: "/reader" };

interface Step {
  readonly runner: number;
  readonly split: number;
  readonly grant: number;
  readonly answer: PromiseWithResolvers<RunnerOutcome>;
}

/** A task whose dispatcher and runners act as the test says. */
class OrderedBench implements AsyncDisposable {
  readonly system: ActorSystem;
  readonly task: FencedRef<TaskProtocol>;
  #actor!: Actor<TaskProtocol>;
  /** The memory that its runners may use again. */
  readonly recycled: ArrayBuffer[] = [];
  /** Steps that a runner has not answered. */
  readonly steps: Step[] = [];
  /** The same, of dead runners. */
  readonly lateSteps: Step[] = [];
  readonly #requests: { request: SplitRequest; answer: PromiseWithResolvers<SplitAnswer> }[] = [];
  /** What the dispatcher was told of runners, and its answers. */
  readonly deaths: RequestOf<DispatcherProtocol, "runnerDied">[] = [];
  noteDeaths: { readonly promise: Promise<boolean> } = { promise: Promise.resolve(true) };
  runners = 0;
  /** Whether its runner was told that somebody waits for an element. */
  isAsked = false;
  completed = false;
  fenced = false;
  readonly #until: VirtualTime["until"];
  #sequence = 0;
  /** Requests without an answer. */
  readonly #waiting = new Set<number>();

  /** @param options `time`: its world. Default: the machine's. */
  constructor({ dispatcherTimeoutMs = 60_000, numConsumers, time }: {
    readonly dispatcherTimeoutMs?: number;
    readonly numConsumers?: number;
    readonly time?: VirtualTime;
  } = {}) {
    const world = time?.world("bench") ?? new DenoWorld({ logLevel: "off" });
    this.system = new ActorSystem({ node: "bench", world });
    this.#until = time?.until ?? until;
    this.system.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: () => ({
        handlers: {
          getSplit: (request: SplitRequest) => {
            const answer = Promise.withResolvers<SplitAnswer>();
            this.#requests.push({ request, answer });
            return answer.promise;
          },
          runnerDied: async (request: RequestOf<DispatcherProtocol, "runnerDied">) => {
            this.deaths.push(request);
            return { mayStart: await this.noteDeaths.promise };
          },
        } as never,
      }),
    });
    this.task = this.system.spawn<TaskProtocol>({
      name: "task",
      create: (context) =>
        this.#actor = createOrderedTask(context, {
          definition: {
            clusterId: "cluster",
            taskId: 1,
            iterationId: 1,
            jobId: 1,
            owner: "a",
            repetition: 0,
            seed: "0000000000000000",
            dataset: { datasetId: "d", graph: new Uint8Array(), fingerprint: "f", cardinality: -2 },
            parameters: {
              datasetId: "d",
              processingMode: "DETERMINISTIC",
              sharing: false,
              ...(numConsumers === undefined ? {} : { numConsumers }),
            },
          },
          dispatcher: dispatcherAt("bench"),
          runners: {
            start: (_, __, caller) => this.#startRunner(caller?.asked),
            listSplits: never,
            close: never,
          },
          dispatcherTimeoutMs,
          aheadBytesMax: AHEAD_BYTES_MAX,
          acknowledgedWithinMs: ACKNOWLEDGED_WITHIN_MS,
          onCompleted: () => this.completed = true,
          onFailed: () => {},
          onFenced: () => this.fenced = true,
        }),
    });
  }

  async get(upTo?: number): Promise<ElementAnswer> {
    const sequence = ++this.#sequence;
    const wanted = upTo === undefined ? {} : { upTo };
    const acknowledged = Math.min(sequence, ...this.#waiting) - 1;
    this.#waiting.add(sequence);
    const request = { clientId: 1, sequence, acknowledged, ...wanted };
    const answer = await this.system.ask(this.task, "getElement", request, PATIENCE);
    this.#waiting.delete(sequence);
    return answer;
  }

  /** Requests an element as a client on another node does, which gets a copy of the answer. */
  async getFar(
    clientId: number,
    wanted: Pick<GetElementRequest, "sequence" | "acknowledged" | "consumerIndex">,
  ): Promise<ElementAnswer> {
    const { getElement } = this.#actor.handlers;
    const request = { clientId, ...wanted };
    return await getElement(request, { source: FAR } as Parameters<typeof getElement>[1]);
  }

  leave(clientId: number): void {
    const { leave } = this.#actor.handlers;
    leave({ clientId }, { source: FAR } as Parameters<typeof leave>[1]);
  }

  /** The next request for a split, ordinary or spare, once it has come. */
  async request(spare = false) {
    const index = await this.#until(() => {
      const found = this.#requests.findIndex(({ request }) => (request.spare ?? false) === spare);
      return found < 0 ? undefined : found;
    });
    return this.#requests.splice(index, 1)[0]!;
  }

  /** Assigns a split. */
  async handOut(sequence: number, { spare = false } = {}): Promise<void> {
    const { answer } = await this.request(spare);
    answer.resolve({
      split: { start: sequence, stop: sequence + 1, index: sequence, sequence },
      total: 9,
    });
  }

  /** Answers the next step of a split, once a runner has been asked for it. */
  async step(split: number, outcome: RunnerOutcome | LeatError): Promise<void> {
    const step = await this.#until(() => this.steps.find((at) => at.split === split));
    this.steps.splice(this.steps.indexOf(step), 1);
    if (!(outcome instanceof LeatError)) return step.answer.resolve(outcome);
    const isGone = ({ runner }: Step) => runner === step.runner;
    this.lateSteps.push(...this.steps.filter(isGone));
    this.steps.splice(0, Infinity, ...this.steps.filter((at) => !isGone(at)));
    step.answer.reject(outcome);
  }

  #startRunner(asked: Promise<void> | undefined): Runner {
    const runner = ++this.runners;
    asked!.then(() => this.isAsked = true);
    return {
      bytesRead: 0,
      next: (only?: OnlySplit) => {
        const answer = Promise.withResolvers<RunnerOutcome>();
        this.steps.push({ runner, split: only!.index, grant: only!.grant, answer });
        return answer.promise;
      },
      recycle: (buffer) => this.recycled.push(buffer),
      dispose: () => {},
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.system.stop();
  }
}

function never(): never {
  throw new Error("not asked here");
}

/** Kind and position, in short. */
async function shortOf(answer: Promise<ElementAnswer>): Promise<string> {
  const given = await answer;
  return "place" in given && given.place !== undefined
    ? `${given.kind} ${given.place.sequence}.${given.place.index}`
    : given.kind;
}

/** The bytes of an answer's element now. */
function bytesOf(answer: ElementAnswer): number[] {
  assert("element" in answer);
  return [...answer.element.bytes];
}

function elementOf(byte: number): RunnerOutcome {
  return { kind: "element", frame: Uint8Array.of(byte) };
}

Deno.test("an ordered task reuses the memory of an element once its reader has it, and not before", async () => {
  await using bench = new OrderedBench();
  const first = { sequence: 1, acknowledged: 0 };
  const got = bench.getFar(1, first);
  await bench.handOut(5);
  await bench.step(5, elementOf(7));
  const answer = await got;
  assertEquals(bytesOf(await bench.getFar(1, first)), [7]);
  const next = bench.getFar(1, { sequence: 2, acknowledged: 1 });
  await bench.step(5, elementOf(8));
  assertEquals(bytesOf(await next), [8]);
  assert("element" in answer);
  assertEquals([answer.element.byteLength, bench.recycled.length], [0, 1]);
  assertEquals((await assertRejects(() => bench.getFar(1, first), LeatError)).code, "aborted");
});

Deno.test("an ordered task produces what it has freed anew for a reader that is replaced", async () => {
  await using bench = new OrderedBench();
  const got = bench.getFar(1, { sequence: 1, acknowledged: 0 });
  await bench.handOut(5);
  await bench.step(5, elementOf(7));
  await got;
  await bench.handOut(6);
  const next = bench.getFar(1, { sequence: 2, acknowledged: 1 });
  // Two steps are open, of which the first ends the split.
  for (let i = 0; i < 2; i++) await bench.step(5, END);
  await next;
  // The reader leaves, and the next one begins at the split again.
  bench.leave(1);
  const again = bench.getFar(2, { sequence: 1, acknowledged: 0 });
  await bench.handOut(5);
  await bench.step(5, elementOf(7));
  assertEquals([bytesOf(await again), bench.recycled.length], [[7], 1]);
});

Deno.test("an ordered task keeps an element that another consumer has not taken", async () => {
  await using bench = new OrderedBench({ numConsumers: 2 });
  const wanted = (consumerIndex: number, sequence: number) =>
    bench.getFar(consumerIndex, { sequence, acknowledged: sequence - 1, consumerIndex });
  const got = wanted(0, 1);
  await bench.handOut(5);
  for (const byte of [7, 8]) await bench.step(5, elementOf(byte));
  await got;
  await wanted(0, 2);
  assertEquals([bytesOf(await wanted(1, 1)), bench.recycled], [[7], []]);
});

Deno.test("an ordered task tells its runner when a reader waits", async () => {
  await using bench = new OrderedBench();
  await bench.handOut(5);
  await bench.request();
  assertEquals([bench.runners, bench.isAsked], [1, false]);
  const got = bench.get();
  await bench.step(5, ELEMENT);
  assertEquals([(await got).kind, bench.isAsked], ["element", true]);
});

Deno.test("an ordered task gives a lower split that comes late before the higher ones it holds", async () => {
  await using bench = new OrderedBench();
  await bench.handOut(5);
  await bench.step(5, ELEMENT);
  assertEquals(await shortOf(bench.get()), "element 5.0");
  await bench.handOut(2, { spare: true });
  await bench.step(2, ELEMENT);
  await bench.step(2, END);
  await bench.step(5, END);
  const given = [
    await shortOf(bench.get()),
    await shortOf(bench.get()),
    await shortOf(bench.get()),
  ];
  assertEquals(given, ["element 2.0", "split_end 2.1", "split_end 5.1"]);
});

Deno.test("an ordered task gives nothing beyond the requested splits, but waits for one in production", async () => {
  await using bench = new OrderedBench();
  await bench.handOut(5);
  await bench.step(5, ELEMENT);
  // Once it is ready: a request for an earlier one must not take it.
  await until(async () =>
    (await bench.system.ask(bench.task, "stats", null, PATIENCE)).produced || undefined
  );
  assertEquals(await bench.get(3), { kind: "later", from: 5 });
  await bench.handOut(3, { spare: true });
  await until(() => bench.steps.find(({ split }) => split === 3));
  // It has nothing ready of that split, but will have.
  assertEquals(await bench.get(2), { kind: "later", from: 3 });
  const wanted = bench.get(3);
  await bench.step(3, ELEMENT);
  assertEquals(await shortOf(wanted), "element 3.0");
  assertEquals(await shortOf(bench.get(5)), "element 5.0");
});

Deno.test("an ordered task tells a waiting reader that another split is ready, and keeps that", async () => {
  await using bench = new OrderedBench();
  const wanted = bench.get(3);
  await bench.handOut(5);
  await bench.step(5, ELEMENT);
  assertEquals(await shortOf(wanted), "later");
  assertEquals(await shortOf(bench.get()), "element 5.0");
});

Deno.test("a split whose runner dies is produced again and continues at its position", async () => {
  await using bench = new OrderedBench();
  const asked = [shortOf(bench.get()), shortOf(bench.get()), shortOf(bench.get())];
  await bench.handOut(0);
  await bench.step(0, ELEMENT);
  await bench.step(0, new LeatError("unavailable", "the thread is gone"));
  for (const outcome of [ELEMENT, ELEMENT, END]) await bench.step(0, outcome);
  assertEquals(await Promise.all(asked), ["element 0.0", "element 0.1", "split_end 0.2"]);
  assertEquals(bench.runners, 2);
});

Deno.test("a split that is shorter when a new runner repeats it ends where it did then", async () => {
  await using bench = new OrderedBench();
  const asked = [shortOf(bench.get()), shortOf(bench.get()), shortOf(bench.get())];
  await bench.handOut(0);
  for (const outcome of [ELEMENT, ELEMENT]) await bench.step(0, outcome);
  await bench.step(0, new LeatError("unavailable", "the thread is gone"));
  for (const outcome of [ELEMENT, END]) await bench.step(0, outcome);
  assertEquals(await Promise.all(asked), ["element 0.0", "element 0.1", "split_end 0.1"]);
});

Deno.test("a dead runner's answers do not end a split", async () => {
  await using bench = new OrderedBench();
  await bench.handOut(5);
  await until(() => bench.steps.find(({ split }) => split === 5));
  await bench.handOut(2, { spare: true });
  await bench.step(2, new LeatError("unavailable", "the thread is gone"));
  // A disposed runner answers every call with the end.
  for (const { answer } of bench.lateSteps) answer.resolve(END);
  for (const outcome of [END]) await bench.step(2, outcome);
  for (const outcome of [ELEMENT, END]) await bench.step(5, outcome);
  const given = [
    await shortOf(bench.get()),
    await shortOf(bench.get()),
    await shortOf(bench.get()),
  ];
  assertEquals(given, ["split_end 2.0", "element 5.0", "split_end 5.1"]);
});

Deno.test("a split whose runner dies restarts once the dispatcher allows it, and not otherwise", async () => {
  await using bench = new OrderedBench();
  const noted = bench.noteDeaths = Promise.withResolvers<boolean>();
  await bench.handOut(4);
  await bench.step(4, new LeatError("resource_exhausted", "out of memory"));
  await until(() => bench.deaths.length === 1);
  // A request in the meantime starts no other runner.
  const waiting = shortOf(bench.get()).catch(() => "ended");
  await bench.system.ask(bench.task, "stats", null, PATIENCE);
  assertEquals(bench.runners, 1);
  noted.resolve(true);
  await bench.step(4, ELEMENT);
  assertEquals([await waiting, bench.runners], ["element 4.0", 2]);
  bench.noteDeaths = { promise: Promise.resolve(false) };
  await bench.step(4, new LeatError("unavailable", "the process is gone"));
  await until(() => bench.fenced);
  assertEquals(bench.runners, 2);
  const said = (number: number, code: LeatErrorCode, message: string) => ({
    taskId: 1,
    number,
    place: 4,
    error: { code, message },
  });
  assertEquals(bench.deaths, [
    said(1, "resource_exhausted", "out of memory"),
    said(2, "unavailable", "the process is gone"),
  ]);
});

testInVirtualTime(
  "an ordered task waits for a split for as long as it takes, asking again alike",
  async (time) => {
    await using bench = new OrderedBench({ dispatcherTimeoutMs: 20, time });
    const [first, second] = [await bench.request(), await bench.request()];
    assertEquals(second.request, first.request);
    await bench.handOut(0);
    await bench.step(0, ELEMENT);
    assertEquals(await shortOf(bench.get()), "element 0.0");
    assertEquals(bench.fenced, false);
  },
);

testInVirtualTime(
  "an ordered task refuses a consumer what it has forgotten after ten minutes, and no other",
  async (time) => {
    await using bench = new OrderedBench({ numConsumers: 2, time });
    const ask = (consumerIndex: number, sequence: number, acknowledged = sequence - 1) => {
      const request = { clientId: 1 + consumerIndex, consumerIndex, sequence, acknowledged };
      return bench.system.ask(bench.task, "getElement", request, PATIENCE);
    };
    await bench.handOut(0);
    for (let i = 0; i < 3; i++) await bench.step(0, ELEMENT);
    // The first consumer gets the first element. The answer with the second one is lost.
    assertEquals(await shortOf(ask(0, 1)), "element 0.0");
    assertEquals(await shortOf(ask(0, 2)), "element 0.1");
    assertEquals(await shortOf(ask(1, 1)), "element 0.0");
    await time.sleep(599_000);
    assertEquals(await shortOf(ask(1, 2)), "element 0.1");
    assertEquals(await shortOf(ask(0, 2)), "element 0.1");
    await time.sleep(601_000);
    assertEquals(await shortOf(ask(1, 3)), "element 0.2");
    const refusal = await assertRejects(() => ask(0, 2), LeatError, "has dropped element 2");
    assertEquals(refusal.code, "aborted");
  },
);

Deno.test("a draining ordered task ends without waiting for requested splits", async () => {
  await using bench = new OrderedBench();
  await bench.handOut(0);
  await bench.step(0, ELEMENT);
  await bench.request();
  const drained = bench.system.ask(bench.task, "drain", null, PATIENCE);
  await bench.step(0, END);
  assertEquals([await shortOf(bench.get()), await shortOf(bench.get())], [
    "element 0.0",
    "split_end 0.1",
  ]);
  await drained;
  assert(bench.completed);
  assertEquals(await shortOf(bench.get()), "end");
});

testInVirtualTime("an ordered task that has ended is drained at once", async (time) => {
  await using bench = new OrderedBench({ time });
  (await bench.request()).answer.resolve({ split: null, total: 0 });
  await time.until(() => bench.completed);
  assertEquals(await bench.system.ask(bench.task, "drain", null, PATIENCE), true);
});

Deno.test("an ordered task whose splits cannot be listed ends without being fenced", async () => {
  await using bench = new OrderedBench();
  const { answer } = await bench.request();
  answer.reject(new LeatError("not_found", "there are no such files"));
  await until(() => bench.completed || undefined);
  assertEquals(bench.fenced, false);
});

Deno.test("an ordered task runs a split again that is assigned again", async () => {
  await using bench = new OrderedBench();
  const grants: number[] = [];
  for (let times = 0; times < 2; times++) {
    await bench.handOut(5);
    grants.push((await until(() => bench.steps.find(({ split }) => split === 5))).grant);
    await bench.step(5, ELEMENT);
    await bench.step(5, END);
    bench.steps.length = 0;
    assertEquals(await shortOf(bench.get()), "element 5.0");
    assertEquals(await shortOf(bench.get()), "split_end 5.1");
  }
  assert(grants[0] !== grants[1]);
});
