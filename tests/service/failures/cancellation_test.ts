/**
 * A reader that stops is released at once: with requests open, while the dispatcher is down, and
 * while a pipeline produces an element that never comes. A fault would hang the test, or leak
 * something that the test runner detects.
 */
import { Dataset, LeatError, serveDispatcher, serveWorker } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { CLOSED_PORT } from "../../lib/closed_port.ts";
import { testInline, testOnEach } from "../lib/carriers.ts";
import { until } from "../../lib/until.ts";

/**
 * Three elements, and one that never comes: the function blocks its thread. (It does not spin: Deno
 * never ends a spinning thread, and each would occupy a core during all later tests.)
 */
const endless = () =>
  Dataset.range(1_000).map((x) => {
    if (x === 3) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    return x;
  });

/** Reads the elements that come, the same from each worker, and requests the one that does not. */
async function readingOn(dataset: Dataset<number>, { workers = 1 } = {}) {
  const iterator = dataset.iterator();
  for (let element = 0; element < 3 * workers; element++) await iterator.next();
  const open = iterator.next();
  // Accepts any end.
  const ended = open.then(({ done }) => done === true, (error) => error instanceof LeatError);
  return { iterator, ended };
}

testOnEach("an iterator is disposed while an element is made that never comes", async (start) => {
  await using cluster = await start({ workers: 1, runners: "thread" });
  const { iterator, ended } = await readingOn(endless().distribute({ service: cluster }));
  await iterator.return!();
  assert(await ended);
});

testOnEach("a cluster is closed while an element is made that never comes", async (start) => {
  const cluster = await start({ workers: 2, runners: "thread" });
  const endlessly = endless().distribute({ service: cluster });
  const { iterator, ended } = await readingOn(endlessly, { workers: 2 });
  await cluster.close();
  assert(await ended);
  await iterator.return!();
});

testInline("a loop that ends with an error leaves no client behind", async (start) => {
  await using cluster = await start({ workers: 2 });
  const failing = Dataset.range(10).repeat().map((x) => {
    if (x === 3) throw new Error("three");
    return x;
  });
  await assertRejects(async () => {
    for await (const _ of failing.distribute({ service: cluster }));
  }, LeatError);
  const isRead = async () =>
    (await cluster.describe()).jobs.some(({ iterations }) =>
      iterations.some(({ clients }) => clients > 0)
    );
  await until(async () => !(await isRead()));
});

testInline("an iterator is disposed while the dispatcher is away", async (start) => {
  await using cluster = await start({ workers: 1, runners: "thread" });
  const { iterator, ended } = await readingOn(endless().distribute({ service: cluster }));
  await cluster.stopDispatcher();
  await iterator.return!();
  assert(await ended);
});

testInline("a worker that dies with requests open ends the reader's wait", async (start) => {
  await using cluster = await start({ workers: 1, runners: "thread" });
  const { iterator, ended } = await readingOn(endless().distribute({ service: cluster }));
  await cluster.stopWorker(0);
  await iterator.return!();
  assert(await ended);
});

testInline("many iterators are disposed at once, whether they have begun or not", async (start) => {
  await using cluster = await start({ workers: 2 });
  const dataset = Dataset.range(1_000).repeat().distribute({ service: cluster });
  const iterators = Array.from({ length: 20 }, () => dataset.iterator());
  // Some have not begun, some wait for an answer of the dispatcher, some for elements.
  const open = iterators.slice(5).map((iterator) => iterator.next());
  await Promise.all(iterators.slice(15).map((iterator) => iterator.next()));
  await Promise.all(iterators.map((iterator) => iterator.return!()));
  await Promise.allSettled(open);
  await until(async () => !(await cluster.actors()).some(({ kind }) => kind === "client"));
});

for (const first of ["dispatcher", "worker"] as const) {
  Deno.test(`servers are closed, the ${first} first, while a trainer waits for an element`, async () => {
    const listen = { hostname: "127.0.0.1", port: 0, logLevel: "off" } as const;
    const dispatcher = await serveDispatcher(listen);
    const worker = await serveWorker({ ...listen, dispatcher: dispatcher.address });
    const service = dispatcher.address;
    const { iterator, ended } = await readingOn(endless().distribute({ service }));
    const servers = first === "worker" ? [worker, dispatcher] : [dispatcher, worker];
    for (const server of servers) await server.close();
    await iterator.return!();
    assert(await ended);
    // The node that dialled out is stopped with its last iterator.
    await new Promise((resolve) => setTimeout(resolve, 0));
  });
}

Deno.test("an iterator that waits for a missing dispatcher can be disposed", async () => {
  const service = `ws://127.0.0.1:${CLOSED_PORT}`;
  const iterator = Dataset.range(10).distribute({ service }).iterator();
  const open = iterator.next();
  await iterator.return!();
  assertEquals((await open).done, true);
});
