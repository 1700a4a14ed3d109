/** Stopping a client, in a world whose clock never advances: waiting never ends by itself. */
import { type ClientOptions, createClient } from "../../../actors/client/client.ts";
import { Feed } from "../../../actors/client/feed.ts";
import type { ClientProtocol } from "../../../actors/client/protocol.ts";

import type { RoundsReport } from "../../../actors/dispatcher/protocol_heartbeats.ts";
import type {
  ElementAnswer,
  GetElementRequest,
  RoundSourceProtocol,
} from "../../../actors/worker/protocol.ts";
import { dispatcherAt, type DispatcherProtocol } from "../../../actors/dispatcher/protocol.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import { LeatError } from "../../../core/error.ts";
import { Payload } from "../../../transport/payload.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { settle, SteppedWorld } from "../dispatcher/lib.ts";
import { ReaderBench, splits } from "./readers/reader_bench.ts";

function systemWith(dispatcherNode: string, options: Partial<ClientOptions> = {}) {
  const world = new SteppedWorld(() => Promise.reject(new Error("nobody keeps a log")));
  const connector = {
    connect: (node: string) => Promise.reject(new LeatError("unavailable", `There is no ${node}`)),
  };
  const system = new ActorSystem({ node: "bench", world, connector });
  const feed = new Feed();
  const client = () =>
    system.spawn<ClientProtocol>({
      name: "client",
      create: (context) =>
        createClient(context, {
          dispatcher: dispatcherAt(dispatcherNode),
          dataset: { datasetId: "d" },
          parameters: { processingMode: "DYNAMIC", sharing: false },
          repetition: 0,
          ...options,
        }, feed),
    });
  return { system, feed, client };
}

Deno.test("a client that cannot join stops without waiting for its dispatcher", async () => {
  const { system, feed, client } = systemWith("nowhere");
  client();
  await settle();
  const taken = Promise.resolve(feed.take());
  taken.catch(() => {});
  await system.stop();
  await assertRejects(() => taken, LeatError, "disposed");
});

Deno.test("a consumer that is stopped says how far it has requested, and keeps no round", async () => {
  const parameters = { processingMode: "OFF", sharing: false, numConsumers: 2 } as const;
  const { system, feed, client } = systemWith("bench", { parameters, consumerIndex: 1 });
  const never = new Promise<never>(() => {});
  const held = { kind: "element", element: new Payload(new Uint8Array(100)) } as const;
  const asked: number[] = [];
  const source = system.spawn<RoundSourceProtocol>({
    name: "source",
    create: () => ({
      handlers: {
        getElement: ({ round }: GetElementRequest) => {
          asked.push(round!);
          return round === 8 ? held : never;
        },
        confirm: () => never,
        leave: () => null,
      } as never,
    }),
  });
  const told: unknown[] = [];
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        hello: () => ({ version: "0", clusterId: "c", life: 1 }),
        openIteration: () => ({ jobId: 1, iterationId: 1, clientId: 7, clusterId: "c" }),
        clientHeartbeat: ({ report }: { report: RoundsReport }) => {
          told.push(report.position?.nextRound);
          const schedules = [{ version: 1, fromRound: 8, taskIds: [5] }];
          const tasks = [{ taskId: 5, worker: "w", source }];
          return {
            kind: "whole",
            tasks,
            finished: false,
            news: { kind: "rounds", schedules, absent: [] },
          };
        },
        releaseClient: ({ nextRound }: { nextRound: number }) => {
          told.push(nextRound);
          return null;
        },
      } as never,
    }),
  });
  client();
  await settle();
  assertEquals(feed.stats()!.bufferedBytes, 100);
  await system.stopActor("client");
  assertEquals(feed.stats()!.bufferedBytes, 0);
  assertEquals(asked, [8, 9, 10, 11]);
  assertEquals(told, [undefined, 12]);
  await system.stop();
});

Deno.test("a client stopped while it joins is released", async () => {
  const { system, client } = systemWith("bench");
  const joined = Promise.withResolvers<
    { jobId: number; iterationId: number; clientId: number; clusterId: string }
  >();
  const released: number[] = [];
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        hello: () => ({ version: "0", clusterId: "c", life: 1 }),
        openIteration: () => joined.promise,
        releaseClient: ({ clientId }: { clientId: number }) => {
          released.push(clientId);
          return null;
        },
      } as never,
    }),
  });
  client();
  await settle();
  const stopped = system.stopActor("client");
  await settle();
  joined.resolve({ jobId: 1, iterationId: 1, clientId: 7, clusterId: "c" });
  await stopped;
  assertEquals(released, [7]);
  await system.stop();
});

Deno.test("a training loop learns why its client died, after the elements that had arrived", async () => {
  await using bench = new ReaderBench({ total: 3, bufferBytesMax: 1e9 });
  bench.feed.onKept = () => {
    throw new LeatError("internal", "a bug");
  };
  const items = [...splits(0, 3)];
  const last = Promise.withResolvers<ElementAnswer>();
  bench.addTask(() => items.shift() ?? last.promise);
  const error = await assertRejects(() => bench.rest(), LeatError, "a bug");
  assertEquals(error.code, "internal");
  last.resolve({ kind: "end" });
});
