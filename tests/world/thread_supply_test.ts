/**
 * Threads that are handed out: how many load at a time, who is served, and what becomes of who gives up
 * and of what never loads.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { Dataset } from "../../mod.ts";
import { ConfinedThread } from "../../world/sandbox/confined_thread_handle.ts";
import type { ConfinedStart } from "../../world/sandbox/confined_thread.ts";
import { FetchedModules } from "../../world/sandbox/fetched_modules.ts";
import { sandboxGrants } from "../../world/sandbox/grants.ts";
import { EndingThreads } from "../../world/ending_threads.ts";
import { HostThreads } from "../../world/sandbox/host_threads.ts";
import { type SuppliedThread, ThreadSupply } from "../../world/sandbox/thread_supply.ts";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../assert.ts";
import { Sandbox, settingsOf } from "./sandbox_lib.ts";

/** A thread that loads when the test says so. */
class Thread implements SuppliedThread {
  readonly loading = Promise.withResolvers<void>();
  readonly loaded = this.loading.promise;
  isAlive = true;

  constructor(readonly number: number) {}

  terminate(): Promise<void> {
    this.isAlive = false;
    return Promise.resolve();
  }
}

/** A supply of such threads, and all that it has started. */
class Supplied {
  readonly started: Thread[] = [];
  readonly supply: ThreadSupply<Thread>;
  /** The most that loaded at a time. */
  loadingMost = 0;
  #loading = 0;

  constructor(loadingMax: number) {
    this.supply = new ThreadSupply(() => this.#start(), loadingMax);
  }

  /** Lets the oldest that still loads be loaded, or fail. */
  async step(error?: LeatError): Promise<void> {
    const thread = this.started[this.#settled++]!;
    this.#loading--;
    if (error === undefined) thread.loading.resolve();
    else thread.loading.reject(error);
    await turn();
  }

  #settled = 0;

  get loading(): number {
    return this.#loading;
  }

  #start(): Thread {
    const thread = new Thread(this.started.length);
    this.started.push(thread);
    this.loadingMost = Math.max(this.loadingMost, ++this.#loading);
    return thread;
  }
}

/** Promises that can go on have gone on. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

const NEVER = new LeatError("unavailable", "it has not loaded");

Deno.test("ThreadSupply loads no more threads at a time than its limit, for as many as ask", async () => {
  const supplied = new Supplied(3);
  const got: number[] = [];
  const taken = Array.from({ length: 50 }, async (_, i) => {
    await supplied.supply.take();
    got.push(i);
  });
  assertEquals(supplied.started.length, 3);
  while (supplied.loading > 0) await supplied.step();
  await Promise.all(taken);
  assertEquals(got, Array.from({ length: 50 }, (_, i) => i)); // in the order in which they came
  assertEquals(supplied.loadingMost, 3);
  assertEquals(supplied.started.length, 51); // and one for who comes next
  const spare = supplied.started.at(-1);
  assertEquals(await supplied.supply.take(), spare);
  assertEquals(supplied.started.length, 52);
});

Deno.test("ThreadSupply starts no thread for who has given up in its queue", async () => {
  const supplied = new Supplied(2);
  const giveUp = new AbortController();
  const first = supplied.supply.take();
  const given = Array.from({ length: 40 }, () => supplied.supply.take(giveUp.signal));
  const last = supplied.supply.take();
  giveUp.abort();
  for (const one of await Promise.allSettled(given)) {
    assertEquals(one.status === "rejected" && one.reason.code, "cancelled");
  }
  while (supplied.loading > 0) await supplied.step();
  assertEquals((await first).number, 0);
  assertEquals((await last).number, 1);
  assertEquals(supplied.started.length, 3); // of which one is spare
  assertEquals(supplied.started.filter(({ isAlive }) => isAlive).length, 3);
  const before = new AbortController();
  before.abort();
  await assertRejects(() => supplied.supply.take(before.signal), LeatError);
  assertEquals(await supplied.supply.take(), supplied.started[2]); // it is still there
});

Deno.test("ThreadSupply keeps one thread that nobody needs any more, and ends the others", async () => {
  const supplied = new Supplied(3);
  const giveUp = new AbortController();
  const given = Array.from({ length: 3 }, () => supplied.supply.take(giveUp.signal));
  giveUp.abort();
  await Promise.allSettled(given);
  assertEquals(supplied.started.map(({ isAlive }) => isAlive), [true, true, true]); // they load
  while (supplied.loading > 0) await supplied.step();
  assertEquals(supplied.started.map(({ isAlive }) => isAlive), [true, false, false]);
});

Deno.test("ThreadSupply tells one of a thread that never loads, and serves the next", async () => {
  const supplied = new Supplied(1);
  const [unlucky, next, after] = [1, 2, 3].map(() => supplied.supply.take());
  const told = unlucky!.catch((error) => error);
  await supplied.step(NEVER);
  assertEquals(await told, NEVER);
  assertEquals(supplied.loading, 1);
  await supplied.step();
  assertEquals((await next!).number, 1);
  await supplied.step();
  assertEquals((await after!).number, 2);
  // The spare one fails while nobody asks: it is not tried again for ever, but when somebody does.
  await supplied.step(NEVER);
  assertEquals([supplied.started.length, supplied.loading], [4, 0]);
  const later = supplied.supply.take();
  await supplied.step();
  assertEquals((await later).number, 4);
});

Deno.test("ThreadSupply replaces a spare thread that has died, and hands nothing out once closed", async () => {
  const supplied = new Supplied(1);
  await supplied.step();
  await supplied.started[0]!.terminate();
  const taken = supplied.supply.take();
  await supplied.step();
  assertEquals((await taken).number, 1);
  const late = [supplied.supply.take()];
  supplied.supply.close();
  late.push(supplied.supply.take());
  for (const one of await Promise.allSettled(late)) {
    assertEquals(one.status === "rejected" && one.reason.code, "cancelled");
  }
  await supplied.step();
  assertEquals(supplied.loading, 0);
});

Deno.test("confined threads load as few at a time as their supply says, and all can be asked", async () => {
  const grants = sandboxGrants({ dataRoots: ["tests/data"] });
  const hosts = new HostThreads(grants, {});
  const ending = new EndingThreads();
  const threads: ConfinedThread[] = [];
  let [loading, loadingMost, ended] = [0, 0, 0];
  const supply = new ThreadSupply(() => {
    const onEnded = () => ended++;
    const modules = new FetchedModules(grants.imports);
    const options = { grants, hosts, modules, ending, storageLatencyMs: 0, onEnded };
    const thread = new ConfinedThread(options);
    threads.push(thread);
    loadingMost = Math.max(loadingMost, ++loading);
    const loaded = () => loading--;
    thread.loaded.then(loaded, loaded);
    return thread;
  }, 2);
  const { graph } = settingsOf(Dataset.range(4).map((x) => x));
  const asked = Array.from({ length: 4 }, async () => {
    const thread = await supply.take();
    return await thread.ask("listSplits", graph);
  });
  assertEquals((await Promise.all(asked)).map((table) => (table as unknown[]).length), [
    ...[1, 1, 1, 1],
  ]);
  assertEquals(loadingMost, 2);
  supply.close();
  await Promise.all(threads.map((thread) => thread.terminate()));
  ending.close();
  hosts.close();
  assertEquals(ended, threads.length);
});

Deno.test("a confined runner that is disposed in the queue ends, and costs no thread", async () => {
  await using sandbox = await Sandbox.open({}, undefined, {}, { loadingMax: 1 });
  const settings = settingsOf(Dataset.range(3));
  const splits = { next: () => Promise.resolve(null), total: () => Promise.resolve(0) };
  const queued = Array.from({ length: 200 }, () => sandbox.runners.start(settings, splits));
  const steps = queued.map((runner) => runner.next().catch(LeatError.from));
  for (const runner of queued) runner.dispose();
  for (const step of await Promise.all(steps)) {
    assertEquals(step instanceof LeatError && step.code, "cancelled");
  }
  for (const runner of queued) assertEquals(await runner.next(), { kind: "end" });
  assertEquals(await sandbox.elements(Dataset.range(2)), [{ value: 0 }, { value: 1 }]);
});

Deno.test("a confined thread that never loads ends its pipeline by an error that names it", async () => {
  await using sandbox = await Sandbox.open({}, undefined, {}, { loadTimeoutMs: 1 });
  const [came] = await sandbox.elements(Dataset.range(2));
  assert(came !== undefined && "code" in came);
  assertEquals(came.code, "unavailable");
  assertStringIncludes(came.message, "has not loaded its program within 0.001 s");
  assertStringIncludes(came.message, "restart the worker if this goes on");
});

/** A worker that never loads, and cannot be ended: it keeps what it is sent, ports included. */
class NeverLoading extends EventTarget {
  static readonly kept: unknown[] = [];
  postMessage(message: unknown): void {
    NeverLoading.kept.push(message);
  }
  terminate(): void {}
}

// What was sent to a thread that never hears it stays there, ports with it.
Deno.test("ConfinedRunners takes a thread that never loads for no function that never gives way", {
  sanitizeResources: false,
}, async () => {
  const { Worker: original } = globalThis;
  const unbegun = Promise.withResolvers<void>();
  try {
    Reflect.set(globalThis, "Worker", NeverLoading);
    await using sandbox = await Sandbox.open({}, () => ({ stallTimeoutMs: 1 }), {}, {
      ...{ loadTimeoutMs: 1, stopTimeoutMs: 1 },
      onRunaway: (what) => unbegun.reject(new Error(`a function of ${what} is said to run on`)),
      onUnbegun: unbegun.resolve,
    });
    const [came] = await sandbox.elements(Dataset.range(2));
    assertStringIncludes((came as LeatError).message, "no function has run on it");
    await unbegun.promise;
    assertEquals(sandbox.runners.runaways, 0);
    assert(sandbox.runners.ending > 0);
  } finally {
    Reflect.set(globalThis, "Worker", original);
  }
  const starts = NeverLoading.kept as { argumentList?: { value?: ConfinedStart }[] }[];
  for (const { argumentList: [start] = [] } of starts) {
    for (const name of ["control", "host", "life"] as const) start?.value?.[name]?.close();
  }
});

Deno.test("ThreadSupply tries a thread that cannot even begin once for each who asks, and goes on", async () => {
  let starts = 0;
  const supply = new ThreadSupply<Thread>(() => {
    starts++;
    throw new LeatError("invalid_argument", "no such permission");
  }, 2);
  assertEquals(starts, 1);
  const asked = [supply.take(), supply.take(), supply.take()];
  for (const take of asked) await assertRejects(() => take, LeatError, "no such permission");
  assert(starts <= 8, `${starts} starts for three who asked`);
  supply.close();
});

Deno.test("sandboxGrants refuses what is no host, and takes names, addresses and ranges", () => {
  for (const host of ["a b", "http//a", ""]) {
    assertThrows(() => sandboxGrants({ net: [host] }), LeatError, `"${host}", which is no host`);
  }
  const net = ["localhost", "127.0.0.1:80", "[::1]:443"];
  assertEquals(sandboxGrants({ net }).net, net);
});
