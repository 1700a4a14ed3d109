/** The actors that a node starts on request of another node. */

import { assertEquals, assertStringIncludes } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { nodeActorOf } from "../../../actors/runtime/node/node_actor.ts";
import { LocalFleet } from "../../../server/cluster/local_fleet.ts";
import { serveDispatcher, serveWorker } from "../../../mod.ts";
import { PATIENCE_MS } from "../../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
/** Asked again if a slow machine does not link the nodes in time. */
const SOON = { timeoutMs: PATIENCE_MS, attemptMs: 60_000 };

Deno.test("a worker refuses to start a cache or a scheduler with a malformed configuration, and starts nothing", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using worker = await serveWorker({ ...QUIET, dispatcher: dispatcher.address });
  const fleet = new LocalFleet("asker", QUIET.logLevel);
  const { home } = fleet;
  const node = nodeActorOf(worker.address);
  const task = { node: worker.address, path: "/worker/task-1", incarnation: "0" };
  const cases: [kind: string, config: unknown, named: string][] = [
    ["cache", null, "an object"],
    ["cache", {}, "task is missing"],
    ["cache", { task: 7, windowBytesMax: 1 }, "task must be an object"],
    ["cache", { task, windowBytesMax: "1 GiB" }, "windowBytesMax must be a count"],
    ["cache", { task, windowBytesMax: -1 }, "windowBytesMax must be a count"],
    ["reads", { task, skipAfterMs: 1 }, "numConsumers is missing"],
    ["reads", { task, numConsumers: 1.5, skipAfterMs: 1 }, "numConsumers must be a count"],
    ["reads", { task, numConsumers: 2, skipAfterMs: 1, heldBytesMax: null }, "heldBytesMax"],
  ];
  const actors = async () =>
    (await home.ask(node, "list", null, SOON)).map(({ ref }) => ref.path).sort();
  try {
    const before = await actors();
    for (const [number, [kind, config, named]] of cases.entries()) {
      const { code, message } = await home
        .ask(node, "spawn", { kind, name: `odd-${number}`, config }, SOON)
        .then(() => new LeatError("internal", `${kind} was started`), LeatError.from);
      assertEquals(code, "invalid_argument", message);
      assertStringIncludes(message, `cannot start a "${kind}"`);
      assertStringIncludes(message, named);
    }
    assertEquals(await actors(), before);
  } finally {
    await fleet.close();
  }
});
