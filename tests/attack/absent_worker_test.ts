/**
 * A worker whose connection is away, as in a restart or a fault of the network: another worker's
 * token must neither speak for its tasks nor hold its address, so that it stays out.
 */
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import type { ActorContext } from "../../actors/runtime/actor.ts";
import type { AccessRole } from "../../actors/runtime/identity.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import { datasetDefinition } from "../../actors/client/starting.ts";
import type { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import { taskForgeryOf } from "../../actors/dispatcher/members/speaking.ts";
import type { WorkerProtocol } from "../../actors/worker/protocol.ts";
import { Dataset, serveDispatcher } from "../../mod.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { rejection } from "../actors/runtime/nodes.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";

const QUIET = { logLevel: "off" } as const;
/** A worker that is away is not lost before the test has ended, on any machine. */
const PATIENT = { ...QUIET, workerTimeoutMs: 600_000, workerGraceMs: 600_000 } as const;
const PATIENCE = { timeoutMs: 60_000 };
const entry = (name: string, role: AccessRole) => ({ name, role, token: `token-of-${name}-0123` });
const ONE = entry("one", "worker");
const TWO = entry("two", "worker");
const TEAM = entry("team", "client");

/** A node with a token, which dials and answers nobody. */
function nodeWith({ token }: typeof ONE, node: string): ActorSystem {
  const world = new DenoWorld(QUIET);
  const identity = { name: "whoever answers", role: "admin" } as const;
  const credentials = () => ({ token, target: "service", identity }) as const;
  return new ActorSystem({ node, world, connector: webSocketConnector({ world, credentials }) });
}

/** A worker whose parts a test plays. */
function actorOf(system: ActorSystem): ActorContext<WorkerProtocol> {
  let actor: ActorContext<WorkerProtocol> | undefined;
  system.spawn<WorkerProtocol>({
    name: "worker",
    create: (context) => (actor = context, { handlers: {} as never }),
  });
  return actor!;
}

Deno.test("a worker with another token can neither act for an absent worker's task nor prevent the worker's return", async () => {
  await using dispatcher = await serveDispatcher({ ...PATIENT, tokens: [ONE, TWO, TEAM] });
  const service = dispatcher.address;
  const at = dispatcherAt(service);
  const address = "ws://worker-one.invalid:1";
  const own = nodeWith(ONE, address);
  const worker = actorOf(own);
  const heartbeat = (actor: ActorContext<WorkerProtocol>) => {
    const report = { name: "one", worker: actor.self, tags: [], tasks: [] };
    return actor.ask(at, "workerHeartbeat", report, PATIENCE);
  };
  await heartbeat(worker);
  await using client = nodeWith(TEAM, "trainer");
  const definition = datasetDefinition(Dataset.range(1_000).node);
  const { datasetId } = await client.ask(at, "registerDataset", definition, PATIENCE);
  const parameters = { datasetId, processingMode: "DYNAMIC", sharing: false } as const;
  const opening = { requestId: "1", secret: "mine", parameters, repetition: 0 };
  await client.ask(at, "openIteration", opening, PATIENCE);
  const news = await heartbeat(worker);
  const { taskId } = news.kind === "work" ? news.newTasks[0]! : { taskId: -1 };
  const split = { taskId, number: 1, source: 0, repetition: 0 };
  // Its node goes without a word, as in a crash.
  await own.stop();
  await using squatter = nodeWith(TWO, address);
  const refused = await rejection(squatter.ask(at, "getSplit", split, PATIENCE), "unavailable");
  assertStringIncludes(refused.message, `"two" calls its node "${address}"`);
  assertStringIncludes(refused.message, 'the address of a worker of "one"');
  // The same owner under the worker's address, in another life: not the one that has the task.
  await using again = nodeWith(ONE, address);
  const late = await rejection(again.ask(at, "getSplit", split, PATIENCE), "permission_denied");
  assertStringIncludes(late.message, `speaks for task ${taskId}`);
  const died = { taskId, number: 1, error: { code: "aborted", message: "forged" } } as const;
  await rejection(again.ask(at, "runnerDied", died, PATIENCE), "permission_denied");
  assertEquals((await heartbeat(actorOf(again))).kind, "takeover", "it may come back");
});

Deno.test("only the worker of a task can act for it: same identity, node and incarnation", () => {
  const ref = { node: "ws://one", path: "/worker", incarnation: "aa-1" };
  const state = {
    tasks: new Map([[7, { worker: "w" }]]),
    workers: new Map([["w", { ref, owner: "one" }]]),
  } as unknown as DispatcherState;
  const codeOf = (by: Partial<typeof ref>, sender: typeof ONE) =>
    taskForgeryOf(state, 7, { source: { ...ref, path: "/worker/task-7", ...by }, sender })?.code;
  assertEquals(codeOf({ incarnation: "aa-9" }, ONE), undefined);
  assertEquals(codeOf({ incarnation: "aa-9" }, TWO), "permission_denied");
  assertEquals(codeOf({ incarnation: "bb-9" }, ONE), "permission_denied");
  assertEquals(codeOf({ incarnation: "aa-9", node: "ws://two" }, ONE), "permission_denied");
  assertEquals(codeOf({ incarnation: "aa-9" }, entry("boss", "admin")), undefined);
});
