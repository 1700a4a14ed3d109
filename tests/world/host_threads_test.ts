/**
 * The threads that serve confined ones: none is kept that has died.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { sandboxGrants } from "../../world/sandbox/grants.ts";
import { HostThreads } from "../../world/sandbox/host_threads.ts";
import { assertEquals } from "../assert.ts";
import { KnownWorker, knowWorkers } from "../lib/known_workers.ts";

/** Runs with threads that the test can have die. */
async function withThreads(test: (hosts: HostThreads) => Promise<void>): Promise<void> {
  using _known = knowWorkers();
  const hosts = new HostThreads(sandboxGrants({}), {});
  try {
    await test(hosts);
  } finally {
    hosts.close();
    for (const { port1, port2 } of channels.splice(0)) {
      port1.close();
      port2.close();
    }
  }
}

const channels: MessageChannel[] = [];

/** A port for a thread to serve at. */
function port(): MessagePort {
  const channel = new MessageChannel();
  channels.push(channel);
  return channel.port1;
}

Deno.test("HostThreads drops a thread that has died, and one that dies while it is given back", async () => {
  await withThreads(async (hosts) => {
    const deaths: string[] = [];
    for (const dieFirst of [true, false]) {
      const thread = await hosts.serve(port(), (why) => deaths.push(why));
      const worker = KnownWorker.all.at(-1)!;
      if (dieFirst) worker.die();
      const given = hosts.give(thread);
      if (!dieFirst) worker.die();
      await given;
      assertEquals(worker.terminations, 1);
    }
    assertEquals(KnownWorker.all.length, 2, "neither was handed out again");
    assertEquals(deaths, ["died for the test"]);
  });
});

Deno.test("HostThreads tells one of a thread that dies before it serves, and drops it", async () => {
  await withThreads(async (hosts) => {
    const serving = hosts.serve(port(), () => {}).catch(LeatError.from);
    const [worker] = KnownWorker.all;
    worker!.die();
    assertEquals((await serving as LeatError).code, "unavailable");
    assertEquals(worker!.terminations, 1);
  });
});

Deno.test("HostThreads hands a thread out again that was given back", async () => {
  await withThreads(async (hosts) => {
    await hosts.give(await hosts.serve(port(), () => {}));
    await hosts.serve(port(), () => {});
    assertEquals(KnownWorker.all.length, 1);
    hosts.close();
    assertEquals(KnownWorker.all[0]!.terminations, 1);
  });
});
