/** A worker of a cluster, as a program: `deno task worker --help`. */
// Not from mod.ts, which also loads what only trainers need.
import { definedFields } from "../core/tree.ts";
import { serveWorker } from "../server/worker_server.ts";
import {
  nodeAddress,
  readServerOptions,
  readServiceTokens,
  SERVER_OPTIONS,
  workerName,
} from "./cluster/server_options.ts";
import { checkSandbox, readSandbox, SANDBOX_OPTIONS } from "./cluster/sandbox_options.ts";
import { asSettingsError, serveUntilStopped, startServing } from "./cluster/serving.ts";
import { runProgram, UsageError } from "./lib/args.ts";
import type { Program } from "./lib/help.ts";
import { flag, host, integer, milliseconds, texts, type Values } from "./lib/options.ts";
import { StopRequests } from "./lib/stop_requests.ts";

const BYTES_PER_MIB = 2 ** 20;
/** Limit of a number of MiB: above it, the number of bytes would be inexact. */
const MIB_MAX = Math.floor(Number.MAX_SAFE_INTEGER / BYTES_PER_MIB);

const OPTIONS = {
  dispatcher: nodeAddress({
    help: "The dispatcher: ws://host:port, or wss://host:port with TLS.",
    required: true,
  }),
  host: host({
    help:
      "The interface to listen on; by default 127.0.0.1 when the dispatcher is on this machine's " +
      "loopback and 0.0.0.0 otherwise, which needs a token or --insecure.",
  }),
  port: integer({ help: "The port; 0 takes a free one.", default: 0, min: 0, max: 65_535 }),
  name: workerName({
    help: "A stable name, unique among workers, for restarts; by default the " +
      "address that it advertises.",
  }),
  tag: texts({
    help: "A tag by which jobs choose workers (targetTags). With COLOCATED only clients with " +
      'targetWorkers: "any" or numConsumers use this worker.',
    placeholder: "WORD",
  }),
  serviceTokenFile: texts({
    help: "The token file of another service that pipelines read from.",
    placeholder: "ADDRESS=FILE",
  }),
  heartbeatMs: milliseconds({
    help:
      "Longest time between heartbeats; shorter if the dispatcher's --worker-timeout-ms needs it.",
    default: 30_000,
    min: 10,
  }),
  drainMs: milliseconds({
    help: "How long clients may fetch the rest when the worker is asked to stop.",
    default: 10_000,
    min: 0,
  }),
  windowMib: integer({
    help: "Limit of the memory of all sliding windows of shared tasks, in MiB; by default " +
      "10,240, or a quarter of this host's memory if that is less.",
    min: 1,
    max: MIB_MAX,
  }),
  roundsMib: integer({
    help:
      "Limit of the memory of one coordinated task's rounds that wait for slow trainers, in MiB; beyond " +
      "it the task starts no later round. By default 256.",
    min: 1,
    max: MIB_MAX,
  }),
  runawayThreadsMax: integer({
    help:
      "Exits with a failure once this many threads ignore the request to end, or one of them has not " +
      "even loaded, so that a supervisor restarts it; by default the number of cores. Only with " +
      "--no-sandbox.",
    min: 1,
  }),
  runawayAfterMs: milliseconds({
    help:
      "How long a thread may ignore the request to end before it counts for --runaway-threads-max. By " +
      "default 120,000. Only with --no-sandbox.",
    min: 1,
  }),
  noSlots: flag(
    "Sends all batches over the TCP connection. By default trainers of this host and user get large ones " +
      "through a file that both processes have open.",
  ),
  storageLatencyMs: milliseconds({
    help: "Added to every open and read of a file, to simulate remote storage.",
    default: 0,
    min: 0,
  }),
  imageMib: integer({
    help:
      "Limit of the memory for decoding one image, in MiB, computed from its header; a larger image " +
      "fails. By default 1,024.",
    min: 1,
    max: MIB_MAX,
  }),
  ...SANDBOX_OPTIONS,
  ...SERVER_OPTIONS,
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task worker --dispatcher ws://HOST:PORT",
  summary: "Serves a worker of a cluster: it runs pipelines and sends their elements to clients, " +
    "which have to reach it at the address that it prints.",
  options: OPTIONS,
  check(values) {
    checkSandbox(values);
    const { noSandbox, runawayThreadsMax, runawayAfterMs } = values;
    if (noSandbox || (runawayThreadsMax ?? runawayAfterMs) === undefined) return;
    const option = runawayThreadsMax === undefined ? "--runaway-after-ms" : "--runaway-threads-max";
    throw new UsageError(
      `${option} is for functions on threads, and the sandbox runs them in processes: leave it out, ` +
        "or add --no-sandbox (--function-timeout-ms ends such a process)",
    );
  },
  notes: `Examples:
  deno task worker --dispatcher ws://127.0.0.1:5050
  deno task worker --dispatcher ws://10.0.0.5:5050 --token-file /etc/leat/token --port 5051
  deno task worker --dispatcher ws://10.0.0.5:5050 --token-file /etc/leat/token \\
    --data-root /data --data-root s3://bucket/shards

Functions of submitted pipelines run in a sandbox: they may read below the data roots, and beyond that
may do only what --allow-… grants (docs/cluster/sandbox.md).

It waits for its dispatcher without a limit. It ends with status 2 if a setting is wrong or the
dispatcher refuses its token: a restart would not help. After Ctrl-C, clients have --drain-ms to
fetch what is left; a second Ctrl-C stops at once.`,
};

export const run = (args: readonly string[] = Deno.args): Promise<void> =>
  runProgram(PROGRAM, main, args);

if (import.meta.main) await run();

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { dispatcher, host, port, name, tag, heartbeatMs, storageLatencyMs } = values;
  const { windowMib, roundsMib, imageMib } = values;
  using requests = new StopRequests();
  if (values.stopAtEof) requests.watchStdin();
  const options = await readServerOptions(values);
  const services = await readServiceTokens(values.serviceTokenFile);
  const sandbox = await readSandbox(values);
  const server = await startServing(() =>
    serveWorker({
      ...options,
      dispatcher,
      port,
      tags: tag,
      services,
      heartbeatMs,
      ...(windowMib === undefined ? {} : { windowBytesMax: windowMib * BYTES_PER_MIB }),
      ...(roundsMib === undefined ? {} : { roundsBytesMax: roundsMib * BYTES_PER_MIB }),
      ...(imageMib === undefined ? {} : { imageBytesMax: imageMib * BYTES_PER_MIB }),
      runawayThreadsMax: values.runawayThreadsMax ?? navigator.hardwareConcurrency,
      ...definedFields({ runawayAfterMs: values.runawayAfterMs }),
      storageLatencyMs,
      ownProcess: true,
      sharesSlots: !values.noSlots,
      sandbox,
      ...(host === undefined ? {} : { hostname: host }),
      ...(name === undefined ? {} : { name }),
    })
  );
  console.log(`Worker "${server.name}" listening on ${server.address}`);
  const serving = {
    failed: server.failed.then(asSettingsError),
    close: () => server.close({ drainTimeoutMs: values.drainMs }),
  };
  await serveUntilStopped(serving, requests, (why) => {
    console.log(
      `Stopping (${why}): clients have ${values.drainMs / 1_000} s to fetch what is left`,
    );
  });
  // A pending read of standard input cannot be cancelled, and would keep this process alive.
  Deno.exit();
}
