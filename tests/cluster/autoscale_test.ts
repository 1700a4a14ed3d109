/** `deno task autoscale`: worker processes that come and go as a dispatcher wants. */

import { fileURLToPath } from "node:url";
import { ProcessFleet } from "../../cli/cluster/process_fleet.ts";
import { Dataset, type DispatcherServer, LeatError, serveDispatcher } from "../../mod.ts";
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { until } from "../lib/until.ts";
import { numbersOf, sorted, upTo } from "../service/lib/carriers.ts";

const TOKEN = "sesame";
const VIEWER = "token-of-a-viewer-0123";

async function untilAlive(dispatcher: DispatcherServer, names: readonly string[]): Promise<void> {
  await until(async () => {
    const { workers } = await dispatcher.describe();
    const alive = workers.filter((worker) => worker.alive).map(({ name }) => name).sort();
    return alive.join() === names.join();
  }, 20);
}

Deno.test("deno task autoscale runs as many worker processes as are wanted and stops them on request", async () => {
  await using dispatcher = await serveDispatcher({
    token: TOKEN,
    logLevel: "off",
    scaling: { minWorkers: 2 },
  });
  await using child = startChild("cli/autoscale.ts", {
    flags: ["-P=autoscale"],
    args: [
      ...["--dispatcher", dispatcher.address, "--token", TOKEN, "--name", "here"],
      ...["--max", "3", "--interval-ms", "100", "--", "--tag", "elastic"],
    ],
  });
  await untilAlive(dispatcher, ["here-1", "here-2"]);
  await child.line(/Starting worker 2: 2 workers wanted/);
  const { workers } = await dispatcher.describe();
  assertEquals(workers.map(({ tags }) => tags), [["elastic"], ["elastic"]]);
  const numbers = await numbersOf(
    Dataset.range(1_000).batch(10).distribute({
      service: dispatcher.address,
      token: TOKEN,
      processingMode: "DYNAMIC",
    }),
  );
  assertEquals(sorted(numbers), upTo(1_000));
  child.kill("SIGTERM");
  assertEquals((await child.status).code, 0);
  await untilAlive(dispatcher, []);
});

Deno.test("deno task autoscale starts its workers in the current folder, with options of any text", async () => {
  await using folder = await TempFolder.make({ "token": TOKEN, "data/a": "" });
  const scaling = { minWorkers: 1 };
  await using dispatcher = await serveDispatcher({ token: TOKEN, logLevel: "off", scaling });
  await using child = startChild(fileURLToPath(import.meta.resolve("../../cli/autoscale.ts")), {
    flags: ["-P=autoscale"],
    cwd: folder.path,
    args: [
      ...["--dispatcher", dispatcher.address, "--token-file", "token", "--name=-here"],
      ...["--interval-ms", "100", "--", "--data-root", "data"],
    ],
  });
  await untilAlive(dispatcher, ["-here-1"]);
  child.kill("SIGTERM");
  assertEquals((await child.status).code, 0);
});

Deno.test("deno task autoscale leaves no worker when it is stopped twice while one drains", async () => {
  const scaling = { minWorkers: 1 };
  await using dispatcher = await serveDispatcher({ token: TOKEN, logLevel: "off", scaling });
  const service = dispatcher.address;
  await using child = startChild("cli/autoscale.ts", {
    flags: ["-P=autoscale"],
    args: ["--dispatcher", service, "--token", TOKEN, "--name", "here", "--interval-ms", "100"],
  });
  await untilAlive(dispatcher, ["here-1"]);
  const [worker] = (await dispatcher.describe()).workers;
  // It drains until its split is read: for longer than the test lasts.
  const job = { service, token: TOKEN, processingMode: "DYNAMIC" } as const;
  await using iterator = Dataset.range(1_000_000_000).distribute(job).iterator();
  await iterator.next();
  child.kill("SIGTERM");
  await child.line(/Stopping \(SIGTERM\)/);
  await until(async () => {
    const { workers } = await dispatcher.describe();
    return workers[0]?.figures?.draining === true;
  }, 20);
  let code: number | undefined;
  child.status.then((status) => code = status.code);
  // Two signals within a short time count as one request.
  await until(() => {
    if (code === undefined) child.kill("SIGTERM");
    return code !== undefined;
  }, 100);
  assertEquals(code, 130);
  const { hostname, port } = new URL(worker!.ref.node);
  await until(async () => {
    const conn = await Deno.connect({ hostname, port: Number(port) }).catch(() => undefined);
    conn?.close();
    return conn === undefined;
  }, 50);
});

Deno.test("deno task autoscale names the option for a required token, and refuses invalid arguments of workers", async () => {
  await using dispatcher = await serveDispatcher({ token: TOKEN, logLevel: "off" });
  const run = async (...args: string[]) => {
    const all = ["--dispatcher", dispatcher.address, "--interval-ms", "100", ...args];
    await using child = startChild("cli/autoscale.ts", { flags: ["-P=autoscale"], args: all });
    const { code } = await child.status;
    return { code, said: child.stderr.text };
  };
  const none = await run();
  assertEquals(none.code, 1);
  assertMatch(none.said, /^error: .* wants a token: give it with --token-file/m);
  const wrong = await run("--token", "pepper");
  assertEquals(wrong.code, 1);
  assertMatch(wrong.said, /^error: .* has another token/m);
  const workers = await run("--token", TOKEN, "--", "--colour", "red");
  assertEquals(workers.code, 2);
  assertMatch(workers.said, /^error: The arguments for workers .*there is no option --colour/m);
  // An error that only a worker finds ends the autoscaler, too: the next worker would find the
  // same.
  const grants = await run("--token", TOKEN, "--min", "1", "--", "--data-root", "/no/such/folder");
  assertEquals(grants.code, 1);
  assertMatch(grants.said, /^error: The fleet could not start a worker: .*ended with exit code 2/m);
  assertMatch(grants.said, /\/no\/such\/folder cannot be granted/);
});

Deno.test("deno task autoscale ends, and says why, once the dispatcher refuses its workers' token", async () => {
  const token = VIEWER;
  await using folder = await TempFolder.make({ tokens: `eyes viewer ${token}\n`, token });
  const tokens = { file: `${folder.path}/tokens` };
  await using dispatcher = await serveDispatcher({ tokens, logLevel: "off" });
  await using child = startChild("cli/autoscale.ts", {
    flags: ["-P=autoscale"],
    args: [
      ...["--dispatcher", dispatcher.address, "--token-file", `${folder.path}/token`],
      ...["--min", "1", "--name", "here", "--interval-ms", "100"],
    ],
  });
  assertEquals((await child.status).code, 1);
  const said = child.stderr.text;
  assertMatch(said, /^error: The fleet could not start a worker: here-1 ended with exit code 2:/m);
  assertMatch(said, /^error: The dispatcher at .* refuses worker "here-1": .*the role viewer/m);
});

Deno.test("ProcessFleet tries again after a start that the refusal of an earlier worker has failed", async () => {
  await using folder = await TempFolder.make({ tokens: `eyes viewer ${VIEWER}\n`, token: VIEWER });
  const tokens = { file: `${folder.path}/tokens` };
  await using dispatcher = await serveDispatcher({ tokens, logLevel: "off" });
  await using fleet = new ProcessFleet({
    ...{ prefix: "here", tags: [], drainMs: 0, onLog: () => {} },
    args: ["--dispatcher", dispatcher.address, "--token-file", `${folder.path}/token`],
  });
  await fleet.start();
  await until(() => fleet.names.length === 0);
  const { code } = await assertRejects(() => fleet.start(), LeatError);
  assertEquals(code, "invalid_argument");
  await fleet.start();
});
