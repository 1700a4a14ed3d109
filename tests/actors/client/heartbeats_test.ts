/** Heartbeats of clients whose answers get lost, in a world whose clock moves when told to. */
import { createClient } from "../../../actors/client/client.ts";
import { Feed } from "../../../actors/client/feed.ts";
import type { ClientProtocol } from "../../../actors/client/protocol.ts";
import { saveByService } from "../../../actors/client/save_client.ts";
import { dispatcherAt, type DispatcherProtocol } from "../../../actors/dispatcher/protocol.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import { LeatError, type WireError } from "../../../core/error.ts";
import { Dataset } from "../../../mod.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { settle, SteppedWorld } from "../dispatcher/lib.ts";

const REFRESH_MS = 60_000;

/** The answer to a heartbeat that is repeated although its answer was not kept. */
const NOT_KEPT = new LeatError("aborted", "The answer was given before and was not kept");

/**
 * A node with a dispatcher. Each heartbeat is answered with the next of `answers`, then the last.
 * @param handlers What the dispatcher does otherwise than usually.
 */
function systemWith(
  answers: (LeatError | { finished: boolean; error?: WireError })[],
  handlers: object = {},
) {
  const world = new SteppedWorld(() => Promise.reject(new Error("nobody keeps a log")));
  const system = new ActorSystem({ node: "bench", world });
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: () => ({
      handlers: {
        registerDataset: () => ({ datasetId: "d" }),
        openIteration: () => ({ jobId: 1, iterationId: 1, clientId: 1, clusterId: "c" }),
        clientHeartbeat: () => {
          const answer = answers.length > 1 ? answers.shift()! : answers[0]!;
          if (answer instanceof LeatError) throw answer;
          return { kind: "whole", tasks: [], ...answer };
        },
        releaseClient: () => null,
        ...handlers,
      } as never,
    }),
  });
  return { world, system };
}

/** Like {@linkcode systemWith}, with a client, and the feed that it fills. */
function clientOf(...answers: Parameters<typeof systemWith>[0]) {
  const { world, system } = systemWith(answers);
  const feed = new Feed();
  system.spawn<ClientProtocol>({
    name: "client",
    create: (context) =>
      createClient(context, {
        dispatcher: dispatcherAt("bench"),
        dataset: { datasetId: "d" },
        parameters: { processingMode: "OFF", sharing: false },
        repetition: 0,
        refreshMs: REFRESH_MS,
      }, feed),
  });
  return { world, system, feed };
}

Deno.test("a client whose heartbeat's answer was not kept sends a new one", async () => {
  const { world, system, feed } = clientOf({ finished: false }, NOT_KEPT, { finished: true });
  const taken: unknown[] = [];
  Promise.resolve(feed.take()).then((item) => taken.push(item), (error) => taken.push(error));
  await settle();
  await world.advance(REFRESH_MS);
  assertEquals(taken, []);
  await world.advance(REFRESH_MS);
  assertEquals(taken, [{ kind: "end" }]);
  await system.stop();
});

Deno.test("a client whose job has failed ends with its error, whatever code it has", async () => {
  for (const code of ["aborted", "unavailable"] as const) {
    const error = { code, message: "the job failed" };
    const { system, feed } = clientOf({ finished: false, error });
    const thrown = await assertRejects(() => Promise.resolve(feed.take()), LeatError);
    assertEquals([thrown.code, thrown.message], [code, "the job failed"]);
    await system.stop();
  }
});

Deno.test("a save whose heartbeat's answer was not kept continues", async () => {
  const { world, system } = systemWith([NOT_KEPT, { finished: true }]);
  const home = { system, dispatcher: dispatcherAt("bench"), release: () => {} };
  const save = { folder: "/saved", overwrite: false };
  let isSaved = false;
  const saved = saveByService(Dataset.range(3).node, "bench", { save }, () => home)
    .then(() => isSaved = true);
  await settle();
  assertEquals(isSaved, false);
  await world.advance(REFRESH_MS);
  await saved;
  await system.stop();
});

/** Aborts a save while its heartbeat finds that the dispatcher forgot the client, which joins again. */
async function forgottenAtAbort(joinAgain: () => unknown) {
  const reason = new Error("aborted");
  const abort = new AbortController();
  const asked: string[] = [];
  const { system, world } = systemWith([], {
    openIteration: () => {
      asked.push("openIteration");
      if (abort.signal.aborted) return joinAgain();
      return { jobId: 1, iterationId: 1, clientId: 1, clusterId: "c" };
    },
    clientHeartbeat: () => {
      asked.push("clientHeartbeat");
      abort.abort(reason);
      throw new LeatError("not_found", "There is no such client");
    },
    releaseClient: (request: { readonly clientId: number; readonly cancel?: boolean }) => {
      asked.push(`releaseClient ${request.clientId} ${request.cancel}`);
      return null;
    },
  });
  const home = { system, dispatcher: dispatcherAt("bench"), release: () => {} };
  const save = { folder: "/saved", overwrite: false };
  const options = { save, signal: abort.signal };
  const saved = saveByService(Dataset.range(3).node, "bench", options, () => home);
  const rejected = assertRejects(() => saved);
  await settle();
  assertEquals(asked, ["openIteration", "clientHeartbeat"], "it pauses first");
  await world.advance(REFRESH_MS);
  assertEquals(await rejected, reason);
  await system.stop();
  return asked.slice(2);
}

Deno.test("a save whose forgotten client is aborted joins once more to end it", async () => {
  const joined = { jobId: 1, iterationId: 1, clientId: 2, clusterId: "c" };
  assertEquals(
    await forgottenAtAbort(() => joined),
    ["openIteration", "clientHeartbeat", "releaseClient 2 true"],
  );
});

Deno.test("a save whose forgotten client is aborted and refused rejects with the signal's reason", async () => {
  const asked = await forgottenAtAbort(() => {
    throw new LeatError("permission_denied", "The token was withdrawn");
  });
  assertEquals(asked[0], "openIteration");
});
