/** Dispatcher and worker as servers of this process: the sanitizers detect leaks. */

import { Dataset, LeatError, serveDispatcher, serveWorker, type Tensor } from "../../mod.ts";
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;

async function numbersOf(service: string, elements: number): Promise<number[]> {
  const batches = Dataset.range(elements).batch(10).distribute({
    service,
    processingMode: "DYNAMIC",
  });
  const seen: number[] = [];
  for await (const batch of batches) seen.push(...(batch as Tensor).data as Float64Array);
  return seen.sort((a, b) => a - b);
}

/** Whether this machine has an IPv6 loopback. */
function hasIPv6(): boolean {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}

Deno.test("serveDispatcher and serveWorker serve a job, and leave nothing behind when closed", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, workerTimeoutMs: 600_000 });
  await using worker = await serveWorker({ ...QUIET, dispatcher: dispatcher.address });
  assertMatch(dispatcher.address, /^ws:\/\/127\.0\.0\.1:\d+$/);
  assertEquals(worker.name, worker.address);
  assertEquals(
    await numbersOf(dispatcher.address, 500),
    Array.from({ length: 500 }, (_, i) => i),
  );
  // By another of its names: whoever answers there is the node.
  const alias = dispatcher.address.replace("127.0.0.1", "localhost");
  assertEquals((await numbersOf(alias, 50)).length, 50);
  const { workers } = await dispatcher.describe();
  assertEquals(workers.map(({ name, alive }) => [name, alive]), [[worker.name, true]]);
  await Promise.all([worker.close(), worker.close()]);
  // It has deregistered: a timeout would take longer than this wait.
  await until(async () => (await dispatcher.describe()).workers[0]?.alive === false);
});

Deno.test("WorkerServer.close leaves nothing behind while its dispatcher is unreachable", async () => {
  const dispatcher = await serveDispatcher(QUIET);
  const worker = await serveWorker({
    ...QUIET,
    dispatcher: dispatcher.address,
    advertise: "127.0.0.1:1",
  });
  await dispatcher.close();
  await worker.close({ drainTimeoutMs: 60_000 });
});

Deno.test("WorkerServer.failed reports a refusal, and the worker can still be closed", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, token: "sesame" });
  await using worker = await serveWorker({
    ...QUIET,
    dispatcher: dispatcher.address,
    token: "open",
  });
  const error = await worker.failed;
  assertEquals(error.code, "unauthenticated");
  assertMatch(error.message, new RegExp(`${dispatcher.address}.*${worker.name}`));
});

Deno.test("of two workers of one name the first works, and the second once it is closed", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  const options = { ...QUIET, dispatcher: dispatcher.address, name: "w", heartbeatMs: 50 };
  const nameIsOf = async (address: string) => {
    const { workers } = await dispatcher.describe();
    return workers.some(({ ref, alive }) => alive && ref.node === address);
  };
  const first = await serveWorker(options);
  await until(() => nameIsOf(first.address));
  await using second = await serveWorker(options);
  let hasFailed = false;
  for (const { failed } of [first, second]) failed.then(() => hasFailed = true);
  assertEquals((await numbersOf(dispatcher.address, 500)).length, 500);
  assertEquals([await nameIsOf(first.address), hasFailed], [true, false]);
  await first.close();
  await until(() => nameIsOf(second.address));
  assertEquals((await numbersOf(dispatcher.address, 50)).length, 50);
});

Deno.test({
  name: "servers accept an IPv6 address with or without brackets",
  ignore: !hasIPv6(),
  fn: async () => {
    for (const hostname of ["::1", "[::1]"]) {
      await using dispatcher = await serveDispatcher({ ...QUIET, hostname });
      assertMatch(dispatcher.address, /^ws:\/\/\[::1\]:\d+$/);
      const { address } = dispatcher;
      await using _ = await serveWorker({ ...QUIET, dispatcher: address, hostname });
      assertEquals((await numbersOf(address, 50)).length, 50);
    }
  },
});

Deno.test("serveDispatcher and serveWorker refuse invalid settings before they listen", async () => {
  const code = async (start: () => Promise<unknown>) =>
    (await assertRejects(start, LeatError)).code;
  const dispatcher = "ws://127.0.0.1:1";
  assertEquals(await code(() => serveDispatcher({ hostname: "0.0.0.0" })), "failed_precondition");
  assertEquals(await code(() => serveDispatcher({ cert: "x" })), "invalid_argument");
  assertEquals(await code(() => serveDispatcher({ advertise: "x/y" })), "invalid_argument");
  assertEquals(await code(() => serveDispatcher({ advertise: "x:0" })), "invalid_argument");
  assertEquals(await code(() => serveDispatcher({ token: "a b" })), "invalid_argument");
  assertEquals(await code(() => serveDispatcher({ workers: ["a", "b\0"] })), "invalid_argument");
  assertEquals(await code(() => serveWorker({ dispatcher: "x" })), "invalid_argument");
  assertEquals(await code(() => serveWorker({ dispatcher, name: "a\0" })), "invalid_argument");
  assertEquals(
    await code(() => serveWorker({ dispatcher, hostname: "0.0.0.0" })),
    "failed_precondition",
  );
});
