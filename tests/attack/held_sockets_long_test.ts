/**
 * An attacker without a token who holds more connections than a dispatcher or a worker may have
 * open files must not end them, must not stop a job, and must not lock out clients with the token.
 */
import { Dataset, type DistributeOptions } from "../../mod.ts";
import { assert, assertEquals } from "../assert.ts";
import { type Part, soon, startDispatcherWith, startWorkerWith } from "../cluster/lib.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { until } from "../lib/until.ts";
import { Stranger } from "./stranger.ts";

const TOKEN = ["--token", "sesame"];
const DISPATCHER_FILES = 96;
const WORKER_FILES = 128;
const HELD = 200;
const TLS = "tests/transport/tls";

/** The sum of a job that is read while connections are held; retried while it cannot be reached. */
async function sumOf(options: DistributeOptions): Promise<number> {
  const numbers = Dataset.range(1_000).batch(10).distribute({
    processingMode: "DYNAMIC",
    ...options,
  });
  let sum = 0;
  for await (const batch of numbers) {
    for (const number of batch.data) sum += Number(number);
  }
  return sum;
}

function assertLives(part: Part): void {
  assertEquals(/^error: /m.test(part.child.stderr.text), false, part.child.stderr.text);
}

Deno.test("held sockets end neither dispatcher nor worker, and keep out nobody with the token", async () => {
  await using folder = await TempFolder.make();
  const journal = ["--journal", folder.path];
  await using dispatcher = await startDispatcherWith(DISPATCHER_FILES, ...TOKEN, ...journal);
  const service = { service: dispatcher.address, token: "sesame" };
  await using worker = await startWorkerWith(WORKER_FILES, dispatcher.address, ...TOKEN);
  await dispatcher.child.line(/1 of 1 worker alive/);
  await using iterator = Dataset.range(1_000_000_000).distribute(service).iterator();
  assert(!(await iterator.next()).done);
  await using atDispatcher = new Stranger(dispatcher.address, HELD);
  await using atWorker = new Stranger(worker.address, HELD);
  // Each has received more than it can hold, and recovers.
  await until(() => atDispatcher.lost > HELD && atWorker.lost > HELD);
  const sum = await soon("a job that begins meanwhile", sumOf(service));
  assertEquals(sum, 499_500);
  for (let i = 0; i < 1_000; i++) assert(!(await iterator.next()).done);
  const short = /raise the limit of open files \(ulimit -n\)/;
  await soon("the dispatcher's log", dispatcher.child.stderr.match(short));
  await soon("the worker's log", worker.child.stderr.match(short));
  for (const part of [dispatcher, worker]) assertLives(part);
});

/** Nothing, and the beginning of a handshake. */
const SILENT_TLS = ["", "\x16\x03\x01\x02\x00\x01\x00\x01"];
const CERTIFICATE = ["--cert", `${TLS}/server.pem`, "--key", `${TLS}/server.key`];

Deno.test("sockets held in the middle of a TLS handshake keep out nobody with the token", async () => {
  const args = [...TOKEN, "--host", "localhost", ...CERTIFICATE, "--ca", `${TLS}/ca.pem`];
  await using dispatcher = await startDispatcherWith(DISPATCHER_FILES, ...args);
  // A worker does not let functions read its key.
  const root = ["--data-root", "tests/data"];
  await using _worker = await startWorkerWith(WORKER_FILES, dispatcher.address, ...args, ...root);
  await dispatcher.child.line(/1 of 1 worker alive/);
  await using stranger = new Stranger(dispatcher.address, HELD, SILENT_TLS);
  await soon("dropping them", until(() => stranger.lost > HELD));
  const ca = await Deno.readTextFile(`${TLS}/ca.pem`);
  const service = { service: dispatcher.address, token: "sesame", ca };
  assertEquals(await soon("a job that begins meanwhile", sumOf(service)), 499_500);
  assertLives(dispatcher);
});
