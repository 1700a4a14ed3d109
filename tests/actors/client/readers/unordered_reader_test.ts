/**
 * Reading first come, first served: how many requests are open at which tasks, and how answers are
 * used.
 */
import { createClient } from "../../../../actors/client/client.ts";
import { Feed } from "../../../../actors/client/feed.ts";
import type { ClientProtocol } from "../../../../actors/client/protocol.ts";
import { dispatcherAt, type DispatcherProtocol } from "../../../../actors/dispatcher/protocol.ts";
import type { Connector } from "../../../../actors/runtime/link.ts";
import type { RequestOf } from "../../../../actors/runtime/protocol.ts";
import type { FencedRef } from "../../../../actors/runtime/ref.ts";
import { ActorSystem } from "../../../../actors/runtime/system.ts";
import type {
  ElementAnswer,
  ElementSourceProtocol,
  GetElementRequest,
} from "../../../../actors/worker/protocol.ts";
import { LeatError } from "../../../../core/error.ts";
import { encodeMessage } from "../../../../transport/codec.ts";
import { compressFrame, EXPANSION_BYTES_MAX } from "../../../../transport/compression.ts";
import { Payload } from "../../../../transport/payload.ts";
import { InlineHub } from "../../../../platform/nodes/inline_hub.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../../assert.ts";
import { testInVirtualTime, type VirtualTime } from "../../../lib/virtual_time.ts";

type Answer = (request: GetElementRequest) => ElementAnswer | Promise<ElementAnswer>;

/** One node with a reader, a dispatcher that lists given tasks, and tasks made by hand. */
class ReaderBench implements AsyncDisposable {
  readonly feed = new Feed();
  readonly system: ActorSystem;
  /** Open requests, and the most there were together with buffered elements. */
  open = 0;
  outstandingMax = 0;
  readonly warnings: string[] = [];
  /** Whether the dispatcher answers no heartbeat. */
  isAway = false;
  /** What the newest heartbeat says about workers that cannot be read from. */
  unread: string | undefined;
  readonly #time: VirtualTime;
  readonly #hub = new InlineHub();
  readonly #others: ActorSystem[] = [];
  readonly #tasks: FencedRef<ElementSourceProtocol>[] = [];

  constructor(
    time: VirtualTime,
    tasks: readonly { readonly node?: string; readonly answer: Answer }[],
    { node = "bench", ...limits }: {
      readonly node?: string;
      readonly maxOutstandingRequests?: number;
      readonly bufferBytesMax?: number;
    } = {},
  ) {
    const connector: Connector = {
      connect: (node, local) => this.#hub.connector.connect(node, local),
    };
    this.#time = time;
    const log = (level: string, line: string) => level === "warn" && this.warnings.push(line);
    this.system = new ActorSystem({
      ...{ node, connector },
      world: Object.assign(time.world(node), { log }),
    });
    this.#hub.add(this.system);
    for (const { node, answer } of tasks) this.#addTask(answer, node);
    this.system.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: () => ({
        handlers: {
          openIteration: () => ({ jobId: 1, iterationId: 1, clientId: 1, clusterId: "c" }),
          clientHeartbeat: ({ figures }: RequestOf<DispatcherProtocol, "clientHeartbeat">) => {
            this.unread = figures?.unread;
            if (this.isAway) return new Promise<never>(() => {});
            return {
              kind: "whole",
              tasks: this.#tasks.map((source, taskId) => ({
                ...{ taskId, source },
                worker: `w${taskId}`,
              })),
              finished: false,
            };
          },
          releaseClient: () => null,
        } as never,
      }),
    });
    this.system.spawn<ClientProtocol>({
      name: "client",
      create: (context) =>
        createClient(context, {
          dispatcher: dispatcherAt(node),
          dataset: { datasetId: "d" },
          parameters: { processingMode: "DYNAMIC", sharing: false },
          repetition: 0,
          ...limits,
        }, this.feed),
    });
  }

  /** Makes an unreachable node reachable. */
  join(node: string): void {
    this.#hub.add(this.#others.find((system) => system.id.node === node)!);
  }

  /** The next element's number. */
  async next(): Promise<unknown> {
    const fed = await this.feed.take();
    if (fed.kind === "error") throw LeatError.fromWire(fed.error);
    return fed.kind === "element" ? fed.element.bytes[0] : fed.kind;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.system.stop();
    for (const system of this.#others) await system.stop();
  }

  #addTask(answer: Answer, node: string | undefined): void {
    let system = this.system;
    if (node !== undefined) {
      system = new ActorSystem({ node, world: this.#time.world(node) });
      this.#others.push(system);
    }
    this.#tasks.push(system.spawn<ElementSourceProtocol>({
      name: `task-${this.#tasks.length}`,
      create: () => ({
        handlers: {
          getElement: async (request) => {
            this.open++;
            this.outstandingMax = Math.max(this.outstandingMax, this.open + this.feed.length);
            try {
              return await answer(request);
            } finally {
              this.open--;
            }
          },
          leave: () => null,
          stats: () => ({}) as never,
        },
      }),
    }));
  }
}

/** A task whose elements are all this number. */
function givesAtOnce(number: number): Answer {
  return () => ({ kind: "element", element: new Payload(Uint8Array.of(number)) });
}

/** A task without elements, which says so to clients that limit their wait. */
function givesNothing(time: VirtualTime, asked: { times: number }): Answer {
  return async ({ waitMs }) => {
    asked.times++;
    if (waitMs === undefined) return await new Promise<never>(() => {});
    await time.sleep(waitMs);
    return { kind: "later" };
  };
}

testInVirtualTime(
  "a worker that cannot be reached holds no request that another could have, and is read when it is back",
  async (time) => {
    await using bench = new ReaderBench(time, [
      { node: "far", answer: givesAtOnce(2) },
      { answer: givesAtOnce(1) },
    ], { maxOutstandingRequests: 1 });
    for (let element = 0; element < 20; element++) assertEquals(await bench.next(), 1);
    bench.join("far");
    while (await bench.next() !== 2) await time.sleep(1);
    assertEquals(bench.outstandingMax, 1, "the bound holds all the while");
  },
);

testInVirtualTime(
  "a client whom all workers refuse says so each minute, and why, until one answers",
  async (time) => {
    let isFull = true;
    const answer: Answer = (request) => {
      if (isFull) throw new LeatError("resource_exhausted", "16 clients read this task");
      return givesAtOnce(1)(request);
    };
    await using bench = new ReaderBench(time, [{ answer }, { answer }]);
    const element = bench.next();
    element.catch(() => {});
    await time.sleep(150_000);
    assertEquals(bench.warnings.length, 3);
    for (const line of bench.warnings) {
      assertStringIncludes(line, "makes no progress. It cannot read from 2 of its 2 workers");
      assertStringIncludes(line, 'worker "w0" at bench: 16 clients read this task');
    }
    assertStringIncludes(bench.unread!, 'worker "w0" at bench: 16 clients read this task');
    isFull = false;
    assertEquals(await element, 1);
    await time.sleep(150_000);
    assertEquals(bench.warnings.length, 3);
    assertEquals(bench.unread, undefined);
  },
);

testInVirtualTime(
  "a client whose worker fails at once with deadline_exceeded pauses between requests, and says why",
  async (time) => {
    let asked = 0;
    const answer: Answer = () => {
      asked++;
      throw new LeatError("deadline_exceeded", "it took too long");
    };
    await using bench = new ReaderBench(time, [{ answer }], { maxOutstandingRequests: 1 });
    bench.next().catch(() => {});
    await time.sleep(150_000);
    assert(asked < 500, `it was asked ${asked} times`);
    assertStringIncludes(bench.warnings[0]!, 'worker "w0" at bench: it took too long');
  },
);

testInVirtualTime("a client whom no worker answers says so each minute", async (time) => {
  await using bench = new ReaderBench(time, [{ node: "far", answer: givesAtOnce(1) }]);
  const element = bench.next();
  element.catch(() => {});
  await time.sleep(150_000);
  const [first, ...others] = bench.warnings;
  assertStringIncludes(first!, 'Cannot read from worker "w0" at far');
  assertEquals(others.length, 3);
  for (const line of others) assertStringIncludes(line, 'worker "w0" at far: There is no node');
  bench.join("far");
  assertEquals(await element, 1);
});

testInVirtualTime(
  "a client that waits while its dispatcher does not answer says so each minute, until it is back",
  async (time) => {
    let isDry = true;
    const answer: Answer = async (request) => {
      while (isDry) await time.sleep(100);
      return await givesAtOnce(1)(request);
    };
    await using bench = new ReaderBench(time, [{ answer }]);
    const element = bench.next();
    await time.sleep(10_000);
    assertEquals(bench.warnings, []);
    bench.isAway = true;
    await time.sleep(150_000);
    assertEquals(bench.warnings.length, 3);
    for (const line of bench.warnings) {
      assertStringIncludes(line, "makes no progress. The dispatcher does not answer");
    }
    isDry = false;
    assertEquals(await element, 1);
    await time.sleep(150_000);
    assertEquals(bench.warnings.length, 3, "nothing is waited for");
  },
);

testInVirtualTime("a client does not warn of a worker that is slow", async (time) => {
  await using bench = new ReaderBench(time, [{ answer: givesNothing(time, { times: 0 }) }]);
  bench.next().catch(() => {});
  await time.sleep(150_000);
  assertEquals(bench.warnings, []);
});

testInVirtualTime(
  "with fewer requests than tasks a slow task keeps none from a fast one",
  async (time) => {
    const asked = { times: 0 };
    await using bench = new ReaderBench(time, [
      { answer: givesNothing(time, asked) },
      { answer: givesNothing(time, asked) },
      { answer: givesAtOnce(1) },
    ], { maxOutstandingRequests: 1 });
    for (let element = 0; element < 300; element++) assertEquals(await bench.next(), 1);
    assert(asked.times >= 2, "the slow ones are asked as well");
    assert(asked.times < 60, `but ever more seldom: ${asked.times} times`);
    assertEquals(bench.outstandingMax, 1);
  },
);

testInVirtualTime("slow tasks do not take the requests that fast ones could have", async (time) => {
  const slow = { answer: givesNothing(time, { times: 0 }) };
  await using bench = new ReaderBench(time, [slow, slow, slow, { answer: givesAtOnce(1) }], {
    maxOutstandingRequests: 4,
  });
  for (let element = 0; element < 50; element++) assertEquals(await bench.next(), 1);
  assert(bench.outstandingMax <= 4, `${bench.outstandingMax} requests and elements`);
});

testInVirtualTime(
  "where few elements fit, tasks that have none hold no request that another could have",
  async (time) => {
    const asked = { times: 0 };
    const slow = Array.from({ length: 6 }, () => ({ answer: givesNothing(time, asked) }));
    // Elements of one byte, of which two fit.
    await using bench = new ReaderBench(time, [...slow, { answer: givesAtOnce(1) }], {
      bufferBytesMax: 2,
    });
    for (let element = 0; element < 300; element++) assertEquals(await bench.next(), 1);
    assert(asked.times >= slow.length, "the slow ones are asked as well");
    assert(asked.times < 300, `but seldom: ${asked.times} times`);
  },
);

testInVirtualTime("maxOutstandingRequests holds from the first element", async (time) => {
  const held = Promise.withResolvers<void>();
  const answer: Answer = async () => {
    await held.promise;
    return givesAtOnce(1)({} as GetElementRequest);
  };
  await using bench = new ReaderBench(time, Array.from({ length: 8 }, () => ({ answer })), {
    maxOutstandingRequests: 3,
  });
  const first = bench.next();
  await time.until(() => bench.open >= 3);
  held.resolve();
  await first;
  for (let element = 0; element < 100; element++) await bench.next();
  assertEquals(bench.outstandingMax, 3);
});

testInVirtualTime(
  "before it is known how large an element is, no more are asked for than a client may hold of any size",
  async (time) => {
    const held = Promise.withResolvers<void>();
    const answer: Answer = async (request) => {
      await held.promise;
      return givesAtOnce(1)(request);
    };
    await using bench = new ReaderBench(time, Array.from({ length: 100 }, () => ({ answer })));
    await time.until(() => bench.open >= 16);
    await time.sleep(900);
    assertEquals(bench.outstandingMax, 16);
    // With each second without elements, as many more are requested.
    await time.until(() => bench.open > 16);
    assert(time.nowMs >= 1_000, `${bench.open} after ${time.nowMs} ms`);
    assertEquals(bench.open, 32);
    held.resolve();
    await time.until(() => bench.feed.length >= 100);
  },
);

testInVirtualTime(
  "tasks that say nothing for long do not keep a client from asking others for its first element",
  async (time) => {
    let asked = 0;
    const answer: Answer = (request) =>
      ++asked <= 16 ? new Promise<never>(() => {}) : givesAtOnce(1)(request);
    await using bench = new ReaderBench(time, Array.from({ length: 40 }, () => ({ answer })));
    assertEquals(await bench.next(), 1);
  },
);

testInVirtualTime("clients do not all begin with the same tasks", async (time) => {
  const begins = new Set<string>();
  for (let client = 0; client < 3; client++) {
    const asked: number[] = [];
    const tasks = Array.from({ length: 60 }, (_, task) => {
      const answer: Answer = () => {
        asked.push(task);
        return new Promise<never>(() => {});
      };
      return { answer };
    });
    await using _bench = new ReaderBench(time, tasks, { node: `bench-${client}` });
    await time.until(() => asked.length >= 16);
    begins.add(`${asked}`);
  }
  assertEquals(begins.size, 3);
});

testInVirtualTime("a thousand tasks are all read in turn", async (time) => {
  const tasks = Array.from({ length: 1_000 }, (_, i) => {
    let given = 0;
    const answer: Answer = () =>
      given++ === 0 ? { kind: "element", element: new Payload(Uint8Array.of(i & 127)) } : {
        kind: "end",
      };
    return { answer };
  });
  await using bench = new ReaderBench(time, tasks);
  let sum = 0;
  for (let element = 0; element < 1_000; element++) sum += await bench.next() as number;
  assertEquals(sum, tasks.reduce((total, _, i) => total + (i & 127), 0));
});

testInVirtualTime(
  "an element that cannot be unpacked is data_loss that names its worker, and costs itself alone",
  async (time) => {
    const frame = encodeMessage({ x: new Float64Array(1_000) });
    const damaged = compressFrame(frame, "zstd")!;
    damaged[damaged.length - 3]! ^= 1;
    const given = [damaged, compressFrame(frame, "gzip")!, frame];
    await using bench = new ReaderBench(time, [{
      answer: () => {
        const bytes = given.shift();
        return bytes === undefined
          ? new Promise<never>(() => {})
          : { kind: "element", element: new Payload(bytes) };
      },
    }], { maxOutstandingRequests: 1 });
    const failed = await bench.feed.take();
    assert(failed.kind === "error");
    assertEquals(failed.error.code, "data_loss");
    assertStringIncludes(failed.error.message, 'Worker "w0" at bench (task 0)');
    for (let element = 0; element < 2; element++) {
      const fed = await bench.feed.take();
      assert(fed.kind === "element");
      assertEquals(fed.element.bytes, frame);
    }
  },
);

testInVirtualTime(
  "an element that expands much stays compressed until it is taken, and costs itself alone if damaged",
  async (time) => {
    const frame = encodeMessage({ x: new Uint8Array(EXPANSION_BYTES_MAX) });
    const bomb = compressFrame(frame, "zstd")!;
    const damaged = bomb.slice();
    damaged[damaged.length - 3]! ^= 1;
    const given = [damaged, bomb];
    await using bench = new ReaderBench(time, [{
      answer: () => {
        const bytes = given.shift();
        return bytes === undefined
          ? new Promise<never>(() => {})
          : { kind: "element", element: new Payload(bytes) };
      },
    }]);
    await time.until(() => bench.feed.length === 2);
    assertEquals(bench.feed.bytes, damaged.length + bomb.length);
    const next = async () => {
      const fed = await bench.feed.take();
      assert(fed.kind === "element");
      return bench.feed.decode(fed) as { x: Uint8Array };
    };
    const error = await assertRejects(next, LeatError) as LeatError;
    assertEquals(error.code, "data_loss");
    assertEquals((await next()).x.length, EXPANSION_BYTES_MAX);
  },
);

testInVirtualTime(
  "a worker that refuses whoever asks ends reading, while what is too large costs itself alone",
  async (time) => {
    const refusals = [
      new LeatError("resource_exhausted", "over the limit", { details: { bytesMax: 1 } }),
      new LeatError("permission_denied", "not allowed to reach it"),
    ];
    await using bench = new ReaderBench(time, [{
      answer: () => {
        throw refusals.shift() ?? new LeatError("internal", "asked on");
      },
    }], { maxOutstandingRequests: 1 });
    const first = await bench.feed.take();
    assertEquals(first.kind === "error" && first.error.code, "resource_exhausted");
    for (let repeat = 0; repeat < 2; repeat++) {
      const error = await assertRejects(async () => await bench.feed.take(), LeatError);
      assertEquals(error.code, "permission_denied");
    }
  },
);
