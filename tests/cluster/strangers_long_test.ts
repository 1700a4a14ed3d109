/**
 * Authentication, and the errors of programs that cannot work: the value, the place and the remedy,
 * on standard error, with a status that is not 0.
 */
import { join } from "node:path";
import { Dataset, type DistributeOptions, LeatError } from "../../mod.ts";
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../assert.ts";
import { CLOSED_PORT } from "../lib/closed_port.ts";
import { startChild } from "../lib/child.ts";
import { all, soon, startDispatcher, startWorker, startWorkers } from "./lib.ts";
import { TempFolder } from "../lib/temp_folder.ts";

const DISPATCHER = "cli/dispatcher.ts";
const WORKER = "cli/worker.ts";
const AUTOSCALE = "cli/autoscale.ts";
const STATUS = "cli/status.ts";
const TLS = ["--cert", "tests/transport/tls/server.pem", "--key", "tests/transport/tls/server.key"];
/** A worker does not let functions read its key. */
const ROOT = ["--data-root", "tests/data"];
const CA = "tests/transport/tls/ca.pem";

/** Runs a program that must fail, and returns its error. */
async function failureOf(program: string, ...args: string[]): Promise<string> {
  await using child = startChild(program, { args });
  const { code, signal } = await soon(`the end of ${program} ${args.join(" ")}`, child.status);
  assertEquals({ failed: code !== 0, signal }, { failed: true, signal: null }, child.stdout.text);
  assertMatch(child.stderr.text, /^error: /m);
  return child.stderr.text;
}

/** The error of a client that cannot read from the service. */
async function refusalOf(options: DistributeOptions): Promise<LeatError> {
  await using iterator = Dataset.range(10).distribute(options).iterator();
  return await assertRejects(() => iterator.next(), LeatError);
}

async function sumOf(options: DistributeOptions): Promise<number> {
  let sum = 0;
  const numbers = Dataset.range(100).distribute({ processingMode: "DYNAMIC", ...options });
  for await (const number of numbers) sum += number;
  return sum;
}

for (const program of [DISPATCHER, WORKER, "cli/cluster.ts"]) {
  Deno.test(`${program} --help explains its options`, async () => {
    await using child = startChild(program, { args: ["--help"] });
    assertEquals((await child.status).code, 0);
    assertMatch(child.stdout.text, /^Usage: deno task \w+/);
    assertMatch(child.stdout.text, /Examples:/);
    if (program === "cli/cluster.ts") return;
    assertStringIncludes(child.stdout.text, "--log-level debug|info|warn|error|off");
  });
}

// Starting processes takes longer than the cases themselves: cases share clusters.

Deno.test("a client without a token of the file is refused, one with it is served", async () => {
  const file = await Deno.makeTempFile({ prefix: "leat-test-" });
  await Deno.writeTextFile(file, "sesame\n");
  await using dispatcher = await startDispatcher("--token-file", file);
  await using _workers = all(await startWorkers(dispatcher, 1, "--token", "sesame"));
  const service = dispatcher.address;
  const response = await fetch(service.replace("ws:", "http:"));
  assertEquals(response.status, 401);
  await response.body?.cancel();
  for (const credentials of [{}, { token: "open" }]) {
    const error = await refusalOf({ service, ...credentials });
    assertEquals(error.code, "unauthenticated");
    assertStringIncludes(error.message, service);
  }
  assertEquals(await soon("the job", sumOf({ service, token: "sesame" })), 4_950);
  // A worker with a wrong one gives up and says why.
  const said = await failureOf(WORKER, "--dispatcher", service, "--token", "open");
  assertStringIncludes(said, service);
  assertMatch(said, /token is missing or wrong.*--token/);
  await Deno.remove(file);
});

Deno.test("a file of tokens gives a worker, a client and a viewer the permissions of their roles", async () => {
  await using folder = await TempFolder.make({
    tokens: "one worker token-of-worker-one\nteam client token-of-the-team\n" +
      "eyes viewer token-of-the-viewer\n",
    clients: "team client token-of-the-team\n",
    wrong: "team client token-of-the-team\neyes watcher token-of-the-viewer\n",
  });
  const fileOf = (name: string) => ["--tokens-file", join(folder.path, name)];
  await using dispatcher = await startDispatcher(...fileOf("tokens"));
  const own = ["--token", "token-of-worker-one"];
  await using _workers = all(await startWorkers(dispatcher, 1, ...own, ...fileOf("clients")));
  const service = dispatcher.address;
  assertEquals(await soon("the job", sumOf({ service, token: "token-of-the-team" })), 4_950);
  const error = await refusalOf({ service, token: "token-of-the-viewer" });
  assertEquals(error.code, "permission_denied");
  const impostor = ["--dispatcher", service, "--token", "token-of-the-team"];
  assertMatch(await failureOf(WORKER, ...impostor), /"team" has the role client/);
  assertMatch(await failureOf(STATUS, ...impostor), /shows its state to the roles/);
  assertMatch(await failureOf(DISPATCHER, ...fileOf("wrong")), /wrong, line 2: the role of "eyes"/);
});

Deno.test("a missing or empty token file is named", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const file = join(folder, "token");
  assertStringIncludes(await failureOf(DISPATCHER, "--token-file", file), file);
  await Deno.writeTextFile(file, "\n");
  assertMatch(await failureOf(DISPATCHER, "--token-file", file), /empty/);
  await Deno.writeTextFile(file, "sesame\nopen\n");
  assertMatch(await failureOf(DISPATCHER, "--token-file", file), /more than one line/);
  await Deno.writeTextFile(file, "sesame\n");
  assertMatch(await failureOf(DISPATCHER, "--token-file", file, "--token", "x"), /give one/);
});

Deno.test("with TLS the service is read by clients that trust its authority", async () => {
  await using dispatcher = await startDispatcher("--host", "localhost", ...TLS, "--ca", CA);
  assertMatch(dispatcher.address, /^wss:\/\/localhost:/);
  await using _workers = all(
    await startWorkers(dispatcher, 1, "--host", "localhost", ...TLS, "--ca", CA, ...ROOT),
  );
  const service = dispatcher.address;
  const ca = await Deno.readTextFile(CA);
  assertEquals(await soon("the job", sumOf({ service, ca })), 4_950);
  const error = await refusalOf({ service });
  assertEquals(error.code, "unavailable");
  assertMatch(error.message, /certificate/i);
  assertStringIncludes(error.message, "--ca");
  const open = await failureOf(WORKER, "--dispatcher", service, "--ca", CA, ...ROOT);
  assertMatch(open, /has TLS, and so must its workers.*--cert, --key/);
  const untrusting = await failureOf(STATUS, "--dispatcher", service);
  assertStringIncludes(untrusting, "pass the authority that signed its certificate (--ca)");
  const plain = await failureOf(STATUS, "--dispatcher", service.replace("wss:", "ws:"));
  assertStringIncludes(plain, "its address begins with wss://");
  for (const said of [untrusting, plain]) assertEquals(said.includes("check the address"), false);
  await using unencrypted = await startDispatcher();
  const wrong = unencrypted.address.replace("ws:", "wss:");
  const encrypting = await failureOf(STATUS, "--dispatcher", wrong);
  assertStringIncludes(encrypting, "its address begins with ws://");
});

Deno.test("a port in use is named with the remedy", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const port = String((taken.addr as Deno.NetAddr).port);
  const said = await failureOf(DISPATCHER, "--port", port);
  assertStringIncludes(said, port);
  assertMatch(said, /in use.*another port/);
});

Deno.test("an unusable journal is explained: no folder, damaged, or another dispatcher's", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const file = join(folder, "file");
  await Deno.writeTextFile(file, "no folder");
  const noFolder = await failureOf(DISPATCHER, "--port", "0", "--journal", file);
  assertStringIncludes(noFolder, file);
  assertMatch(noFolder, /choose another folder/);
  const damaged = join(folder, "damaged");
  await Deno.mkdir(damaged);
  await Deno.writeTextFile(join(damaged, "dispatcher.sqlite"), "no journal ".repeat(1_000));
  assertStringIncludes(await failureOf(DISPATCHER, "--port", "0", "--journal", damaged), damaged);
  const held = join(folder, "held");
  {
    await using _dispatcher = await startDispatcher("--journal", held);
    assertMatch(await failureOf(DISPATCHER, "--port", "0", "--journal", held), /in use/);
  }
});

Deno.test("invalid settings are refused, naming them", async () => {
  const here = ["--dispatcher", "ws://127.0.0.1:1"];
  assertStringIncludes(await failureOf(WORKER, "--dispatcher", "nonsense"), `"nonsense"`);
  assertStringIncludes(await failureOf(WORKER), "--dispatcher is required");
  // It would retry forever, like a worker whose dispatcher has not started yet.
  assertMatch(await failureOf(AUTOSCALE, "--dispatcher", "nonsense"), /--dispatcher.*"nonsense"/);
  assertMatch(await failureOf(WORKER, ...here, "--advertise", "a b"), /advertise.*"a b"/);
  assertMatch(await failureOf(DISPATCHER, "--cert", "x.pem"), /--cert needs --key/);
  assertMatch(await failureOf(DISPATCHER, "--ca", "missing.pem"), /--ca missing\.pem/);
  assertMatch(await failureOf(DISPATCHER, "--port", "65536"), /'65536'.*0 to 65535/);
});

Deno.test("listening beyond this machine needs a token, or --insecure", async () => {
  const said = await failureOf(DISPATCHER, "--port", "0", "--host", "0.0.0.0");
  assertMatch(said, /0\.0\.0\.0 without a token.*--insecure/);
  // So does a worker whose dispatcher is on another host: clients must reach it.
  assertMatch(await failureOf(WORKER, "--dispatcher", "ws://192.0.2.1:1"), /without a token/);
  await using dispatcher = await startDispatcher("--host", "0.0.0.0", "--insecure");
  assertMatch(dispatcher.address, /^ws:\/\/(?!0\.0\.0\.0|localhost)/);
});

Deno.test("a worker waits for its dispatcher, naming it", async () => {
  const first = await startDispatcher();
  const { port } = new URL(first.address);
  await first[Symbol.asyncDispose]();
  await using worker = await startWorker(first.address, "--name", "early");
  const waits = /Worker "early" waits for the dispatcher at (\S+):/;
  const [, whom] = await soon("the log", worker.child.stderr.match(waits)) ?? [];
  assertEquals(whom, first.address);
  await using second = await startDispatcher("--port", port);
  await second.child.line(/1 of 1 worker alive/);
});

Deno.test("the second of two workers with one name waits, saying why, until the first has ended", async () => {
  await using dispatcher = await startDispatcher();
  const [first] = await startWorkers(dispatcher, 1);
  await using earlier = first!;
  await using later = await startWorker(dispatcher.address, "--name", "w1");
  await soon("the log", later.child.stderr.match(/"w1" waits.*name of its own/s));
  earlier.child.kill("SIGTERM");
  assertEquals((await soon("its end", earlier.child.status)).code, 0);
  await soon("its turn", later.child.stderr.match(/"w1" works for/));
});

Deno.test("an advertised address that leads nowhere is reported by worker, dispatcher and client", async () => {
  await using dispatcher = await startDispatcher();
  await using _near = await startWorker(dispatcher.address, "--name", "near");
  const args = ["--name", "far", "--advertise", `127.0.0.1:${CLOSED_PORT}`];
  await using far = await startWorker(dispatcher.address, ...args);
  const address = `ws://127.0.0.1:${CLOSED_PORT}`;
  assertEquals(far.address, address);
  const told = await soon("the worker", far.child.stderr.match(/does not reach the address/));
  assertStringIncludes(told!.input, address);
  const [status] = await dispatcher.child.line(/UNREACHABLE: far .*/);
  assertStringIncludes(status, address);
  await using trainer = startChild("tests/cluster/fixture_trainer.ts", {
    args: [dispatcher.address, "for ever"],
  });
  const warned = await soon("the client", trainer.stderr.match(/Cannot read from worker "far"/));
  assertStringIncludes(warned!.input, address);
  assertStringIncludes(warned!.input, dispatcher.address);
  await trainer.line(/read 10000/);
  assertEquals(trainer.stderr.text.match(/Cannot read from worker/g)?.length, 1, "said once");
});
