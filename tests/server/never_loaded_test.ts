/** A process in which no thread loads any more. */
import { RunningWorker } from "../../server/running_worker.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { CLOSED_PORT } from "../lib/closed_port.ts";

// Messages to a thread that never reads them stay there, with their ports.
Deno.test("a worker gives up on the first thread that neither loads nor ends", {
  sanitizeResources: false,
}, async () => {
  const kept: MessagePort[] = [];
  await using worker = new RunningWorker({
    dispatcher: `ws://127.0.0.1:${CLOSED_PORT}`,
    logLevel: "off",
    runawayThreadsMax: 1_000,
    runawayAfterMs: 1,
  }, {
    startThread(_program, _name, port) {
      kept.push(port);
      return () => {};
    },
    loadTimeoutMs: 1,
  });
  const { code, message } = await worker.failed;
  assertEquals(code, "unavailable");
  assertStringIncludes(message, "neither loaded nor ended");
  await worker.close();
  for (const port of kept) port.close();
});
