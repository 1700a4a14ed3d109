/**
 * A dispatcher that moves: clients and workers keep their configured address, and find the
 * dispatcher again when the address leads to another port, like a host's name or a load balancer.
 */
import {
  Dataset,
  type DispatcherServer,
  type DispatcherServerConfig,
  serveDispatcher,
  serveWorker,
  type Tensor,
} from "../../mod.ts";
import { assert, assertEquals } from "../assert.ts";
import { freePort } from "../lib/free_port.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;

/** An address that forwards to a chosen port, or to none. */
class Door implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #open = new Set<Deno.Conn>();
  readonly #serving: Promise<void>;
  #port: number | undefined;

  constructor() {
    this.#serving = this.#serve();
  }

  get address(): string {
    return `127.0.0.1:${(this.#listener.addr as Deno.NetAddr).port}`;
  }

  /** Forwards to that server from now on, and cuts existing connections. */
  leadTo(server: DispatcherPort | undefined): void {
    this.#port = server?.port;
    for (const end of this.#open) this.#close(end);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.leadTo(undefined);
    this.#listener.close();
    await this.#serving;
  }

  async #serve(): Promise<void> {
    for await (const near of this.#listener) {
      const port = this.#port;
      const far = port === undefined
        ? undefined
        : await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
      if (far === undefined) near.close();
      else for (const [from, to] of [[near, far], [far, near]] as const) this.#pass(from, to);
    }
  }

  async #pass(from: Deno.Conn, to: Deno.Conn): Promise<void> {
    this.#open.add(from);
    try {
      await from.readable.pipeTo(to.writable);
    } catch {
      // It was cut.
    }
    this.#close(from);
    this.#close(to);
  }

  #close(end: Deno.Conn): void {
    if (!this.#open.delete(end)) return;
    try {
      end.close();
    } catch {
      // Its streams have closed it.
    }
  }
}

interface DispatcherPort {
  readonly server: DispatcherServer;
  readonly port: number;
}

/** A dispatcher on a port of its own, which others know by the forwarding address. */
async function behind(
  door: Door,
  journal?: string,
  timeouts: Pick<DispatcherServerConfig, "workerTimeoutMs"> = {},
): Promise<DispatcherPort> {
  const port = freePort();
  const server = await serveDispatcher({
    ...QUIET,
    port,
    advertise: door.address,
    ...timeouts,
    ...(journal === undefined ? {} : { journal }),
  });
  return { server, port };
}

const DATASET = Dataset.range(400).batch(5);
const ALL = Array.from({ length: 400 }, (_, i) => i);

async function numbersOf(
  service: string,
  onBatch: (count: number) => Promise<void> | void = () => {},
): Promise<number[]> {
  const seen: number[] = [];
  let count = 0;
  const batches = DATASET.distribute({
    service,
    processingMode: "DYNAMIC",
    maxOutstandingRequests: 2,
  });
  for await (const batch of batches) {
    seen.push(...(batch as Tensor).data as Float64Array);
    await onBatch(++count);
  }
  return seen.sort((a, b) => a - b);
}

Deno.test("a dispatcher that comes back on another port behind its address goes on: exactly once", async () => {
  await using temporary = await TempFolder.make();
  const journal = temporary.path;
  await using door = new Door();
  const service = `ws://${door.address}`;
  let dispatcher = await behind(door, journal);
  door.leadTo(dispatcher);
  const worker = await serveWorker({ ...QUIET, dispatcher: service });
  try {
    const ports = new Set([dispatcher.port]);
    const seen = await numbersOf(service, async (count) => {
      if (count !== 10 && count !== 20) return;
      door.leadTo(undefined);
      await dispatcher.server.close();
      dispatcher = await behind(door, journal);
      ports.add(dispatcher.port);
      door.leadTo(dispatcher);
    });
    assertEquals(seen, ALL);
    assert(ports.size > 1, "it has moved");
  } finally {
    await worker.close();
    await dispatcher.server.close();
  }
});

Deno.test("a job that is opened before a private worker is back at a restarted dispatcher waits for it, and it comes by itself", async () => {
  await using temporary = await TempFolder.make();
  const journal = temporary.path;
  await using door = new Door();
  const dispatcher = `ws://${door.address}`;
  // Its next heartbeat is too late for this test.
  const heartbeatMs = 3_600_000;
  const timeouts = { workerTimeoutMs: 4 * heartbeatMs };
  const before = await behind(door, journal, timeouts);
  door.leadTo(before);
  await using _worker = await serveWorker({ ...QUIET, dispatcher, local: true, heartbeatMs });
  assertEquals(await numbersOf(dispatcher), ALL);
  await before.server.close();
  const after = await behind(door, journal, timeouts);
  await using _after = after.server;
  door.leadTo(after);
  let seen: readonly number[] | undefined;
  numbersOf(dispatcher).then((numbers) => seen = numbers, () => seen = []);
  assertEquals(await until(() => seen), ALL);
});

Deno.test("client, worker and dispatcher may start in that order", async () => {
  await using door = new Door();
  const service = `ws://${door.address}`;
  const reading = numbersOf(service);
  await using _worker = await serveWorker({ ...QUIET, dispatcher: service });
  const dispatcher = await behind(door);
  door.leadTo(dispatcher);
  assertEquals(await reading, ALL);
  await dispatcher.server.close();
});
