/**
 * A client may call itself by any address. Neither dispatcher nor worker may dial that address: an
 * attacker could make them connect to any port of their network.
 */
import { datasetDefinition } from "../../actors/client/starting.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import { Dataset, serveDispatcher, serveWorker } from "../../mod.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { assert, assertEquals } from "../assert.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
const PATIENCE = { timeoutMs: 60_000 };

/** Listens, and counts connections. */
class Victim implements Disposable {
  readonly address: string;
  calls = 0;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });

  constructor() {
    this.address = `ws://127.0.0.1:${this.#listener.addr.port}`;
    this.#count();
  }

  async #count(): Promise<void> {
    for await (const conn of this.#listener) {
      this.calls++;
      conn.close();
    }
  }

  [Symbol.dispose](): void {
    this.#listener.close();
  }
}

Deno.test("a forged address is dialled by neither dispatcher nor worker", async () => {
  using victim = new Victim();
  await using dispatcher = await serveDispatcher(QUIET);
  const service = dispatcher.address;
  const worker = await serveWorker({ ...QUIET, dispatcher: service, heartbeatMs: 50 });
  const world = new DenoWorld(QUIET);
  const forger = new ActorSystem({
    node: victim.address,
    world,
    connector: webSocketConnector({ world }),
  });
  const numbers = Dataset.range(1_000_000).repeat();
  const ref = dispatcherAt(service);
  const { datasetId } = await forger.ask(
    ref,
    "registerDataset",
    datasetDefinition(numbers.node),
    PATIENCE,
  );
  const { clientId } = await forger.ask(ref, "openIteration", {
    requestId: "forged",
    jobName: "shared",
    parameters: { datasetId, processingMode: "OFF", sharing: false },
    repetition: 0,
  }, PATIENCE);
  const [task] = await until(async () => {
    const { tasks } = await forger.ask(ref, "clientHeartbeat", { clientId }, PATIENCE);
    return tasks.length > 0 && tasks;
  }, 10);
  // The worker keeps an answer that was never acknowledged.
  const request = { clientId, sequence: 1, acknowledged: 0 };
  await forger.ask(task!.source, "getElement", request, PATIENCE);
  await forger.stop();
  // The dispatcher has news for the clients of the job, and the worker tries to reach its readers
  // again.
  await using another = await serveWorker({ ...QUIET, dispatcher: service, heartbeatMs: 50 });
  await using reader = numbers.distribute({ service, jobName: "shared" }).iterator();
  await until(async () => {
    assert(!(await reader.next()).done);
    const { jobs } = await dispatcher.describe();
    return jobs[0]!.iterations[0]!.tasks.length === 2;
  });
  await worker.close({ drainTimeoutMs: 1_000 });
  assertEquals(victim.calls, 0);
  assert(another.address !== victim.address);
});
