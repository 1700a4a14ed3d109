/**
 * A program with the same token that has joined the same job knows the names of its tasks, and can
 * guess the numbers of its clients. It must not take, acknowledge or end what another client reads.
 */
import { datasetDefinition } from "../../actors/client/starting.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import { Dataset, serveDispatcher, serveWorker } from "../../mod.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { assertEquals } from "../assert.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
const PATIENCE = { timeoutMs: 60_000 };
const SECRET = { secret: "mine" };
/** Much more than a client prefetches. */
const COUNT = 3_000;
/** Clients' numbers before one's own, among which the victim's is. */
const GUESSES = 4;

Deno.test("who joins a job takes, acknowledges and ends nothing of its other clients", async () => {
  await attack(Dataset.range(COUNT), "DYNAMIC");
});

Deno.test("a client that joins a shared job cannot move another client in its window", async () => {
  await attack(Dataset.range(COUNT).repeat(), "OFF", { trainerId: "victim" });
});

async function attack(
  numbers: Dataset<number>,
  processingMode: "DYNAMIC" | "OFF",
  sharing?: { readonly trainerId: string },
): Promise<void> {
  await using dispatcher = await serveDispatcher(QUIET);
  const service = dispatcher.address;
  await using _worker = await serveWorker({ ...QUIET, dispatcher: service, heartbeatMs: 50 });
  await using victim = numbers.distribute({
    ...{ service, processingMode, jobName: "shared", maxOutstandingRequests: 2 },
    ...(sharing && { sharing }),
  }).iterator();
  const read: number[] = [];
  const take = async () => {
    const { done, value } = await victim.next();
    if (done !== true) read.push(value);
    return done !== true;
  };
  while (read.length < 20) await take();

  const world = new DenoWorld(QUIET);
  const connector = webSocketConnector({ world });
  await using joiner = new ActorSystem({ node: "joiner", world, connector });
  const ref = dispatcherAt(service);
  const definition = { ...datasetDefinition(numbers.node), transient: true } as const;
  const { datasetId } = await joiner.ask(ref, "registerDataset", definition, PATIENCE);
  const parameters = { datasetId, processingMode, sharing: sharing !== undefined };
  const { clientId } = await joiner.ask(
    ref,
    "openIteration",
    { requestId: "own", ...SECRET, parameters, repetition: 0, jobName: "shared" },
    PATIENCE,
  );
  const [task] = await until(async () => {
    const { tasks } = await joiner.ask(ref, "clientHeartbeat", { clientId, ...SECRET }, PATIENCE);
    return tasks.length > 0 && tasks;
  }, 10);
  const source: Ref<ElementSourceProtocol> = task!.source;
  // Its own trainer id, or it would move the pointer that the victim reads by.
  const trainer = sharing === undefined ? {} : { trainerId: "joiner" };
  let taken = 0;
  for (let other = clientId - GUESSES; other < clientId; other++) {
    for (const acknowledged of [read.length + 1, 1_000_000]) {
      const forged = { clientId: other, sequence: acknowledged + 1, acknowledged, ...trainer };
      const { kind } = await joiner.ask(
        source,
        "getElement",
        { ...forged, waitMs: 1_000 },
        PATIENCE,
      );
      if (kind === "element") taken++;
    }
    await joiner.ask(source, "leave", { clientId: other }, PATIENCE);
  }
  while (read.length < COUNT - taken && await take());
  const expected = Array.from({ length: COUNT }, (_, i) => i);
  if (sharing !== undefined) assertEquals(read, expected.slice(0, read.length));
  // What the joiner was given is what any client of the job may take, each element once.
  else assertEquals([read.length, new Set(read).size], [COUNT - taken, COUNT - taken]);
}
