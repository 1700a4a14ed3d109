/**
 * An incarnation is no secret: a listener tells its own to every dialler, and references to tasks
 * contain those of workers. Who uses another node's incarnation must neither use up its numbers, or
 * its messages would be dropped as old, nor keep it from linking.
 */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { AccessRole } from "../../actors/runtime/identity.ts";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { Dataset, serveDispatcher, serveWorker } from "../../mod.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { openHome } from "../../platform/nodes/client_homes.ts";
import { LeatError } from "../../core/error.ts";
import { diallerName, webSocketConnector } from "../../transport/web_socket.ts";
import { isNameOfOther } from "../../transport/web_socket/tokens/proof.ts";
import { assertEquals, assertRejects } from "../assert.ts";
import { soon } from "../cluster/lib.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
const entry = (name: string, role: AccessRole) => ({ name, role, token: `token-of-${name}-0123` });
const ONE = entry("one", "worker");
const TWO = entry("two", "worker");
const TEAM = entry("team", "client");
/** More than any node has sent. */
const FAR = 2 ** 50;

/** A link with a token, under any name and incarnation. */
function linkTo(
  address: string,
  token: string,
  target: "service" | "node",
  local: NodeId,
): Promise<Link> {
  const world = new DenoWorld(QUIET);
  const identity = { name: "whoever answers", role: "admin" } as const;
  const credentials = () => ({ token, target, identity });
  return webSocketConnector({ world, credentials }).connect(address, local);
}

/** Sends messages of each actor that the incarnation may have; resolves when they have arrived. */
async function useUpNumbers(link: Link, incarnation: string, target: Ref): Promise<void> {
  const ofActor = (actor: number) => ({
    ...{ target, number: FAR, method: "hello", body: null },
    source: { node: "thief", path: "/x", incarnation: `${incarnation}-${actor}` },
  });
  const answer = new Promise((resolve) => link.start(resolve));
  for (let actor = 1; actor <= 60; actor++) {
    link.send({ kind: "tell", ...ofActor(actor) }, false);
  }
  link.send({ kind: "ask", ...ofActor(61), id: 1, timeoutMs: 60_000 }, false);
  await soon("an answer to the thief", answer);
}

/** The answer to the first message of an actor of that node. */
async function answerOver(link: Link, local: NodeId, target: Ref): Promise<Envelope> {
  const answer = new Promise<Envelope>((resolve) => link.start(resolve));
  const source = { node: local.node, path: "/x", incarnation: `${local.incarnation}-1` };
  const ask = { kind: "ask", source, target, number: 1, id: 1, method: "hello" } as const;
  link.send({ ...ask, body: null, timeoutMs: 60_000 }, false);
  return await soon("an answer", answer);
}

Deno.test("a program that uses a dispatcher's incarnation cannot make a worker ignore the dispatcher", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [ONE, TEAM] });
  const service = dispatcher.address;
  await using worker = await serveWorker({
    ...{ ...QUIET, dispatcher: service, heartbeatMs: 50, token: ONE.token, tokens: [TEAM] },
  });
  await until(async () => (await dispatcher.describe()).workers.length === 1, 10);
  const asked = await linkTo(service, TEAM.token, "service", { node: "thief", incarnation: "1" });
  const { incarnation } = asked.remote;
  asked.close();
  const link = await linkTo(worker.address, TEAM.token, "node", { node: "thief", incarnation });
  await useUpNumbers(link, incarnation, { node: worker.address, path: "/worker" });
  const sum = async () => {
    const numbers = Dataset.range(100).batch(10)
      .distribute({ service, token: TEAM.token, processingMode: "DYNAMIC" });
    let total = 0;
    for await (const { data } of numbers) for (const number of data) total += Number(number);
    return total;
  };
  assertEquals(await soon("the elements", sum()), 4_950);
  link.close();
});

async function useWorkersIncarnationFirst(token: string): Promise<void> {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [ONE, TWO, TEAM] });
  const service = dispatcher.address;
  const incarnation = "ab".repeat(8);
  const target = { node: service, path: "/dispatcher" };
  const thief = await linkTo(service, token, "service", { node: "thief", incarnation });
  await useUpNumbers(thief, incarnation, target);
  const local = { node: "ws://victim", incarnation };
  const victim = await linkTo(service, ONE.token, "service", local);
  assertEquals((await answerOver(victim, local, target)).kind, "reply");
  victim.close();
  thief.close();
}

Deno.test("a client that used a worker's incarnation before the worker came cannot make the dispatcher ignore it", async () => {
  await useWorkersIncarnationFirst(TEAM.token);
});

Deno.test("a worker that used another's incarnation before the other came cannot make the dispatcher ignore it", async () => {
  await useWorkersIncarnationFirst(TWO.token);
});

async function useNameFirst(node: string, owner: string, thief: string): Promise<void> {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [ONE, TEAM] });
  const service = dispatcher.address;
  const incarnation = "ef".repeat(8);
  const { code } = await assertRejects(
    () => linkTo(service, thief, "service", { node, incarnation }),
    LeatError,
    "a name made with another token",
  );
  assertEquals(code, "permission_denied");
  const link = await linkTo(service, owner, "service", { node, incarnation });
  link.close();
}

Deno.test("a worker that uses a client's name first, at a dispatcher where the client has no link, is refused", async () => {
  const node = diallerName("client", "0123456789abcdef", TEAM.token);
  await useNameFirst(node, TEAM.token, ONE.token);
});

Deno.test("a client that uses a local worker's name first, at a dispatcher where the worker has no link, is refused", async () => {
  const node = diallerName("local-worker", "0123456789abcdef", ONE.token);
  await useNameFirst(node, ONE.token, TEAM.token);
});

Deno.test("a local worker's node has a name that only its token's holder may use", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [ONE, TEAM] });
  await using worker = await serveWorker({
    ...{ ...QUIET, dispatcher: dispatcher.address, local: true, token: ONE.token },
  });
  const { address } = worker;
  assertEquals([isNameOfOther(address, ONE.token), isNameOfOther(address, TEAM.token)], [
    false,
    true,
  ]);
});

Deno.test("a client's node has a name that only its token's holder may use", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [ONE, TEAM] });
  const home = openHome(dispatcher.address, { token: TEAM.token });
  const { node } = home.system.id;
  home.release();
  assertEquals([isNameOfOther(node, TEAM.token), isNameOfOther(node, ONE.token)], [false, true]);
});

Deno.test("a worker that uses a client's incarnation cannot make another worker ignore the client", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [ONE, TWO, TEAM] });
  const service = dispatcher.address;
  await using worker = await serveWorker({
    ...{ ...QUIET, dispatcher: service, heartbeatMs: 50, token: ONE.token, tokens: [TWO, TEAM] },
  });
  const target = { node: worker.address, path: "/worker" };
  const local = { node: "reader", incarnation: "cd".repeat(8) };
  const thief = await linkTo(worker.address, TWO.token, "node", { ...local, node: "thief" });
  await useUpNumbers(thief, local.incarnation, target);
  const client = await linkTo(worker.address, TEAM.token, "node", local);
  // Workers have no such method, but an ignored request would get no answer at all.
  assertEquals((await answerOver(client, local, target)).kind, "failure");
  client.close();
  thief.close();
});
