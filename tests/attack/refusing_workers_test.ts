/**
 * A server that refuses a client at the address of a worker, because it is another worker or no worker
 * at all, must cost the client no other worker.
 */
import { dispatcherAt, type TaskStatus } from "../../actors/dispatcher/protocol.ts";
import type { AccessRole } from "../../actors/runtime/identity.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import { Dataset, LeatError, serveDispatcher, serveWorker } from "../../mod.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { Homes } from "../../platform/nodes/client_homes.ts";
import { DISPATCHER } from "../../platform/nodes/node_tokens.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { workIn } from "../actors/dispatcher/lib.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
const PATIENCE = { timeoutMs: 60_000 };

const entry = (name: string, role: AccessRole) => ({ name, role, token: `token-of-${name}-0123` });
const [ONE, LIAR, TEAM] = [
  entry("one", "worker"),
  entry("liar", "worker"),
  entry("team", "client"),
];

Deno.test("a worker that registers another spelling of a worker's address ends no iteration", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [ONE, LIAR, TEAM] });
  const service = dispatcher.address;
  await using one = await serveWorker({
    ...{ ...QUIET, dispatcher: service, heartbeatMs: 50, token: ONE.token, tokens: [TEAM] },
  });
  // Not a worker server: clients of this process would read from that without dialling it.
  const node = one.address.replace("127.0.0.1", "LocalHost");
  const world = new DenoWorld(QUIET);
  const credential = { token: LIAR.token, target: "service", identity: DISPATCHER } as const;
  const connector = webSocketConnector({ world, credentials: () => credential });
  await using liar = new ActorSystem({ node, world, connector });
  const self = { node, path: "/", incarnation: `${liar.id.incarnation}-1` };
  const heartbeat = async (tasks: readonly TaskStatus[]) =>
    workIn(
      await liar.ask(dispatcherAt(service), "workerHeartbeat", {
        ...{ name: "liar", worker: self, tags: [], tasks },
      }, PATIENCE),
    );
  await heartbeat([]);
  const numbers = Dataset.range(1_000).repeat()
    .distribute({ service, token: TEAM.token, processingMode: "OFF" });
  await using iterator = numbers.iterator();
  const next = async () => assertEquals((await iterator.next()).done, false);
  await next();
  const [task] = (await heartbeat([])).newTasks;
  const source = { ...self, path: "/task" };
  await heartbeat([{ taskId: task!.taskId, source, completed: false }]);
  // The client has asked the liar, and reads on.
  await until(async () => {
    await next();
    const [job] = (await dispatcher.describe()).jobs;
    const reads = job?.iterations[0]?.readers[0]?.figures?.reads ?? [];
    return reads.some(({ worker }) => worker === "liar");
  }, 10);
  for (let i = 0; i < 1_000; i++) await next();
});

Deno.test("a worker that is gone, and whose address refuses the dispatcher, fails no new iteration", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [ONE, LIAR, TEAM] });
  const service = dispatcher.address;
  await using one = await serveWorker({
    ...{ ...QUIET, dispatcher: service, heartbeatMs: 50, token: ONE.token, tokens: [TEAM] },
  });
  const node = one.address.replace("127.0.0.1", "LocalHost");
  const credential = { token: LIAR.token, target: "service", identity: DISPATCHER } as const;
  const connector = webSocketConnector({
    world: new DenoWorld(QUIET),
    credentials: () => credential,
  });
  await using liar = new ActorSystem({ node, world: new DenoWorld(QUIET), connector });
  const worker = { node, path: "/", incarnation: `${liar.id.incarnation}-1` };
  const beat = { name: "liar", worker, tags: [], tasks: [] };
  await liar.ask(dispatcherAt(service), "workerHeartbeat", beat, PATIENCE);
  await liar.stop();
  const numbers = Dataset.range(10)
    .distribute({ service, token: TEAM.token, processingMode: "DETERMINISTIC" });
  // Iterations try workers in turn to list their splits.
  for (let i = 0; i < 2; i++) assertEquals((await Array.fromAsync(numbers)).length, 10);
});

for (const status of ["401 Unauthorized", "403 Forbidden", "101 Switching Protocols"]) {
  Deno.test(`a false server that answers ${status} costs a client no more than its worker`, async () => {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const answering = (async () => {
      for await (const conn of listener) {
        await conn.read(new Uint8Array(4_096));
        await conn.write(
          new TextEncoder().encode(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`),
        );
        conn.close();
      }
    })();
    const address = `ws://127.0.0.1:${listener.addr.port}`;
    /** The error of asking the false server, as a client of a service. */
    const ask = async (service: string) => {
      const home = new Homes().open(service, { token: TEAM.token });
      const source: Ref<ElementSourceProtocol> = { node: address, path: "/task" };
      const asked = home.system.ask(source, "stats", null, { timeoutMs: 60_000 });
      const error = await assertRejects(() => asked, LeatError);
      home.release();
      return error;
    };
    const { code, message } = await ask("ws://127.0.0.1:1");
    assertEquals(code, "unavailable");
    assertStringIncludes(message, address);
    // At the service's own address waiting could not help.
    const isFinal = (await ask(address)).code !== "unavailable";
    assertEquals(isFinal, !status.startsWith("101"));
    listener.close();
    await answering;
  });
}
