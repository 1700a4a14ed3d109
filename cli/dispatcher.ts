/** The dispatcher of a cluster, as a program: `deno task dispatcher --help`. */
import type { DispatcherDescription } from "../mod.ts";
// Not from mod.ts, which also loads what only trainers need.
import { type DispatcherServer, serveDispatcher } from "../server/dispatcher_server.ts";
import { readServerOptions, SERVER_OPTIONS } from "./cluster/server_options.ts";
import { serveUntilStopped, startServing } from "./cluster/serving.ts";
import { statusLine } from "./cluster/status.ts";
import { runProgram, UsageError } from "./lib/args.ts";
import type { Program } from "./lib/help.ts";
import { host, integer, milliseconds, names, text, type Values } from "./lib/options.ts";
import { StopRequests } from "./lib/stop_requests.ts";
import { definedFields } from "../core/tree.ts";

/** How often the program checks whether its status has changed, in ms. */
const STATUS_MS = 1_000;

/** A limit of at least 1, and its default. */
const limit = (value: number, help: string) => integer({ help, default: value, min: 1 });

/** A limit in MiB. Above the maximum, the number of bytes would be inexact. */
const mebibytes = (value: number, help: string) =>
  integer({ help, default: value, min: 1, max: Math.floor(Number.MAX_SAFE_INTEGER / 2 ** 20) });

const OPTIONS = {
  host: host({
    help: "The interface to listen on; 0.0.0.0 for all, which needs a token or --insecure.",
    default: "127.0.0.1",
  }),
  port: integer({ help: "The port; 0 takes a free one.", default: 5_050, min: 0, max: 65_535 }),
  journal: text({
    help: "The folder of the journal, from which a restarted dispatcher continues. Without it, a " +
      "dispatcher that stops loses its state.",
    placeholder: "DIR",
  }),
  workers: names({
    help:
      "The names of the workers that share jobs of static policies (FILE, DATA, FILE_OR_DATA, " +
      "HINT and those of users), in the order of their shards. Without them such jobs are refused.",
  }),
  minWorkers: integer({
    help:
      "The lowest number of workers that it asks for, in /state, in metrics and from the autoscaler.",
    default: 0,
    min: 0,
  }),
  maxWorkers: limit(1_000, "The highest number of workers that it asks for."),
  workerTimeoutMs: milliseconds({
    help: "A worker without heartbeats for this time is lost, and its tasks end.",
    default: 60_000,
    min: 100,
  }),
  workerGraceMs: milliseconds({
    help:
      "A worker whose connection was closed, as by the end of its process, is lost if it does not " +
      "reconnect within this time.",
    default: 10_000,
    min: 100,
  }),
  clientTimeoutMs: milliseconds({
    help: "A client without heartbeats for this time is released.",
    default: 120_000,
    min: 100,
  }),
  clientGraceMs: milliseconds({
    help:
      "A client whose connection was closed, as by the end of its process, is released if it does " +
      "not reconnect within this time.",
    default: 10_000,
    min: 100,
  }),
  jobGcTimeoutMs: milliseconds({
    help: "A job without clients is removed after this time; -1: never.",
    default: 300_000,
    min: -1,
  }),
  windowSplits: limit(
    256,
    "DETERMINISTIC: how many splits are assigned ahead of the one that the reader needs next.",
  ),
  runnerDeathsMax: limit(
    3,
    "A job fails when the same piece of its work has killed this many processes or threads.",
  ),
  datasetMib: mebibytes(32, "Limit of one registered pipeline and the data in it, in MiB."),
  datasetsMib: mebibytes(256, "Limit of all pipelines of one identity, in MiB."),
  allDatasetsMib: mebibytes(512, "Limit of the pipelines of all identities, in MiB."),
  parametersMib: mebibytes(
    32,
    "Limit of all parameters of one identity's jobs and clients, in MiB.",
  ),
  allParametersMib: mebibytes(
    128,
    "Limit of the parameters of all identities' jobs and clients, in MiB.",
  ),
  splitsMib: mebibytes(272, "Limit of all tables of splits of one identity's jobs, in MiB."),
  allSplitsMib: mebibytes(
    544,
    "Limit of the tables of splits of all identities' jobs, in MiB.",
  ),
  jobsMax: limit(16_384, "Limit of the jobs of one identity."),
  tasksMax: limit(
    256,
    "Limit of one identity's tasks on each worker; a task is a process. No limit for admins.",
  ),
  clientsMax: limit(65_536, "Limit of one identity's clients at a time."),
  requestsPerSecondMax: limit(
    10_000,
    "Limit of the requests a second of one identity, or of one node of an admin.",
  ),
  ...SERVER_OPTIONS,
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task dispatcher",
  summary: "Serves the dispatcher of a cluster: it knows workers and jobs, and assigns splits. " +
    "Workers and training processes reach it at the address that it prints.",
  options: OPTIONS,
  check({ minWorkers, maxWorkers }) {
    if (minWorkers <= maxWorkers) return;
    throw new UsageError(
      `--min-workers is ${minWorkers}, more than --max-workers, which is ${maxWorkers}: ` +
        "raise one or lower the other",
    );
  },
  notes: `Examples:
  deno task dispatcher
  deno task dispatcher --host 0.0.0.0 --token-file /etc/leat/token --journal /var/lib/leat
  deno task dispatcher --workers node-1,node-2

Ctrl-C stops it; with --journal a restart continues.`,
};

export const run = (args: readonly string[] = Deno.args): Promise<void> =>
  runProgram(PROGRAM, main, args);

if (import.meta.main) await run();

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { journal, workers, minWorkers, maxWorkers } = values;
  using requests = new StopRequests();
  if (values.stopAtEof) requests.watchStdin();
  const options = await readServerOptions(values);
  const server = await startServing(() =>
    serveDispatcher({
      ...options,
      hostname: values.host,
      port: values.port,
      workerTimeoutMs: values.workerTimeoutMs,
      workerGraceMs: values.workerGraceMs,
      clientTimeoutMs: values.clientTimeoutMs,
      clientGraceMs: values.clientGraceMs,
      jobGcTimeoutMs: values.jobGcTimeoutMs,
      windowSplits: values.windowSplits,
      runnerDeathsMax: values.runnerDeathsMax,
      quotas: {
        datasetBytesMax: values.datasetMib * 2 ** 20,
        datasetsBytesMax: values.datasetsMib * 2 ** 20,
        allDatasetsBytesMax: values.allDatasetsMib * 2 ** 20,
        parametersBytesMax: values.parametersMib * 2 ** 20,
        allParametersBytesMax: values.allParametersMib * 2 ** 20,
        splitsBytesMax: values.splitsMib * 2 ** 20,
        allSplitsBytesMax: values.allSplitsMib * 2 ** 20,
        jobsMax: values.jobsMax,
        tasksMax: values.tasksMax,
        clientsMax: values.clientsMax,
        requestsPerSecondMax: values.requestsPerSecondMax,
      },
      scaling: { minWorkers, maxWorkers },
      ...definedFields({ journal, workers }),
    })
  );
  console.log(`Dispatcher listening on ${server.address}`);
  const token = values.token ?? values.tokenFile ?? values.tokensFile;
  console.log(`Live page at ${server.page}${token === undefined ? "" : "?token=…"}`);
  console.log(journal === undefined ? "Journal in memory" : `Journal in ${journal}`);
  using _status = showStatus(server);
  await serveUntilStopped(server, requests, (why) => console.log(`Stopping (${why})`));
  // A pending read of standard input cannot be cancelled, and would keep the process alive.
  Deno.exit();
}

/** Prints the dispatcher's state whenever it has changed. */
function showStatus(server: DispatcherServer): Disposable {
  let shown = "";
  const show = (description: DispatcherDescription) => {
    const status = statusLine(description);
    if (status !== shown) console.log(status);
    shown = status;
  };
  // A dispatcher that does not answer is stopping or restarting; the log says which.
  const timer = setInterval(() => server.describe().then(show, () => {}), STATUS_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
