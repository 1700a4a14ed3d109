/**
 * A worker of a cluster, as a program: `deno task worker --help`.
 *
 * @module
 */
// Not mod.ts, which brings all that a trainer needs: a worker would load it at each start.
import { serveWorker } from "../world/worker_server.ts";
import { readServerOptions, readServiceTokens, SERVER_OPTIONS } from "./cluster/server_options.ts";
import { readSandbox, SANDBOX_OPTIONS } from "./cluster/sandbox_options.ts";
import { serveUntilStopped, StopRequests } from "./cluster/serving.ts";
import { integer, type Program, runProgram, text, texts, type Values } from "./lib/args.ts";

const OPTIONS = {
  dispatcher: text({
    help: "The dispatcher: ws://host:port, or wss://host:port with TLS.",
    required: true,
    placeholder: "ADDRESS",
  }),
  host: text({
    help:
      "The interface to listen on; by default 127.0.0.1 when the dispatcher is on this machine's " +
      "loopback and 0.0.0.0 otherwise, which needs a token or --insecure.",
    placeholder: "HOST",
  }),
  port: integer({ help: "The port; 0 takes a free one.", default: 0, min: 0, max: 65_535 }),
  name: text({
    help: "A name that stays when the worker restarts, of its own among workers; by default the " +
      "address that it advertises.",
  }),
  tag: texts({
    help:
      "A word by which jobs choose workers (targetTags). COLOCATED leaves this one to clients " +
      "that ask for any worker.",
    placeholder: "WORD",
  }),
  serviceTokenFile: texts({
    help: "The file of the secret of another service that pipelines begin with.",
    placeholder: "ADDRESS=FILE",
  }),
  heartbeatMs: integer({ help: "Time between heartbeats.", default: 30_000, min: 10 }),
  drainMs: integer({
    help: "How long clients may go on fetching what is left when the worker is asked to stop.",
    default: 10_000,
    min: 0,
  }),
  windowMib: integer({
    help:
      "What the sliding windows of tasks that trainers share may hold together, in MiB; by default " +
      "10,240, or a quarter of this host's memory if that is less.",
    min: 1,
  }),
  roundsMib: integer({
    help:
      "What the rounds of one coordinated task may take that wait for trainers that lag, in MiB; beyond " +
      "it no later round is begun. By default 256.",
    min: 1,
  }),
  runawayThreadsMax: integer({
    help:
      "Exits with a failure, for whatever starts it anew, once so many threads run on that were told to " +
      "end; by default as many as there are cores.",
    min: 1,
  }),
  storageLatencyMs: integer({
    help: "Added to every open and read of a file: storage that is far away.",
    default: 0,
    min: 0,
  }),
  ...SANDBOX_OPTIONS,
  ...SERVER_OPTIONS,
};

const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task worker --dispatcher ws://HOST:PORT",
  summary: "Serves a worker of a cluster: it runs pipelines and hands their elements to clients, " +
    "which have to reach it at the address that it prints.",
  options: OPTIONS,
  notes: `Examples:
  deno task worker --dispatcher ws://127.0.0.1:5050
  deno task worker --dispatcher ws://10.0.0.5:5050 --token-file /etc/leat/token --port 5051
  deno task worker --dispatcher ws://10.0.0.5:5050 --data-root /data --data-root s3://bucket/shards

Functions of submitted pipelines run in a sandbox: they read below the data roots, and do nothing
else to this host but what --allow-… grants (docs/cluster.md, "Sandbox").

It waits for its dispatcher as long as it takes. Ctrl-C lets clients fetch what is left for a while
(--drain-ms), a second one stops at once.`,
};

await runProgram(PROGRAM, main);

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { dispatcher, host, port, name, tag, heartbeatMs, storageLatencyMs } = values;
  const { windowMib, roundsMib } = values;
  using requests = new StopRequests();
  if (values.stopAtEof) requests.watchStdin();
  const server = await serveWorker({
    ...await readServerOptions(values),
    dispatcher,
    port,
    tags: tag,
    services: await readServiceTokens(values.serviceTokenFile),
    heartbeatMs,
    ...(windowMib === undefined ? {} : { windowBytesMax: windowMib * 2 ** 20 }),
    ...(roundsMib === undefined ? {} : { roundsBytesMax: roundsMib * 2 ** 20 }),
    runawayThreadsMax: values.runawayThreadsMax ?? navigator.hardwareConcurrency,
    storageLatencyMs,
    ownProcess: true,
    sandbox: await readSandbox(values),
    ...(host === undefined ? {} : { hostname: host }),
    ...(name === undefined ? {} : { name }),
  });
  console.log(`Worker "${server.name}" listening on ${server.address}`);
  const serving = {
    failed: server.failed,
    close: () => server.close({ drainTimeoutMs: values.drainMs }),
  };
  await serveUntilStopped(serving, requests, (by) => {
    console.log(`Stopping (${by}): clients have ${values.drainMs / 1_000} s to fetch what is left`);
  });
  // Not left to the event loop: a pending read of standard input cannot be taken back.
  Deno.exit();
}
