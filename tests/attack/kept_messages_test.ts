/**
 * Messages of which a receiver keeps a small part: a watcher, a waiting request, a pipeline, an
 * element. What a peer sends beside it, up to 1 GiB each time, must not be kept with it.
 */
import type { Link } from "../../actors/runtime/link.ts";
import { checksOf, count, list, nothing, object, optional } from "../../actors/runtime/checks.ts";
import type { ActorContext, ActorFactory } from "../../actors/runtime/actor.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import { askedElements } from "../../platform/sandbox/foreign/asked_elements.ts";
import { steppedOf } from "../../platform/sandbox/untrusted_answers.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { ElementFetcher } from "../../actors/exactly_once/fetcher.ts";
import { asEnvelope } from "../../transport/envelopes.ts";
import { Payload } from "../../transport/payload.ts";
import { hashBytes } from "../../core/hash.ts";
import { assert, assertEquals } from "../assert.ts";
import { TestCluster } from "../actors/dispatcher/lib.ts";
import { until } from "../lib/until.ts";

const JUNK_BYTES = 2 ** 21;
const junk = () => new Uint8Array(JUNK_BYTES);

interface Waiter {
  /** Waits for ever. */
  wait(request: { readonly id: number; readonly lists?: readonly { readonly at: number }[] }): null;
  ignore(request: null): null;
}

/** A node with an actor that remembers its requests, and what arrives there from another node. */
class Target implements AsyncDisposable {
  readonly requests: unknown[] = [];
  readonly #system = new ActorSystem({ node: "here", world: new DenoWorld({ logLevel: "off" }) });
  #receive: (envelope: Envelope) => void = () => {};
  #number = 0;

  constructor(keeps: boolean) {
    const checks = checksOf<Waiter>()({
      wait: object({ id: count, lists: optional(list(object({ at: count }))) }),
      ignore: nothing,
    });
    const create: ActorFactory<Waiter> = () => ({
      checks,
      access: { wait: ["client"], ignore: ["client"] },
      handlers: {
        wait: (request) => this.#wait(keeps ? request : null),
        ignore: (request) => this.#wait(keeps ? request : null),
      },
    });
    this.#system.spawn({ name: "waiter", create });
    const link: Link = {
      remote: { node: "there", incarnation: "1" },
      identity: { name: "neighbour", role: "client" },
      closed: new Promise(() => {}),
      released: Promise.resolve(),
      bufferedBytes: 0,
      start: (receive) => this.#receive = receive,
      send: () => true,
      ready: () => Promise.resolve(),
      close: () => {},
    };
    this.#system.attach(link);
  }

  ask(method: string, body: unknown): void {
    const source = { node: "there", path: "/it", incarnation: "1-1" };
    const target = { node: "here", path: "/waiter" };
    const number = ++this.#number;
    this.#receive({
      kind: "ask",
      source,
      target,
      number,
      id: number,
      method,
      body,
      timeoutMs: 1e9,
    });
  }

  #wait(request: unknown): Promise<null> {
    this.requests.push(request);
    return new Promise(() => {});
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#system.stop();
  }
}

Deno.test("fields that a peer adds to an envelope are dropped", () => {
  const more = { junk: [1] };
  const source = { node: "a", path: "/a", incarnation: "1-1" };
  const target = { node: "b", path: "/b" };
  const common = { source, target, number: 1 };
  const error = { code: "internal", message: "m" };
  const ask = { kind: "ask", ...common, id: 1, method: "m", body: 1, timeoutMs: 1 };
  for (
    const envelope of [
      ...[{ kind: "tell", ...common, method: "m", body: null }, ask],
      ...[{ ...ask, settledBelow: 1 }, { ...ask, open: [1] }, {
        ...ask,
        settledBelow: 1,
        open: [],
      }],
      ...[{ kind: "reply", ...common, id: 1, body: [1] }, {
        kind: "failure",
        ...common,
        id: 1,
        error,
      }],
      ...[{ kind: "watch", ...common, id: 1 }, { kind: "unwatch", ...common, id: 1 }],
      { kind: "down", ...common, target: { ...target, incarnation: "2" }, id: 1, error },
    ]
  ) {
    const larger = {
      ...{ ...envelope, ...more },
      ...{ source: { ...source, ...more }, target: { ...envelope.target, ...more } },
    };
    assertEquals(asEnvelope(decodeMessage(encodeMessage(larger))) as unknown, envelope);
  }
});

Deno.test("a handler gets no field that its method does not name, however deep", async () => {
  await using target = new Target(true);
  const more = { junk: [1] };
  target.ask("wait", { id: 1, ...more });
  target.ask("wait", { id: 2, lists: [{ at: 1 }, { at: 2, ...more }] });
  target.ask("ignore", more);
  const requests = await until(() => target.requests.length === 3 && target.requests);
  assertEquals(requests, [{ id: 1 }, { id: 2, lists: [{ at: 1 }, { at: 2 }] }, null]);
});

Deno.test("a request that waits for its answer keeps no part of its message", async () => {
  await using target = new Target(false);
  const kept = askWithBytes(target);
  await until(() => target.requests.length === 1);
  // Memory is collected when more of it is needed.
  await until(() => new Uint8Array(2 ** 24).length > 0 && kept.deref() === undefined);
});

/** In a function of its own, whose variables are gone when it returns. */
function askWithBytes(target: Target): WeakRef<object> {
  const lists = [{ at: 1 }];
  target.ask("wait", { id: 1, lists });
  return new WeakRef(lists);
}

Deno.test("a registered pipeline and an element keep no part of the message that they came in", async () => {
  await using cluster = await TestCluster.start();
  const graph = new Uint8Array(300).fill(7);
  const { datasetId } = await cluster.ask("registerDataset", {
    ...{ graph: withinMessage(graph), fingerprint: hashBytes(graph), cardinality: 1 },
  });
  const kept = (await cluster.ask("getDataset", { datasetId })).graph;
  assertEquals(kept, graph);
  assert(kept.buffer.byteLength < JUNK_BYTES);

  const frame = encodeMessage("an element");
  const outcome = { kind: "element", frame: new Payload(withinMessage(frame)) };
  const { outcome: taken } = steppedOf({ outcome, bytesRead: 0 });
  assert("frame" in taken);
  assertEquals(taken.frame, frame);
  assert(taken.frame.buffer.byteLength < JUNK_BYTES);

  const bytes = encodeMessage([new Uint8Array(300)]);
  const step = { kind: "elements", frame: new Payload(withinMessage(bytes)) };
  const elements = await askedElements(() => Promise.resolve(step), 1).next();
  assert(elements.kind === "answers");
  const { value } = elements.answers[0]! as { value: Uint8Array };
  assertEquals(value.length, 300);
  assert(value.buffer.byteLength < JUNK_BYTES);
});

Deno.test("an answer that waits for the training loop keeps no part of the message that it came in", async () => {
  const bytes = encodeMessage("an element");
  const element = new Payload(withinMessage(bytes));
  const error = { code: "internal", message: "m" };
  const place = { sequence: 1, split: 1, index: 1 };
  const more = { junk: [1] };
  const answers = [
    { kind: "element", element, place, ...more },
    { kind: "error", error: { ...error, details: { at: withinMessage(bytes) } }, ...more },
    { kind: "error", error: { ...error, details: { at: junk() } } },
    { kind: "split_end", place: { ...place, ...more } },
  ];
  const context = {
    world: new DenoWorld({ logLevel: "off" }),
    ask: () => Promise.resolve(answers.shift()),
    timer: () => ({ cancel: () => {} }),
    tell: () => {},
  } as Partial<ActorContext> as ActorContext;
  const source = { node: "there", path: "/task" };
  const fetcher = new ElementFetcher(context, source, { clientId: 1, requestTimeoutMs: 1e9 });
  const own = await fetcher.fetch();
  assert(own.kind === "element");
  assertEquals(Object.keys(own).sort(), ["element", "kind", "place"]);
  assertEquals(own.element.bytes, bytes);
  assert(own.element.bytes.buffer.byteLength < JUNK_BYTES);
  const failed = await fetcher.fetch();
  assert(failed.kind === "error");
  assertEquals(Object.keys(failed), ["kind", "error"]);
  const { at } = failed.error.details as { readonly at: Uint8Array };
  assertEquals(at, bytes);
  assert(at.buffer.byteLength < JUNK_BYTES);
  assertEquals(await fetcher.fetch(), { kind: "error", error } as never);
  assertEquals(await fetcher.fetch(), { kind: "split_end", place });
  fetcher.stop();
});

/** The bytes as they come in a message with much beside them. */
function withinMessage(bytes: Uint8Array): Uint8Array {
  const message = decodeMessage(encodeMessage({ payload: new Payload(bytes), junk: junk() }));
  return (message as { readonly payload: Payload }).payload.bytes;
}
