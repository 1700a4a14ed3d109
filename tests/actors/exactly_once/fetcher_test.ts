/** Fetching elements over a port, where a sent element is gone from its sender. */
import { ElementFetcher, refusedAnswer } from "../../../actors/exactly_once/fetcher.ts";
import { Repeats } from "../../../actors/exactly_once/repeats.ts";
import type { ActorContext } from "../../../actors/runtime/actor.ts";
import type { RequestOf } from "../../../actors/runtime/protocol.ts";
import type { Ref } from "../../../actors/runtime/ref.ts";
import type { Link, NodeId } from "../../../actors/runtime/link.ts";
import type { Timer, World } from "../../../actors/runtime/world.ts";
import type {
  ElementAnswer,
  ElementReaderProtocol,
  ElementSourceProtocol,
  GetElementRequest,
} from "../../../actors/worker/protocol.ts";
import { LeatError } from "../../../core/error.ts";
import { definedFields } from "../../../core/tree.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import type { LinkLimits } from "../../../transport/limits.ts";
import { Payload } from "../../../transport/payload.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { portLink } from "../../../transport/web_worker.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { opened } from "../lib/task_bench.ts";
import { pass, test, TestNode } from "../runtime/nodes.ts";
import { until } from "../../lib/until.ts";

/** After how long a request is repeated, in ms. */
const REQUEST_TIMEOUT_MS = 100;
const VIRTUAL = { requestTimeoutMs: REQUEST_TIMEOUT_MS, isVirtual: true } as const;

/** A world whose clock moves only in jumps. */
class JumpWorld extends DenoWorld {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly dueMs: number; readonly fn: () => void }>();

  override nowMs(): number {
    return this.#nowMs;
  }

  override timer(delayMs: number, fn: () => void): Timer {
    if (delayMs === 0) return super.timer(0, fn);
    const timer = { dueMs: this.#nowMs + delayMs, fn };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  jump(ms: number): void {
    this.#nowMs += ms;
    for (const timer of this.#timers) {
      if (timer.dueMs <= this.#nowMs && this.#timers.delete(timer)) timer.fn();
    }
  }
}

/** A client and a source on two nodes, joined by a port; in virtual time, by no port. */
class FetchBench implements AsyncDisposable {
  readonly fetcher: ElementFetcher;
  readonly requests: GetElementRequest[] = [];
  readonly leaves: RequestOf<ElementSourceProtocol, "leave">[] = [];
  readonly #near: TestNode;
  readonly #far = new TestNode("far");

  constructor(
    produce: (request: GetElementRequest) => ElementAnswer | Promise<ElementAnswer>,
    { limits = {}, requestTimeoutMs = 600_000, isVirtual = false, consumerIndex, nearWorld }: {
      readonly limits?: Partial<LinkLimits>;
      readonly requestTimeoutMs?: number;
      readonly isVirtual?: boolean;
      readonly consumerIndex?: number;
      readonly nearWorld?: World;
    } = {},
  ) {
    this.#near = new TestNode("near", definedFields({ world: nearWorld }));
    const [near, far] = [this.#near.system, this.#far.system];
    const [toFar, toNear] = isVirtual
      ? inlinePair(near.world, near.id, far.world, far.id)
      : portPair(near.id, far.id, limits);
    near.attach(toFar);
    far.attach(toNear);
    const repeats = new Repeats(this.#far.system.world);
    const source = this.#far.system.spawn<ElementSourceProtocol>({
      name: "source",
      create: () => ({
        handlers: {
          getElement: (request, { source }) => {
            this.requests.push(request);
            const asker = source as Ref<ElementReaderProtocol>;
            return repeats.answer(request, () => produce(request), asker);
          },
          leave: (request) => {
            this.leaves.push(request);
            return null;
          },
          stats: () => {
            throw new LeatError("unimplemented", "a source without figures");
          },
        },
      }),
    });
    let client: ActorContext | undefined;
    this.#near.system.spawn({
      name: "client",
      create: (context) => {
        client = context;
        return { handlers: {} };
      },
    });
    this.fetcher = new ElementFetcher(client!, source, {
      clientId: 1,
      requestTimeoutMs,
      ...definedFields({ consumerIndex }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#near[Symbol.asyncDispose]();
    await this.#far[Symbol.asyncDispose]();
  }
}

function portPair(near: NodeId, far: NodeId, limits: Partial<LinkLimits>): [Link, Link] {
  const { port1, port2 } = new MessageChannel();
  return [portLink(port1, far, limits), portLink(port2, near, limits)];
}

function element(value: unknown): ElementAnswer {
  return { kind: "element", element: new Payload(encodeMessage(value)) };
}

test("ElementFetcher gets an element that takes longer than its requests may stay open", async () => {
  const ready = Promise.withResolvers<void>();
  const produce = async () => {
    await ready.promise;
    return element("late");
  };
  await using bench = new FetchBench(produce, VIRTUAL);
  const fetching = bench.fetcher.fetch();
  await pass(3.5 * REQUEST_TIMEOUT_MS);
  ready.resolve();
  assertEquals(opened(await fetching), "late");
  assertEquals(bench.requests.length, 4);
  assertEquals(new Set(bench.requests.map(({ sequence }) => sequence)).size, 1);
});

Deno.test("ElementFetcher.askAgain repeats requests without an answer, and acknowledges the others", async () => {
  const ready = Promise.withResolvers<void>();
  const produce = async ({ sequence }: GetElementRequest) => {
    if (sequence > 1) await ready.promise;
    return element(sequence);
  };
  await using bench = new FetchBench(produce);
  const { fetcher, requests } = bench;
  const fetching = [fetcher.fetch(), fetcher.fetch(), fetcher.fetch()];
  await fetching[0];
  assertEquals(fetcher.askAgain(), 1);
  await until(() => requests.length >= 5);
  assertEquals(requests.map(({ sequence, acknowledged }) => [sequence, acknowledged]), [
    ...[[1, 0], [2, 0], [3, 0]],
    ...[[2, 1], [3, 1]],
  ]);
  ready.resolve();
  assertEquals((await Promise.all(fetching)).map(opened), [1, 2, 3]);
  assertEquals(fetcher.askAgain(), 3);
});

test("ElementFetcher.askAgain repeats requests once a second, however often their source asks", async () => {
  const ready = Promise.withResolvers<void>();
  const produce = async () => {
    await ready.promise;
    return element("late");
  };
  await using bench = new FetchBench(produce, { isVirtual: true });
  const { fetcher, requests } = bench;
  const askedAfter = async (ms: number) => {
    for (let i = 0; i < 100; i++) fetcher.askAgain();
    await pass(ms);
    return requests.length;
  };
  const first = fetcher.fetch();
  assertEquals(await askedAfter(500), 2);
  const second = fetcher.fetch();
  assertEquals(await askedAfter(500), 3);
  assertEquals(await askedAfter(10), 5);
  ready.resolve();
  assertEquals((await Promise.all([first, second])).map(opened), ["late", "late"]);
});

Deno.test("ElementFetcher holds requests beyond its source's limit back, and sends each once", async () => {
  const wanted = Array.from({ length: 3_000 }, (_, i) => i + 1);
  await using bench = new FetchBench(({ sequence }) => element(sequence));
  const { fetcher, requests } = bench;
  const answers = await Promise.all(wanted.map(() => fetcher.fetch()));
  assertEquals(answers.map(opened), wanted);
  assertEquals(requests.map(({ sequence }) => sequence), wanted);
});

Deno.test("ElementFetcher.stop also ends requests held back", async () => {
  const never = Promise.withResolvers<ElementAnswer>();
  await using bench = new FetchBench(() => never.promise);
  const { fetcher } = bench;
  const codes = Array.from(
    { length: 3_000 },
    () => fetcher.fetch().then(() => "answered", (error) => LeatError.from(error).code),
  );
  fetcher.stop();
  assertEquals(new Set(await Promise.all(codes)), new Set(["cancelled"]));
});

test("ElementFetcher asks again for each of several elements that take long", async () => {
  const ready = Promise.withResolvers<void>();
  const produce = async ({ sequence }: GetElementRequest) => {
    await ready.promise;
    return element(sequence);
  };
  await using bench = new FetchBench(produce, VIRTUAL);
  const fetching: Promise<ElementAnswer>[] = [];
  for (let wanted = 1; wanted <= 3; wanted++) {
    fetching.push(bench.fetcher.fetch());
    const times = () => bench.requests.filter(({ sequence }) => sequence === wanted).length;
    // The next one is requested in the middle of this one's time.
    while (times() < 3) await pass(REQUEST_TIMEOUT_MS / 3);
  }
  ready.resolve();
  assertEquals((await Promise.all(fetching)).map(opened), [1, 2, 3]);
});

Deno.test("ElementFetcher gets an element that arrived while its thread was busy", async () => {
  const clock = new JumpWorld({ logLevel: "off" });
  await using bench = new FetchBench(
    ({ sequence }) => {
      // The answer is on its way then, and its request is repeated before the answer is read.
      queueMicrotask(() => clock.jump(2 * REQUEST_TIMEOUT_MS));
      return element(sequence);
    },
    { requestTimeoutMs: REQUEST_TIMEOUT_MS, nearWorld: clock },
  );
  for (let i = 1; i <= 2; i++) assertEquals(opened(await bench.fetcher.fetch()), i);
  await until(() => bench.requests.length === 4);
  assertEquals(bench.requests.map(({ sequence }) => sequence), [1, 1, 2, 2]);
});

Deno.test("ElementFetcher reports an element too large to send once, and continues", async () => {
  const sizes = [10_000, 10];
  const produce = () => element(new Uint8Array(sizes.shift() ?? 0));
  await using bench = new FetchBench(produce, { limits: { messageBytesMax: 5_000 } });
  const error = await assertRejects(() => bench.fetcher.fetch(), LeatError, "smaller batches");
  assertEquals(error.code, "resource_exhausted");
  assertEquals(opened(await bench.fetcher.fetch()), new Uint8Array(10));
  assertEquals(bench.requests.map(({ acknowledged }) => acknowledged), [0, 1]);
});

Deno.test("ElementFetcher refuses an element whose figures could not be added up", async () => {
  for (const figure of [{ heldMs: NaN }, { heldMs: -1 }, { skipped: NaN }, { skipped: 0.5 }]) {
    await using bench = new FetchBench(() => ({ ...element(1), ...figure }) as ElementAnswer);
    const error = await assertRejects(() => bench.fetcher.fetch(), LeatError);
    assertEquals(error.code, "invalid_argument", Deno.inspect(figure));
  }
});

Deno.test("ElementFetcher keeps no details and causes that would take much more memory than their bytes", async () => {
  const empty = new Uint8Array(0);
  const [code, message] = ["aborted", "an element failed"] as const;
  const wide = { details: { a: Array.from({ length: 10_000 }, () => empty) } };
  const lists = { details: { a: Array.from({ length: 100_000 }, () => []) } };
  const caused = { cause: { code, message, ...wide } };
  const few = { details: { a: [empty, 7, ["text"]] } };
  const answers = [{ ...wide }, { ...caused }, { ...few }]
    .map((more): ElementAnswer => ({ kind: "error", error: { code, message, ...more } }));
  await using bench = new FetchBench(() => answers.shift()!);
  const kept = await Promise.all([1, 2, 3].map(() => bench.fetcher.fetch()));
  assertEquals(kept, [
    ...Array(2).fill({ kind: "error", error: { code, message } }),
    { kind: "error", error: { code, message, ...few } },
  ]);
  // The same holds for a refusal that becomes an answer.
  const refusal = new LeatError(code, message, lists);
  assertEquals(refusedAnswer(refusal), { kind: "error", error: { code, message } });
});

test("ElementFetcher pauses before it asks a source again that has no room", async () => {
  let hasRoom = false;
  const produce = () => {
    if (!hasRoom) throw new LeatError("resource_exhausted", "full");
    return element("taken");
  };
  await using bench = new FetchBench(produce, VIRTUAL);
  const fetching = bench.fetcher.fetch();
  await pass(100);
  const asked = bench.requests.length;
  hasRoom = true;
  assertEquals(opened(await fetching), "taken");
  assertEquals(asked <= 10, true, `asked ${asked} times`);
});

Deno.test("ElementFetcher.leave tells the source which consumer leaves", async () => {
  await using bench = new FetchBench(() => element(1), { consumerIndex: 3 });
  bench.fetcher.leave();
  await until(() => bench.leaves.length > 0);
  assertEquals(bench.leaves, [{ clientId: 1, consumers: [3] }]);
});
