/**
 * The supply of processes: how many load at the same time, which caller is served, cancelled
 * callers, and processes that never load.
 */
import { posix, resolve, win32 } from "node:path";
import { LeatError } from "../../../core/error.ts";
import { definedFields } from "../../../core/tree.ts";
import { Dataset } from "../../../mod.ts";
import { isWithin, sandboxGrants, type SandboxOptions } from "../../../platform/sandbox/grants.ts";
import { TaskHost } from "../../../platform/sandbox/host/host_processes.ts";
import { type Supplied, Supply } from "../../../platform/supply.ts";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { soon } from "../../cluster/lib.ts";
import { PATIENCE_MS, until } from "../../lib/until.ts";
import { NO_SPLITS, Sandbox, settingsOf } from "./sandbox_lib.ts";

/** A process that loads when the test says so. */
class Process implements Supplied {
  readonly loading = Promise.withResolvers<void>();
  readonly loaded = this.loading.promise;
  isAlive = true;
  isOccupied = false;
  isShared = false;

  constructor(readonly number: number) {}

  terminate(): Promise<void> {
    this.isAlive = false;
    return Promise.resolve();
  }
}

/** A supply of such processes, and all that it has started. */
class TestSupply {
  readonly started: Process[] = [];
  /** Failures after which a caller tries again. */
  readonly retried: LeatError[] = [];
  readonly supply: Supply<Process>;
  /** The most that loaded at the same time. */
  loadingMost = 0;
  #loading = 0;

  constructor(loadingMax: number, returnedMax?: number, retryMinMs?: number) {
    this.supply = new Supply(() => this.#start(), {
      ...{ loadingMax, onRetry: (error: LeatError) => this.retried.push(error) },
      ...definedFields({ returnedMax, retryMinMs }),
    });
  }

  /** Completes or fails the oldest process that still loads. */
  async step(error?: LeatError): Promise<void> {
    const process = this.started[this.#settled++]!;
    this.#loading--;
    if (error === undefined) process.loading.resolve();
    else process.loading.reject(error);
    await settle();
  }

  #settled = 0;

  get loading(): number {
    return this.#loading;
  }

  #start(): Process {
    const process = new Process(this.started.length);
    this.started.push(process);
    this.loadingMost = Math.max(this.loadingMost, ++this.#loading);
    return process;
  }
}

/** Runs all pending promise callbacks. */
function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

const NEVER = new LeatError("unavailable", "it has not loaded");

Deno.test("Supply loads no more processes at a time than its limit, however many callers wait", async () => {
  const supplied = new TestSupply(3);
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

Deno.test("Supply serves callers that somebody waits for before all others", async () => {
  const supplied = new TestSupply(1);
  const got: string[] = [];
  const take = async (name: string, asked?: Promise<void>) => {
    await supplied.supply.take(undefined, { owner: "a", ...definedFields({ asked }) });
    got.push(name);
  };
  const asked = Array.from({ length: 30 }, () => Promise.withResolvers<void>());
  const tasks = asked.map(({ promise }, i) => take(`task ${i}`, promise));
  const listing = take("listing");
  await supplied.step();
  await listing;
  asked[20]!.resolve();
  asked[10]!.resolve();
  await settle();
  const later = take("later listing");
  while (supplied.loading > 0) await supplied.step();
  await Promise.all([...tasks, later]);
  assertEquals(got.slice(0, 6), [
    "listing",
    "task 20",
    "task 10",
    "later listing",
    "task 0",
    "task 1",
  ]);
  assertEquals([got.length, supplied.started.length], [32, 33]);
});

Deno.test("Supply lets identities take turns, however many callers one of them has", async () => {
  for (const asked of [undefined, new Promise<void>(() => {})]) {
    const supplied = new TestSupply(1);
    const got: string[] = [];
    const take = async (owner: string) => {
      await supplied.supply.take(undefined, { owner, ...definedFields({ asked }) });
      got.push(owner);
    };
    const taken = ["a", "a", "a", "a", "b", "c", "b"].map(take);
    await supplied.step();
    await supplied.step();
    taken.push(take("d"));
    while (supplied.loading > 0) await supplied.step();
    await Promise.all(taken);
    assertEquals(got, ["a", "b", "c", "a", "b", "d", "a", "a"]);
  }
});

Deno.test("Supply rejects callers that nobody waits for if they cancel or it is closed", async () => {
  const supplied = new TestSupply(1);
  const giveUp = new AbortController();
  const asked = Promise.withResolvers<void>();
  const taken = Promise.allSettled([
    supplied.supply.take(giveUp.signal, { owner: "a", asked: asked.promise }),
    supplied.supply.take(undefined, { owner: "a", asked: new Promise(() => {}) }),
  ]);
  giveUp.abort();
  asked.resolve();
  await settle();
  supplied.supply.close();
  for (const one of await taken) {
    assertEquals(one.status === "rejected" && one.reason.code, "cancelled");
  }
  await supplied.step();
  assertEquals([supplied.started.length, supplied.started[0]!.isAlive], [1, false]);
});

Deno.test("Supply starts no process for a caller that cancelled in its queue", async () => {
  const supplied = new TestSupply(2);
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

Deno.test("Supply stops listening to a caller's signal once the caller has its process", async () => {
  const supplied = new TestSupply(1);
  const { signal } = new AbortController();
  const listening = new Set<unknown>();
  signal.addEventListener = (_: string, listener: unknown) => void listening.add(listener);
  signal.removeEventListener = (_: string, listener: unknown) => void listening.delete(listener);
  const taken = supplied.supply.take(signal);
  assertEquals(listening.size, 1);
  await supplied.step();
  await taken;
  await supplied.step();
  await supplied.supply.take(signal); // the spare process
  assertEquals(listening.size, 0);
});

Deno.test("TaskHost starts no process for a request after it was closed", async () => {
  const host = new TaskHost(() => {
    throw new Error("a process was taken");
  });
  host.close();
  const { code } = await assertRejects(() => host.ask("decode", {}), LeatError);
  assertEquals(code, "cancelled");
});

Deno.test("TaskHost tells its process the task that it gets later, before the next request", async () => {
  const asked: unknown[] = [];
  const ask = (...request: unknown[]) => Promise.resolve(void asked.push(request));
  const host = new TaskHost(() => Promise.resolve({ isAlive: true, ask } as never));
  // As while splits are listed.
  await host.ask("list", null);
  const task = { clusterId: "c", taskId: 7 };
  host.assign(task);
  await host.ask("serviceRead", null);
  assertEquals(asked, [
    ["serve", { method: "list", args: null }],
    ["assign", task],
    ["serve", { method: "serviceRead", args: null }],
  ]);
});

Deno.test("Supply loads a spare process only when no caller waits", async () => {
  const supplied = new TestSupply(3);
  const taken = supplied.supply.take();
  assertEquals(supplied.started.length, 1);
  await supplied.step();
  assertEquals((await taken).number, 0);
  assertEquals(supplied.started.length, 2);
});

Deno.test("Supply keeps one unneeded process, and ends the others", async () => {
  const supplied = new TestSupply(3);
  const giveUp = new AbortController();
  const given = Array.from({ length: 3 }, () => supplied.supply.take(giveUp.signal));
  giveUp.abort();
  await Promise.allSettled(given);
  assertEquals(supplied.started.map(({ isAlive }) => isAlive), [true, true, true]); // they load
  while (supplied.loading > 0) await supplied.step();
  assertEquals(supplied.started.map(({ isAlive }) => isAlive), [true, false, false]);
});

Deno.test("Supply ends a process that never loads, reports it to one caller, and serves the next", async () => {
  const supplied = new TestSupply(1);
  const [unlucky, next, after] = [1, 2, 3].map(() => supplied.supply.take());
  const told = unlucky!.catch((error) => error);
  await supplied.step(NEVER);
  assertEquals(await told, NEVER);
  assertEquals(supplied.started[0]!.isAlive, false);
  assertEquals(supplied.loading, 1);
  await supplied.step();
  assertEquals((await next!).number, 1);
  await supplied.step();
  assertEquals((await after!).number, 2);
  // The spare one fails while no caller waits: it is not retried forever, but for the next caller.
  await supplied.step(NEVER);
  assertEquals([supplied.started.length, supplied.loading], [4, 0]);
  const later = supplied.supply.take();
  await supplied.step();
  assertEquals((await later).number, 4);
});

Deno.test("Supply.takePatiently tries again while a load lacks resources, and reports other failures", async () => {
  const supplied = new TestSupply(1, undefined, 0);
  const { signal } = new AbortController();
  const full = new LeatError("resource_exhausted", "no more processes");
  const taken = supplied.supply.takePatiently(signal);
  for (const failure of [NEVER, full, NEVER]) {
    await until(() => supplied.loading > 0);
    await supplied.step(failure);
  }
  await until(() => supplied.loading > 0);
  await supplied.step();
  assertEquals((await taken).number, 3);
  assertEquals(supplied.retried, [NEVER, full, NEVER]);
  const refused = new LeatError("permission_denied", "no run access");
  const next = supplied.supply.takePatiently(signal).catch((error) => error);
  await supplied.step(refused);
  assertEquals(await next, refused);
  assertEquals(supplied.retried.length, 3);
  const last = supplied.supply.takePatiently(signal).catch((error) => error);
  for (let tries = 1; tries <= 8; tries++) {
    await until(() => supplied.loading > 0);
    await supplied.step(NEVER);
  }
  assertEquals(await last, NEVER);
  assertEquals(supplied.retried.length, 3 + 7);
});

Deno.test("Supply.takePatiently pauses no longer than its caller waits, and until it is closed", async () => {
  const supplied = new TestSupply(2, undefined, 2 ** 30);
  const giveUp = new AbortController();
  const { signal } = new AbortController();
  const taken = [giveUp.signal, signal].map((signal) => supplied.supply.takePatiently(signal));
  for (let i = 0; i < 2; i++) await supplied.step(NEVER);
  assertEquals(supplied.retried.length, 2);
  giveUp.abort();
  assertEquals((await assertRejects(() => taken[0]!, LeatError)).code, "cancelled");
  supplied.supply.close();
  assertEquals((await assertRejects(() => taken[1]!, LeatError)).code, "cancelled");
});

Deno.test("Supply replaces a spare process that has died, and assigns nothing once closed", async () => {
  const supplied = new TestSupply(1);
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

Deno.test("Supply gives what comes back to a waiting caller, and keeps no more than its limit", async () => {
  const supplied = new TestSupply(1, 2);
  const first = supplied.supply.take();
  const [second, third] = [supplied.supply.take(), supplied.supply.take()];
  await supplied.step();
  assertEquals(supplied.started.length, 2);
  supplied.supply.giveBack(await first);
  assertEquals((await second).number, 0);
  await supplied.step();
  assertEquals((await third).number, 1);
  const fourth = supplied.supply.take();
  await supplied.step();
  // No caller waits, and the ones that come back are enough.
  assertEquals(supplied.started.length, 3);
  for (const taken of [second, third, fourth]) supplied.supply.giveBack(await taken);
  assertEquals(supplied.started.map(({ isAlive }) => isAlive), [true, true, false]);
  assertEquals((await supplied.supply.take()).number, 1);
  supplied.supply.close();
});

Deno.test("Supply.share leaves a process to the next caller, unless it is occupied or withdrawn", async () => {
  const supplied = new TestSupply(1, 2);
  const shared = supplied.supply.share();
  await supplied.step();
  const process = await shared;
  assertEquals(await supplied.supply.share(), process);
  process.isOccupied = true;
  const taken = supplied.supply.take();
  await supplied.step();
  assertEquals((await taken).number, 1);
  process.isOccupied = false;
  assertEquals(supplied.supply.withdraw(process), true);
  assertEquals(supplied.supply.withdraw(await taken), false);
  supplied.supply.take().catch(() => {});
  assertEquals(supplied.started.length, 3);
  supplied.supply.close();
});

Deno.test("Supply always loads a spare one after a process was withdrawn, unless it is closed", async () => {
  const supplied = new TestSupply(1, 2);
  const { supply, started } = supplied;
  await supplied.step();
  const process = await supply.take();
  assertEquals(started.length, 1, "what comes back is enough");
  process.isOccupied = true;
  supply.giveBack(process);
  assertEquals(supply.withdraw(process), true);
  assertEquals(started.length, 2);
  await supplied.step();
  assertEquals((await supply.take()).number, 1);
  assertEquals(started.length, 3);
  await supplied.step();
  const last = await supply.take();
  last.isOccupied = true;
  supply.close();
  supply.giveBack(last);
  assertEquals([last.isAlive, supply.withdraw(last), started.length], [false, false, 4]);
});

Deno.test("Supply ends no process that a caller shares, but an unused one if there are too many", async () => {
  const supplied = new TestSupply(1, 2);
  const { supply, started } = supplied;
  const shared = supply.share();
  await supplied.step();
  (await shared).isShared = true;
  const taken = [await supply.take()];
  assertEquals(taken, [started[0]], "a pipeline gets the shared one");
  for (let i = 0; i < 2; i++) {
    const next = supply.take();
    await supplied.step();
    taken.push(await next);
  }
  for (const process of taken.toReversed()) supply.giveBack(process);
  assertEquals(started.map(({ isAlive }) => isAlive), [true, false, true]);
  assertEquals(await supply.take(), started[0]);
  supply.close();
});

Deno.test("a confined runner that is disposed in the queue ends, and starts no process", async () => {
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

/** Stops all processes of runners before they load, except the first one. */
function onlyOneLoads(): Disposable {
  const { Command } = Deno;
  let started = 0;
  Deno.Command = class extends Command {
    readonly #isRunner: boolean;

    constructor(command: string | URL, options: Deno.CommandOptions = {}) {
      super(command, options);
      const { args = [], stdin } = options;
      this.#isRunner = stdin === "piped" && args.some((arg) => arg.includes("runner_program.ts"));
    }

    override spawn(): Deno.ChildProcess {
      const child = super.spawn();
      if (this.#isRunner && ++started > 1) child.kill("SIGSTOP");
      return child;
    }
  };
  return { [Symbol.dispose]: () => void (Deno.Command = Command) };
}

Deno.test({
  name: "ConfinedRunners lists splits before it starts pipelines that nobody waits for",
  ignore: Deno.build.os === "windows",
  async fn() {
    using _one = onlyOneLoads();
    const loading = { loadingMax: 1, loadTimeoutMs: 2 * PATIENCE_MS };
    await using sandbox = await Sandbox.open({}, undefined, {}, loading);
    const { runners } = sandbox;
    const dataset = Dataset.range(3);
    const nobody = new Promise<void>(() => {});
    const splits = { next: () => Promise.resolve(null), total: () => Promise.resolve(0) };
    const queued = Array.from(
      { length: 20 },
      () => runners.start(settingsOf(dataset), splits, { owner: "a", asked: nobody }),
    );
    // It gets the only process that loads.
    await soon("the splits", runners.listSplits(dataset.serialize()));
    assert(runners.processes <= 2, `${runners.processes} processes were started`);
    for (const runner of queued) runner.dispose();
  },
});

Deno.test("a confined process that never loads fails no pipeline, and the operator is told why", async () => {
  const told: LeatError[] = [];
  const onRetry = (error: LeatError) => told.push(error);
  await using sandbox = await Sandbox.open({}, undefined, {}, { loadTimeoutMs: 1, onRetry });
  const runner = sandbox.runners.start(settingsOf(Dataset.range(2)), NO_SPLITS);
  const step = runner.next().catch(LeatError.from);
  await until(() => told.length > 1);
  runner.dispose();
  assertEquals((await step as LeatError).code, "cancelled");
  for (const { code, message } of told) {
    assertEquals(code, "unavailable");
    assertStringIncludes(message, "has not loaded its program within 0.001 s");
    assertStringIncludes(message, "no function has run in it");
  }
});

Deno.test("Supply tries a process that cannot start once per caller, and continues", async () => {
  let starts = 0;
  const supply = new Supply<Process>(() => {
    starts++;
    throw new LeatError("invalid_argument", "no such permission");
  }, { loadingMax: 2 });
  assertEquals(starts, 1);
  const asked = [supply.take(), supply.take(), supply.take()];
  for (const take of asked) await assertRejects(() => take, LeatError, "no such permission");
  assertEquals(starts, 4);
  supply.close();
});

Deno.test("Supply starts no more processes than callers wait if each fails at once", async () => {
  const first = new Process(0);
  let starts = 0;
  const supply = new Supply<Process>(() => {
    if (++starts === 1) return first;
    throw NEVER;
  }, { loadingMax: 1 });
  const taken = Promise.allSettled(Array.from({ length: 40 }, () => supply.take()));
  first.loading.reject(NEVER);
  for (const one of await taken) assertEquals(one.status === "rejected" && one.reason, NEVER);
  assertEquals(starts, 40);
  supply.close();
});

Deno.test("sandboxGrants refuses a folder with a comma, and takes one with spaces", async () => {
  await using folder = await TempFolder.make();
  for (const name of ["a b", "a,b"]) await Deno.mkdir(`${folder.path}/${name}`);
  const [granted] = sandboxGrants({ dataRoots: [`${folder.path}/a b`] }).readable;
  assertEquals(granted?.path, `${folder.path}/a b`);
  assertThrows(() => sandboxGrants({ dataRoots: [`${folder.path}/a,b`] }), LeatError, "a comma");
});

Deno.test("sandboxGrants refuses Python files that pipelines may write", async () => {
  await using folder = await TempFolder.make();
  await Deno.mkdir(`${folder.path}/code/deep`, { recursive: true });
  const grant = (root: string, written: string) =>
    sandboxGrants({
      pythonRoots: [resolve(folder.path, root)],
      writeRoots: [resolve(folder.path, written)],
    });
  const overlapping = [
    ["code", "code"],
    ["code", "code/deep"],
    ["code/deep", "code"],
    ["code", "/"],
    ["/", "code"],
    ["/", "/"],
  ] as const;
  for (const [root, written] of overlapping) {
    assertThrows(() => grant(root, written), LeatError, "since pipelines may write to");
  }
  await Deno.mkdir(`${folder.path}/code-cache`);
  assertEquals(grant("code", "code-cache").python[0]?.path, `${folder.path}/code`);
});

Deno.test("sandboxGrants refuses hosts that Deno would not take, and accepts names, addresses and ranges", () => {
  const wrong = ["a b", "http//a", "a,b", "", ":80", "a:", "::1", "fd00::/8", "[fd00::]/8", "a/8"];
  for (const host of [...wrong, "10.0.0.0/33", "10.0/8", "300.0.0.0/8"]) {
    const error = assertThrows(() => sandboxGrants({ net: [host] }), LeatError);
    assertEquals(error.code, "invalid_argument", host);
  }
  assertThrows(() => sandboxGrants({ net: ["a b"] }), LeatError, '"a b", which is no host');
  const net = ["localhost", "127.0.0.1:80", "[::1]:443", "[::1]"];
  assertEquals(sandboxGrants({ net }).net, net);
  // The tests' own permissions have no range.
  const range = assertThrows(() => sandboxGrants({ net: ["10.0.0.0/8"] }), LeatError);
  assertEquals(range.code, "permission_denied", range.message);
});

Deno.test("sandboxGrants refuses ranges for imports, which are compared with names", () => {
  const grants = () => sandboxGrants({ imports: ["127.0.0.0/8"] });
  assertThrows(grants, LeatError, '"127.0.0.0/8", which is no host');
});

Deno.test("sandboxGrants refuses unknown names, and lists that are none, without their values", () => {
  const refused: readonly [options: unknown, said: string][] = [
    [{ dataRoot: ["/tmp"] }, 'there is no option "dataRoot"; '],
    [["/tmp"], "sandbox: options must be an object"],
    ["/tmp", "sandbox: options must be an object"],
    [{ dataRoots: "https://user:SECRET@host/" }, "sandbox.dataRoots must be an array of non-empty"],
    [{ dataRoots: ["."].concat("") }, "sandbox.dataRoots[1] must be a non-empty string"],
    [{ writeRoots: [null] }, "sandbox.writeRoots[0] must be a non-empty string"],
    [{ pythonRoots: [["SECRET"]] }, "sandbox.pythonRoots[0] must be a non-empty string"],
    [{ net: { host: "SECRET" } }, "sandbox.net must be an array of non-empty strings"],
    [{ imports: null }, "sandbox.imports must be an array of non-empty strings"],
  ];
  for (const [options, said] of refused) {
    const error = assertThrows(() => sandboxGrants(options as SandboxOptions), LeatError, said);
    assertEquals(error.code, "invalid_argument", said);
    assert(!error.message.includes("SECRET"), error.message);
  }
});

Deno.test("sandboxGrants refuses a stallTimeoutMs that no timer can wait for", () => {
  for (const stallTimeoutMs of [0, NaN, Infinity, 2 ** 31]) {
    const error = assertThrows(() => sandboxGrants({ stallTimeoutMs }), LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, "stallTimeoutMs must be at least 1 and at most 2147483647");
  }
  assertEquals(sandboxGrants({ stallTimeoutMs: 2 ** 31 - 1 }).stallTimeoutMs, 2 ** 31 - 1);
});

Deno.test("isWithin takes a folder and what is below it, on Windows also with backslashes", () => {
  const within: [path: string, folder: string, isIt: boolean][] = [
    ["/data", "/data", true],
    ["/data/x/y", "/data", true],
    ["/data/..x", "/data", true],
    ["/data/x", "/", true],
    ["/database", "/data", false],
    ["/", "/data", false],
    ["/data/../x", "/data", false],
  ];
  for (const [path, folder, isIt] of within) {
    assertEquals(isWithin(path, folder, posix), isIt, path);
    const [there, above] = [path, folder].map((one) => `C:${one.replaceAll("/", "\\")}`);
    assertEquals(isWithin(there!, above!, win32), isIt, there);
  }
  assertEquals(isWithin("D:\\data\\x", "C:\\data", win32), false);
});

Deno.test("sandboxGrants refuses misspelt URLs without their secrets", () => {
  const url = "https://user:SECRET/word@host/x";
  for (
    const options of [
      { dataRoots: ["https:user:SECRET@host/x"] },
      { writeRoots: ["https:user:SECRET@host/x"] },
      { imports: [url] },
      { imports: ["https:user:SECRET@host/x"] },
      { net: [url] },
    ]
  ) {
    const error = assertThrows(() => sandboxGrants(options), LeatError);
    assertEquals(error.code, "invalid_argument", error.message);
    assert(!error.message.includes("SECRET"), error.message);
  }
});
