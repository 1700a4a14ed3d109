/**
 * Workers on this host, as many as a dispatcher wants: `deno task autoscale --help`.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";
import { autoscale, type ScalingStep } from "../world/scaler.ts";
import { serviceAddress } from "../world/service_address.ts";
import { ProcessFleet } from "./cluster/process_fleet.ts";
import { CREDENTIAL_OPTIONS, readCredentials } from "./cluster/server_options.ts";
import { StopRequests } from "./cluster/serving.ts";
import { askForState } from "./cluster/state_request.ts";
import { integer, type Program, runProgram, text, type Values } from "./lib/args.ts";

const OPTIONS = {
  dispatcher: text({
    help: "The dispatcher: ws://host:port, or wss://host:port with TLS.",
    required: true,
    placeholder: "ADDRESS",
  }),
  min: integer({ help: "Never have fewer workers here.", default: 0, min: 0 }),
  max: integer({ help: "Never have more workers here.", default: 4, min: 1 }),
  name: text({
    help: "What the workers' names begin with; by default this host's name.",
    placeholder: "PREFIX",
  }),
  drainMs: integer({
    help: "How long clients may go on fetching what is left from a worker that is stopped.",
    default: 600_000,
    min: 0,
  }),
  intervalMs: integer({ help: "How often the dispatcher is asked.", default: 5_000, min: 10 }),
  ...CREDENTIAL_OPTIONS,
};

const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task autoscale --dispatcher ws://HOST:PORT",
  summary:
    "Starts and stops workers on this host, each a process of its own, as many as the dispatcher " +
    "wants. Workers that others have started count. What stands behind -- is given to each worker.",
  options: OPTIONS,
  notes: `Examples:
  deno task autoscale --dispatcher ws://127.0.0.1:5050 --min 1 --max 8
  deno task autoscale --dispatcher ws://10.0.0.5:5050 --token-file token --max 16 -- --data-root /data

It says why at each step. A worker that is not wanted any more finishes the splits that it holds; one
that ends by itself is replaced. Ctrl-C stops it and its workers, a second one at once.`,
};

const separator = Deno.args.indexOf("--");
const own = separator < 0 ? Deno.args : Deno.args.slice(0, separator);
const forWorkers = separator < 0 ? [] : Deno.args.slice(separator + 1);

await runProgram(PROGRAM, main, own);

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { min, max, name = Deno.hostname(), drainMs, intervalMs } = values;
  // An address that cannot be would be asked for ever, as one whose dispatcher is yet to start is.
  const dispatcher = serviceAddress(values.dispatcher, "--dispatcher");
  const { token, tokenFile, ca } = values;
  if (min > max) {
    throw new LeatError("invalid_argument", `--min is ${min} and --max ${max}: give no less`);
  }
  const credentials = await readCredentials(values);
  using requests = new StopRequests();
  await using fleet = new ProcessFleet({
    prefix: name,
    drainMs,
    args: [
      ...["--dispatcher", dispatcher],
      ...(token === undefined ? [] : ["--token", token]),
      ...(tokenFile === undefined ? [] : ["--token-file", await Deno.realPath(tokenFile)]),
      ...(ca === undefined ? [] : ["--ca", await Deno.realPath(ca)]),
      ...forWorkers,
    ],
    onLog: (line) => console.error(line),
  });
  const scaler = autoscale({
    dispatcher: { describe: () => askForState(dispatcher, credentials) },
    fleet,
    minWorkers: min,
    maxWorkers: max,
    intervalMs,
    onStep: (step) => console.log(lineOf(step)),
  });
  console.log(`Scaling from ${min} to ${max} workers for ${dispatcher}`);
  console.log(`Stopping (${await requests.first})`);
  // Side by side: the scaler waits for workers that it has begun to stop.
  await Promise.all([scaler.close(), fleet[Symbol.asyncDispose]()]);
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
