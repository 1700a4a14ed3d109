/** An ordered reader among simulated tasks. */

import { type ClientOptions, createClient } from "../../../../actors/client/client.ts";
import { Feed } from "../../../../actors/client/feed.ts";
import type { ClientProtocol } from "../../../../actors/client/protocol.ts";
import { dispatcherAt, type DispatcherProtocol } from "../../../../actors/dispatcher/protocol.ts";
import type { OrderedReport } from "../../../../actors/dispatcher/protocol_heartbeats.ts";
import type { RequestOf } from "../../../../actors/runtime/protocol.ts";
import type { FencedRef } from "../../../../actors/runtime/ref.ts";
import { ActorSystem } from "../../../../actors/runtime/system.ts";
import type { World } from "../../../../actors/runtime/world.ts";
import type {
  ElementAnswer,
  ElementSourceProtocol,
  GetElementRequest,
  StreamPosition,
} from "../../../../actors/worker/protocol.ts";
import type { LeatError } from "../../../../core/error.ts";
import { DenoWorld } from "../../../../platform/deno_world.ts";
import { Payload } from "../../../../transport/payload.ts";
import { SteppedWorld } from "../../dispatcher/lib.ts";

export const ELEMENT_BYTES = 100;

/** The digest of the table of splits. */
export const DIGEST = "d";

type Heartbeat = RequestOf<DispatcherProtocol, "clientHeartbeat">;

/** One node with a reader, a dispatcher that lists given tasks, and tasks made by hand. */
export class ReaderBench implements AsyncDisposable {
  readonly system: ActorSystem;
  readonly feed = new Feed();
  readonly heartbeats: (Heartbeat & { readonly report: OrderedReport })[] = [];
  readonly #tasks = new Map<number, FencedRef<ElementSourceProtocol>>();
  /** Whether heartbeats are answered with the table of splits. */
  isListed = true;
  /** The consumers that have left, as heartbeats are told. */
  left: readonly number[] = [];
  /** What each task was told of consumers that have left. */
  readonly leaves: { readonly taskId: number; readonly consumers: readonly number[] }[] = [];
  /** Errors with which the next such messages are refused. */
  readonly refusals: LeatError[] = [];

  constructor(
    { total, bufferBytesMax, numConsumers, refreshMs = 20, windowSplits, ordered, world }: {
      total: number;
      bufferBytesMax: number;
      numConsumers?: number;
      refreshMs?: number;
      windowSplits?: number;
      ordered?: NonNullable<ClientOptions["ordered"]>;
      world?: World;
    },
  ) {
    this.system = new ActorSystem({
      node: "bench",
      world: world ?? new DenoWorld({ logLevel: "off" }),
    });
    this.system.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: () => ({
        handlers: {
          openIteration: () => ({ jobId: 1, iterationId: 1, clientId: 1, clusterId: "c" }),
          clientHeartbeat: (request: Heartbeat & { readonly report: OrderedReport }) => {
            this.heartbeats.push(request);
            const tasks = [...this.#tasks].map(([taskId, source]) => {
              return { taskId, worker: "w", source };
            });
            const table = this.isListed ? { table: { total, digest: DIGEST } } : {};
            const news = {
              kind: "ordered",
              windowSplits: windowSplits ?? 2 ** 32,
              left: this.left,
              ...table,
            };
            return { kind: "whole", tasks, finished: false, news };
          },
          releaseClient: () => null,
        } as never,
      }),
    });
    this.system.spawn<ClientProtocol>({
      name: "client",
      create: (context) =>
        createClient(context, {
          dispatcher: dispatcherAt("bench"),
          dataset: { datasetId: "d" },
          parameters: {
            processingMode: "DETERMINISTIC",
            sharing: false,
            ...(numConsumers === undefined ? {} : { numConsumers }),
          },
          repetition: 0,
          bufferBytesMax,
          refreshMs,
          ...(ordered === undefined ? {} : { ordered }),
        }, this.feed),
    });
  }

  /** Adds a task; `answer` is called for each request. */
  addTask(answer: (request: GetElementRequest) => ElementAnswer | Promise<ElementAnswer>): void {
    const taskId = this.#tasks.size;
    const source = this.system.spawn<ElementSourceProtocol>({
      name: `task-${taskId}`,
      create: () => ({
        handlers: {
          getElement: answer,
          leave: ({ consumers }) => {
            if (consumers !== undefined) this.leaves.push({ taskId, consumers });
            const refusal = this.refusals.shift();
            if (refusal !== undefined) throw refusal;
            return null;
          },
          stats: () => ({}) as never,
        },
      }),
    });
    this.#tasks.set(taskId, source);
  }

  /** The dispatcher no longer lists the task. */
  removeTask(taskId: number): void {
    this.#tasks.delete(taskId);
  }

  /** Everything fed until the end, as kinds and positions. */
  async rest(): Promise<string[]> {
    const fed: string[] = [];
    for (;;) {
      const next = await this.feed.take();
      if (next.kind === "end") return fed;
      fed.push(`${next.kind} ${next.place?.sequence}.${next.place?.index}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.system.stop();
  }
}

export function element(
  sequence: number,
  index: number,
  byteLength = ELEMENT_BYTES,
): ElementAnswer {
  const place = { sequence, split: sequence, index };
  return { kind: "element", element: new Payload(new Uint8Array(byteLength)), place };
}

export function splitEnd(sequence: number, index: number): ElementAnswer {
  return { kind: "split_end", place: { sequence, split: sequence, index } };
}

/** Splits of one element each, in order. */
export function* splits(from: number, to: number): Generator<ElementAnswer & { kind: string }> {
  for (let sequence = from; sequence < to; sequence++) {
    yield element(sequence, 0);
    yield splitEnd(sequence, 1);
  }
}

/**
 * A reader and two tasks: one does not answer until released, the other has the splits after that.
 *
 * @param lost The first task has everything before this split at once, and no more.
 */
export function distantBench(lost?: number) {
  const [total, from, refreshMs] = [20, 10, 5_000];
  const world = new SteppedWorld(() => Promise.reject(new Error("there is no journal")));
  const numbering = { first: 0, batchSize: null, carriedRows: 0 };
  const bench = new ReaderBench({
    total,
    bufferBytesMax: 1e9,
    refreshMs,
    ordered: { numbering },
    world,
  });
  const near = [...splits(0, lost ?? from)];
  const far = [...splits(from, total)];
  const mayAnswer = Promise.withResolvers<void>();
  const beganMs = world.nowMs();
  const refusedMs: number[] = [];
  bench.addTask(async ({ upTo }) => {
    if (lost === undefined) await mayAnswer.promise;
    return nextUpTo(near, upTo) ??
      (lost === undefined ? { kind: "end" } : { kind: "later", from });
  });
  bench.addTask(({ upTo = Infinity }) => {
    if (upTo >= from) return nextUpTo(far, upTo) ?? { kind: "end" };
    refusedMs.push(world.nowMs() - beganMs);
    return { kind: "later", from };
  });
  return { bench, world, refreshMs, refusedMs, answer: mayAnswer.resolve, wanted: inOrder(total) };
}

/** The next item, unless its split is beyond those that are wanted. */
function nextUpTo(items: ElementAnswer[], upTo = Infinity): ElementAnswer | undefined {
  const [next] = items as (ElementAnswer & { readonly place: StreamPosition })[];
  if (next === undefined || next.place.sequence <= upTo) return items.shift();
  return { kind: "later", from: next.place.sequence };
}

export const inOrder = (total: number) =>
  Array.from({ length: total }, (_, i) => [`element ${i}.0`, `split_end ${i}.1`]).flat();
