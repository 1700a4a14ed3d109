/**
 * Another client of the same cluster, with the same token, must not end a job, learn its data, or
 * take elements from it, by guessing sequential ids.
 */
import { datasetDefinition } from "../../actors/client/starting.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import { Dataset, LeatError, serveDispatcher, serveWorker } from "../../mod.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
/** More than a client prefetches. */
const COUNT = 1_000_000;
const PATIENCE = { timeoutMs: 60_000 };

Deno.test("a neighbour neither ends nor reads what is not its own, whatever it names", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  const service = dispatcher.address;
  await using _worker = await serveWorker({ ...QUIET, dispatcher: service, heartbeatMs: 50 });
  const numbers = Dataset.range(COUNT).batch(100);
  const reading = numbers.distribute({ service, processingMode: "DYNAMIC" });
  await using victim = reading.iterator();
  let [count, sum] = [0, 0];
  const take = async () => {
    const { done, value } = await victim.next();
    if (done === true) return false;
    for (const number of value.data) {
      count++;
      sum += Number(number);
    }
    return true;
  };
  assert(await take());

  const world = new DenoWorld(QUIET);
  await using neighbour = new ActorSystem({
    node: "neighbour",
    world,
    connector: webSocketConnector({ world }),
  });
  const ref = dispatcherAt(service);
  const { datasetId } = await neighbour.ask(
    ref,
    "registerDataset",
    { ...datasetDefinition(Dataset.range(7).node), transient: true },
    PATIENCE,
  );
  const parameters = { datasetId, processingMode: "DYNAMIC", sharing: false } as const;
  const own = { requestId: "own", secret: "mine", parameters, repetition: 0 };
  const { clientId } = await neighbour.ask(ref, "openIteration", own, PATIENCE);
  let denied = 0;
  for (let other = Math.max(0, clientId - 2); other <= clientId + 2; other++) {
    if (other === clientId) continue;
    for (const method of ["clientHeartbeat", "releaseClient"] as const) {
      const request = { clientId: other, secret: "mine" };
      const asked = neighbour.ask(ref, method, request, PATIENCE);
      // Releasing a missing one always succeeds.
      const { code } = await asked.then(() => ({ code: "ok" }), (error) => LeatError.from(error));
      if (code === "permission_denied") denied++;
    }
  }
  assertEquals(denied, 2, "the victim's client came right before");
  // Its own task shows how tasks are named.
  const [task] = await until(async () => {
    const request = { clientId, secret: "mine" };
    const { tasks } = await neighbour.ask(ref, "clientHeartbeat", request, PATIENCE);
    return tasks.length > 0 && tasks;
  }, 10);
  const { node, path } = task!.source;
  const [, folder, id] = /^(.*\/task-)(\d+)-[0-9a-f]{16}$/.exec(path)!;
  for (let other = Math.max(0, Number(id) - 2); other <= Number(id) + 1; other++) {
    const names = [`${other}`, `${other}${path.slice(folder!.length + id!.length)}`];
    for (const name of names.filter((name) => folder + name !== path)) {
      const source: Ref<ElementSourceProtocol> = { node, path: folder + name };
      const request = { clientId: 1, sequence: 1, acknowledged: 1_000 };
      const error = await assertRejects(
        () => neighbour.ask(source, "getElement", request, PATIENCE),
        LeatError,
      );
      assertEquals(error.code, "not_found");
    }
  }
  while (await take());
  assertEquals({ count, sum }, { count: COUNT, sum: COUNT * (COUNT - 1) / 2 });
});
