/** Keeps as many workers on this host as a dispatcher wants: `deno task autoscale --help`. */
import { shownText } from "../core/shown_text.ts";
import { autoscale, type ScalingStep } from "../server/cluster/scaler.ts";
import { ProcessFleet } from "./cluster/process_fleet.ts";
import {
  CREDENTIAL_OPTIONS,
  nodeAddress,
  readCredentials,
  workerName,
} from "./cluster/server_options.ts";
import { serveUntilStopped } from "./cluster/serving.ts";
import { askForState } from "./cluster/state_request.ts";
import { readWorkerTags } from "./cluster/worker_arguments.ts";
import { runProgram, UsageError } from "./lib/args.ts";
import type { Program } from "./lib/help.ts";
import { integer, milliseconds, type Values } from "./lib/options.ts";
import { StopRequests } from "./lib/stop_requests.ts";

/** Limit of the workers: no host can run that many processes. */
const WORKERS_MAX = 10_000;

const OPTIONS = {
  dispatcher: nodeAddress({
    help: "The dispatcher: ws://host:port, or wss://host:port with TLS.",
    required: true,
  }),
  min: integer({ help: "The least number of workers here.", default: 0, min: 0, max: WORKERS_MAX }),
  max: integer({ help: "Limit of the workers here.", default: 4, min: 1, max: WORKERS_MAX }),
  name: workerName({
    help:
      "The prefix of the workers' names, unique to each autoscaler; by default this host's name.",
    placeholder: "PREFIX",
  }),
  drainMs: milliseconds({
    help: "How long clients may fetch the rest from a worker that is stopped.",
    default: 600_000,
    min: 0,
  }),
  intervalMs: milliseconds({
    help: "Time between requests to the dispatcher.",
    default: 5_000,
    min: 10,
  }),
  ...CREDENTIAL_OPTIONS,
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task autoscale --dispatcher ws://HOST:PORT",
  summary:
    "Keeps as many workers on this host as the dispatcher wants, each in a process of its own. " +
    "Workers that others have started count, if they may serve the job and can be reached. " +
    "Arguments after -- are given to each worker.",
  options: OPTIONS,
  check({ min, max }) {
    if (min <= max) return;
    throw new UsageError(
      `--min is ${min}, more than --max, which is ${max}: raise one or lower the other`,
    );
  },
  notes: `Examples:
  deno task autoscale --dispatcher ws://127.0.0.1:5050 --min 1 --max 8
  deno task autoscale --dispatcher ws://10.0.0.5:5050 --token-file token --max 16 -- --data-root /data

It prints a reason for each step. A worker that is no longer wanted finishes the splits that it holds.
A worker that ends by itself is replaced. Run one autoscaler per dispatcher: two would both start the
missing workers, and then stop the surplus. Ctrl-C stops it and its workers, a second Ctrl-C at once.`,
};

/** Runs the program. Arguments after `--` are for its workers. */
export function run(args: readonly string[] = Deno.args): Promise<void> {
  const separator = args.indexOf("--");
  if (separator < 0) return runProgram(PROGRAM, (values) => main(values, []), args);
  const workerArgs = args.slice(separator + 1);
  return runProgram(PROGRAM, (values) => main(values, workerArgs), args.slice(0, separator));
}

if (import.meta.main) await run();

async function main(
  values: Values<typeof OPTIONS>,
  workerArgs: readonly string[],
): Promise<void> {
  const { min, max, name = Deno.hostname(), drainMs, intervalMs } = values;
  const { dispatcher, token, tokenFile, ca } = values;
  const credentials = await readCredentials(values);
  const args = [
    ...["--dispatcher", dispatcher],
    // With an equals sign, because the values may begin with a dash.
    ...(token === undefined ? [] : [`--token=${token}`]),
    ...(tokenFile === undefined ? [] : [`--token-file=${tokenFile}`]),
    ...(ca === undefined ? [] : [`--ca=${ca}`]),
  ];
  const tags = await readWorkerTags(args, workerArgs);
  using requests = new StopRequests(() => fleet.kill());
  await using fleet = new ProcessFleet({
    prefix: name,
    drainMs,
    args: [...args, ...workerArgs],
    tags,
    onLog: (line) => console.error(line),
  });
  const scaler = autoscale({
    dispatcher: { describe: () => askForState(dispatcher, credentials) },
    fleet,
    minWorkers: min,
    maxWorkers: max,
    intervalMs,
    // The step's reason contains names of jobs, which are untrusted.
    onStep: (step) => console.log(shownText(lineOf(step))),
  });
  console.log(`Scaling from ${min} to ${max} workers for ${dispatcher}`);
  const serving = {
    failed: scaler.failed,
    // Both at once: the scaler waits for draining workers, and the others can drain meanwhile.
    close: async () => {
      await Promise.all([scaler.close(), fleet[Symbol.asyncDispose]()]);
    },
  };
  await serveUntilStopped(serving, requests, (why) => console.log(`Stopping (${why})`));
}

function lineOf({ action, worker, workers, reason }: ScalingStep): string {
  switch (action) {
    case "start":
      return `Starting worker ${workers}: ${reason}`;
    case "stop":
      return `Stopping ${worker}, ${workers} stay: ${reason}`;
    case "fail":
      return reason;
  }
}
