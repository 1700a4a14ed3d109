/** Failures in a service, end to end, on every carrier (paper section 3.4). */
import { Dataset, LeatError, LocalCluster, type Tensor } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { CLOSED_PORT } from "../../lib/closed_port.ts";
import { numbersOf, testOnEach, upTo } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { PATIENCE_MS, until } from "../../lib/until.ts";

/** For stopping a worker: its clients are awaited on any machine. */
const PATIENTLY = { graceful: true, drainTimeoutMs: 120_000 } as const;

testOnEach(
  "DYNAMIC delivers at most once when a worker dies, and ends",
  async (start) => {
    await using cluster = await start({ workers: 3, workerTimeoutMs: 500 });
    const dataset = Dataset.range(2_000).batch(5).distribute({
      service: cluster,
      processingMode: "DYNAMIC",
      maxOutstandingRequests: 6,
    });
    const seen: number[] = [];
    let batches = 0;
    for await (const batch of dataset) {
      seen.push(...batch.data as Float64Array);
      if (++batches === 40) await cluster.stopWorker(0);
    }
    assertEquals(new Set(seen).size, seen.length, "no element twice");
    // Splits of the dead worker are lost; earlier elements are not.
    assert(seen.length > 40 * 5, `${seen.length} of 2000 arrived`);
  },
);

testOnEach("a worker that comes back takes part again", async (start) => {
  await using cluster = await start({ workers: 1, workerTimeoutMs: 500 });
  const dataset = Dataset.range(400).batch(2).distribute({
    service: cluster,
    processingMode: "DYNAMIC",
    maxOutstandingRequests: 2,
  });
  const seen: number[] = [];
  let batches = 0;
  for await (const batch of dataset) {
    seen.push(...batch.data as Float64Array);
    if (++batches === 20) {
      await cluster.stopWorker(0);
      await cluster.restartWorker(0);
    }
  }
  assertEquals(new Set(seen).size, seen.length);
  assert(seen.length > 20 * 2, `${seen.length} of 400 arrived`);
});

for (const processingMode of ["DYNAMIC", "DETERMINISTIC"] as const) {
  testOnEach(
    `a ${processingMode} job whose only worker is stopped gracefully goes on with the next one`,
    async (start) => {
      await using cluster = await start({ workers: 1 });
      const dataset = Dataset.range(400).batch(4).distribute({ service: cluster, processingMode });
      const seen: number[] = [];
      let stopped: Promise<unknown> | undefined;
      for await (const batch of dataset) {
        seen.push(...batch.data as Float64Array);
        stopped ??= cluster.stopWorker(0, PATIENTLY).then(() => cluster.addWorker());
      }
      await stopped;
      assertEquals(seen.sort((a, b) => a - b), upTo(400));
    },
  );
}

testOnEach("a graceful stop of a worker loses nothing", async (start) => {
  await using cluster = await start({ workers: 2 });
  const dataset = Dataset.range(400).batch(5).distribute({
    service: cluster,
    processingMode: "DYNAMIC",
    maxOutstandingRequests: 2,
  });
  const seen: number[] = [];
  let stopped: Promise<void> | undefined;
  for await (const batch of dataset) {
    seen.push(...batch.data as Float64Array);
    if (seen.length === 50) stopped = cluster.stopWorker(1, PATIENTLY);
  }
  await stopped;
  assertEquals(seen.sort((a, b) => a - b), upTo(400));
});

testOnEach(
  "a dispatcher that restarts on its journal hands out no split twice",
  async (start) => {
    await using temporary = await TempFolder.make();
    const journal = temporary.path;
    await using cluster = await start({ workers: 2, journal });
    const dataset = Dataset.range(1_000).batch(5).distribute({
      service: cluster,
      processingMode: "DYNAMIC",
      maxOutstandingRequests: 4,
    });
    const seen: number[] = [];
    let batches = 0;
    for await (const batch of dataset) {
      seen.push(...batch.data as Float64Array);
      if (++batches % 50 === 0 && batches <= 150) {
        await cluster.stopDispatcher();
        await cluster.restartDispatcher();
      }
    }
    assertEquals(seen.sort((a, b) => a - b), upTo(1_000));
  },
);

Deno.test("a dispatcher that restarts waits while another program has its port for a moment", async () => {
  await using cluster = await LocalCluster.start({ workers: 0, carrier: "websocket" });
  const { hostname, port } = new URL(cluster.address);
  await cluster.stopDispatcher();
  const { listen } = Deno;
  // Another test may have got the port meanwhile, for a connection.
  const other = await until(() => {
    try {
      return listen({ hostname, port: Number(port) });
    } catch {
      return undefined;
    }
  });
  let refused = 0;
  // The other program lets the port go once the dispatcher has tried to listen there.
  Deno.listen = ((options: Deno.TcpListenOptions) => {
    try {
      return listen(options);
    } catch (error) {
      if (refused++ === 0) other.close();
      throw error;
    }
  }) as typeof Deno.listen;
  try {
    await cluster.restartDispatcher();
  } finally {
    Deno.listen = listen;
  }
  assert(refused > 0);
  assertEquals((await cluster.describe()).workers, []);
});

testOnEach("clients read on while the dispatcher is away", async (start) => {
  await using temporary = await TempFolder.make();
  const journal = temporary.path;
  await using cluster = await start({ workers: 1, journal });
  const dataset = Dataset.range(1_000_000).batch(10).distribute({
    service: cluster,
  });
  await using iterator = dataset.iterator();
  await iterator.next();
  await cluster.stopDispatcher();
  for (let i = 0; i < 100; i++) {
    assertEquals((await iterator.next()).done, false);
  }
  await cluster.restartDispatcher();
});

testOnEach(
  "a service without workers makes clients wait, not fail, and a worker serves them",
  async (start) => {
    await using cluster = await start({ workers: 0 });
    const reading = numbersOf(
      Dataset.range(10).batch(5).distribute({
        service: cluster,
        processingMode: "DYNAMIC",
      }),
    );
    await cluster.addWorker();
    assertEquals(await reading, upTo(10));
  },
);

testOnEach(
  "a function that spins delays no heartbeat, and closing does not wait for it",
  async (start) => {
    await using cluster = await start({
      workers: 1,
      runners: "thread",
      // Only heartbeats that stop reach it, not a machine that stalls.
      workerTimeoutMs: PATIENCE_MS,
    });
    // Until the test has ended: Deno never ends a thread that spins, and it would occupy a core
    // during all later tests.
    await using folder = await TempFolder.make();
    const what = `for (;;) {
      try {
        Deno.statSync(${JSON.stringify(folder.path)});
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return 1;
        throw error;
      }
    }`;
    const spinning = Dataset.range(2).map((x, { what }) => x === 1 ? new Function(what)() : x, {
      captures: { what },
    }).distribute({ service: cluster });
    await using iterator = spinning.iterator();
    assertEquals((await iterator.next()).value, 0);
    // That the function fails instead, as it would without permission to read, shows here.
    let isOver = false;
    iterator.next().catch(() => {}).finally(() => isOver = true);
    const heard = new Set<number>();
    while (heard.size < 12) {
      assert(!isOver);
      const { workers } = await cluster.describe();
      assertEquals(workers[0]!.alive, true);
      heard.add(workers[0]!.lastHeardMs!);
    }
  },
);

testOnEach(
  "a client that is disposed while it waits ends at once",
  async (start) => {
    await using cluster = await start({ workers: 0 });
    const iterator = Dataset.range(10).distribute({ service: cluster })
      .iterator();
    const waiting = iterator.next();
    await iterator.return();
    assertEquals((await waiting).done, true);
  },
);

Deno.test("a service where nobody answers is unavailable, with address and remedy", async () => {
  const dataset = Dataset.range(10).distribute({
    service: `ws://127.0.0.1:${CLOSED_PORT}`,
  });
  await using iterator = dataset.iterator();
  const error = await assertRejects(
    () => iterator.next(),
    LeatError,
    `127.0.0.1:${CLOSED_PORT}`,
  );
  assertEquals(error.code, "unavailable");
});

testOnEach(
  "a client that is disposed while it joins leaves nothing behind",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    for (const delayMs of [0, 0, 1, 2, 4]) {
      const iterator = Dataset.range(100).distribute({ service: cluster }).iterator();
      const waiting = iterator.next();
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      await iterator.return();
      await waiting;
    }
    const left = async () => {
      const clients = cluster.fleet.home.actors().filter(({ kind }) => kind === "client");
      return clients.length + (await cluster.describe()).jobs.length;
    };
    // A late deregistration is repaired: the dispatcher learns of a client's end.
    await until(async () => await left() === 0, 5);
  },
);

testOnEach("an iterator that has ended stays ended and starts nothing", async (start) => {
  await using cluster = await start({ workers: 1 });
  await using iterator = Dataset.range(3).distribute({ service: cluster }).iterator();
  while (!(await iterator.next()).done);
  let started = 0;
  const stop = cluster.fleet.home.inspect(({ type }) => started += type === "start" ? 1 : 0);
  for (let i = 0; i < 3; i++) assertEquals((await iterator.next()).done, true);
  stop();
  assertEquals(started, 0);
});

testOnEach("a client that comes while the dispatcher is away waits for it", async (start) => {
  await using temporary = await TempFolder.make();
  const journal = temporary.path;
  await using cluster = await start({ workers: 1, journal });
  await cluster.stopDispatcher();
  const reading = numbersOf(Dataset.range(10).batch(5).distribute({ service: cluster }));
  await cluster.restartDispatcher();
  assertEquals(await reading, upTo(10));
});

testOnEach(
  "a dispatcher that has lost its journal takes nobody for somebody else",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const endless = Dataset.range(3).map((x) => -1 - x).repeat().batch(1);
    await using before = endless.distribute({ service: cluster }).iterator();
    await before.next();
    await cluster.stopDispatcher();
    await cluster.restartDispatcher();
    // The first client and the first task of both dispatchers have the same ids.
    await using after = Dataset.range(1_000).batch(1).distribute({ service: cluster }).iterator();
    const first = (await after.next()).value as Tensor;
    assertEquals(first.toArray(), [0]);
    const lost = await assertRejects(async () => {
      while (!(await before.next()).done);
    }, LeatError);
    assertEquals(lost.code, "not_found");
    assertEquals((await cluster.describe()).jobs.length, 1);
  },
);
