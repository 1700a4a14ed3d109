/**
 * A cluster of processes on this host, and a job that shows what it delivers: `deno task cluster
 * --help`.
 */
import { type DatasetIterator, LeatError, type ShardingPolicy } from "../mod.ts";
import { Deployment, WORKER_TIMEOUT_LONG_MS, WORKER_TIMEOUT_MS } from "./cluster/deployment.ts";
import { type Batch, jobOf, Ledger } from "./cluster/ledger.ts";
import { Observer } from "./cluster/observer.ts";
import { type Outcome, summaryOf, verdictOf } from "./cluster/summary.ts";
import { followJob } from "./cluster/view.ts";
import { EXIT_FAILURE, EXIT_INTERRUPTED, runProgram, UsageError } from "./lib/args.ts";
import { makeTemporaryFolder, removeInUse } from "./lib/folders.ts";
import type { Program } from "./lib/help.ts";
import { choice, integer, type Values } from "./lib/options.ts";
import { StatusLine } from "./lib/status_line.ts";
import { StopRequests } from "./lib/stop_requests.ts";

const OPTIONS = {
  workers: integer({ help: "How many worker processes.", default: 3, min: 1, max: 64 }),
  elements: integer({
    help: "How many elements the job has.",
    default: 1_000_000,
    min: 1,
    max: 100_000_000,
  }),
  work: integer({
    help: "Steps of computation per element, a few nanoseconds each.",
    default: 2_000,
    min: 0,
    max: 10_000_000_000,
  }),
  mode: choice(["DYNAMIC", "OFF"], {
    help:
      "How workers divide the job: DYNAMIC assigns splits on request; OFF runs everything on each.",
    default: "DYNAMIC",
  }),
  killAfter: integer({
    help:
      "Kills the last worker (SIGKILL) once this many elements have arrived. Needs another worker, " +
      "which continues.",
    min: 1,
  }),
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task cluster",
  summary:
    "Starts a dispatcher and workers as processes of their own behind WebSockets, runs a job " +
    "through them from this process, checks every element that arrives, and stops them again.",
  options: OPTIONS,
  check({ workers, elements, mode, killAfter }) {
    if (killAfter === undefined) return;
    if (workers === 1) {
      throw new UsageError(
        "--kill-after kills the last worker, so with --workers 1 none would be left to continue: " +
          "give at least --workers 2",
      );
    }
    const arriving = elements * timesOf(mode, workers);
    if (killAfter <= arriving) return;
    throw new UsageError(
      `--kill-after is ${killAfter}, but only ${arriving} elements arrive (--elements ${elements}, ` +
        `--mode ${mode}): lower it, or raise --elements`,
    );
  },
  notes: `Examples:
  deno task cluster
  deno task cluster --workers 2 --mode OFF --elements 200000
  deno task cluster --kill-after 200000

Ctrl-C stops everything. For a cluster on several hosts see docs/cluster/, deno task dispatcher and
deno task worker.`,
};

export const run = (args: readonly string[] = Deno.args): Promise<void> =>
  runProgram(PROGRAM, main, args);

if (import.meta.main) await run();

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { workers, elements, work, killAfter } = values;
  using requests = new StopRequests();
  using status = new StatusLine({ plainEveryMs: 0 });
  using folders = new DisposableStack();
  // Not the current folder: with a dispatcher's journal in it, workers would refuse it.
  const dataRoot = folders.adopt(makeTemporaryFolder("leat-cluster-data-"), removeInUse);
  await using deployment = new Deployment((line) => status.note(line), {
    workerTimeoutMs: killAfter === undefined ? WORKER_TIMEOUT_LONG_MS : WORKER_TIMEOUT_MS,
    workerArgs: ["--data-root", dataRoot],
  });
  const stopped = requests.first.then((by) => {
    status.note(`Stopping (${by})`);
    return "interrupted" as const;
  });
  if (await Promise.race([stopped, deployment.start(workers)]) === "interrupted") {
    Deno.exitCode = EXIT_INTERRUPTED;
    return;
  }
  for (const child of [deployment.dispatcher, ...deployment.workers]) {
    status.note(`${child.name} listens on ${child.address} (process ${child.pid})`);
  }
  const ledger = new Ledger(elements, work);
  using observer = new Observer(deployment.dispatcher.address, deployment.token);
  const outcome = await runJob(values, deployment, ledger, observer, status, stopped);
  console.log(summaryOf(outcome, deployment, ledger, observer));
  const { text, kept } = verdictOf(outcome, deployment, ledger);
  console.log(text);
  if (outcome.interrupted) Deno.exitCode = EXIT_INTERRUPTED;
  else if (!kept) Deno.exitCode = EXIT_FAILURE;
}

/** Reads the job to its end, or until it is interrupted. */
async function runJob(
  values: Values<typeof OPTIONS>,
  deployment: Deployment,
  ledger: Ledger,
  observer: Observer,
  status: StatusLine,
  stopped: Promise<"interrupted">,
): Promise<Outcome> {
  const { elements, work, mode, killAfter = Infinity, workers } = values;
  const { dispatcher, token } = deployment;
  await using iterator = jobOf(elements, work, {
    service: dispatcher.address,
    token,
    processingMode: mode as ShardingPolicy,
    // The dispatcher keeps a named job after its client leaves, with the workers' statistics.
    jobName: "cluster",
  }).iterator();
  const dispatcherLost = dispatcher.ended.then((end) => {
    throw new LeatError("unavailable", `The dispatcher's process has ended (${end})`);
  });
  // Nothing restarts workers here, so without any worker the job would wait forever.
  const workersLost = Promise.all(
    deployment.workers.map(({ name, ended }) => ended.then((end) => `${name}: ${end}`)),
  ).then((ends) => {
    throw new LeatError("unavailable", `No worker is left for the job (${ends.join(", ")})`);
  });
  const startedMs = performance.now();
  using _ticks = followJob(status, observer, ledger);
  const victim = deployment.workers.at(-1)!;
  let killed = false;
  const reading = readAll(iterator, ledger, () => {
    if (killed || ledger.received < killAfter) return;
    killed = true;
    status.note(`Killing ${victim.name} (SIGKILL to process ${victim.pid})`);
    victim.kill();
  });
  const end = await Promise.race([reading, stopped, dispatcherLost, workersLost]);
  const seconds = (performance.now() - startedMs) / 1_000;
  await observer.refresh();
  const times = timesOf(mode, workers);
  return { seconds, elements, times, interrupted: end === "interrupted" };
}

/** How often each element of the job arrives. */
function timesOf(mode: string, workers: number): number {
  return mode === "OFF" ? workers : 1;
}

async function readAll(
  iterator: DatasetIterator<Batch>,
  ledger: Ledger,
  onBatch: () => void,
): Promise<void> {
  for await (const batch of iterator) {
    ledger.enter(batch);
    onBatch();
  }
}
