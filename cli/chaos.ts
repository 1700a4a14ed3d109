/**
 * Kills, pauses and disconnects processes of a cluster at random while jobs of every mode run, and
 * checks their guarantees: `deno task chaos --help`.
 */
import { Campaign } from "./chaos/campaign.ts";
import { jobOptions } from "./chaos/job_options.ts";
import { MODES } from "./chaos/modes/drill.ts";
import { FAULTS } from "./chaos/nemesis.ts";
import { SCALED_DRAIN_MS } from "./chaos/scaling.ts";
import { TestBed } from "./chaos/test_bed.ts";
import { runProgram, UsageError } from "./lib/args.ts";
import type { Program } from "./lib/help.ts";
import { integer, milliseconds, number, subset, type Values } from "./lib/options.ts";
import { StatusLine } from "./lib/status_line.ts";
import { StopRequests } from "./lib/stop_requests.ts";

const DEFAULT_MINUTES = 3;
const DEFAULT_DOWN_MS = 3_000;
const DEFAULT_PAUSE_MS = 5_000;

const OPTIONS = {
  minutes: number({
    help:
      `Starts no run after this many minutes, except the first of each mode; by default ${DEFAULT_MINUTES}, or as many as ` +
      "--kills takes.",
    min: 0.01,
    max: 10_000,
  }),
  kills: integer({
    help: "Ends once this many processes were killed.",
    min: 1,
    max: 1_000_000,
  }),
  faults: subset(FAULTS, {
    help: "The kinds of faults: SIGKILL, SIGSTOP for a while, cut connections.",
  }),
  modes: subset(MODES, { help: "Which jobs run, one after the other." }),
  seed: integer({ help: "The seed of the victims and times.", default: 1, min: 0 }),
  faultsPerRun: integer({
    help: "How many faults while one job runs.",
    default: 10,
    min: 1,
    max: 10_000,
  }),
  workers: integer({ help: "How many worker processes.", default: 3, min: 1, max: 64 }),
  maxWorkers: integer({
    help:
      "A scaler starts up to this many workers, and drains them down to --workers again. The wanted " +
      "number is random, and changes every few seconds. By default the number of workers is fixed.",
    min: 1,
    max: 64,
  }),
  dispatcherEvery: integer({
    help:
      "On average one in this many faults hits the dispatcher, which restarts from its journal; " +
      "0: none.",
    default: 5,
    min: 0,
    max: 1_000_000,
  }),
  betweenMs: milliseconds({ help: "The longest time between two faults.", default: 900, min: 1 }),
  downMs: milliseconds({
    help:
      `The longest time before a killed worker is restarted, by default ${DEFAULT_DOWN_MS}. From ` +
      "two seconds on, some workers time out before they are restarted.",
    min: 0,
  }),
  pauseMs: milliseconds({
    help: "The longest time that a process is paused or its connections are frozen, by default " +
      `${DEFAULT_PAUSE_MS}.`,
    min: 1,
  }),
  ...jobOptions({ elements: 20_000, work: 100_000 }),
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task chaos",
  summary:
    "Starts a dispatcher and workers as processes of their own and runs jobs of every mode through " +
    "them while processes are killed, paused and disconnected. Ends with status 1 at the first broken " +
    "guarantee, and prints the seed and the folder of the processes' logs.",
  options: OPTIONS,
  check({ kills, faults, downMs, pauseMs, workers, maxWorkers }) {
    const given = `--faults ${faults.join(",")}`;
    for (const [name, value] of Object.entries({ "--kills": kills, "--down-ms": downMs })) {
      if (value === undefined || faults.includes("kill")) continue;
      throw new UsageError(
        `${name} is ${value}, but ${given} has no kill: add it, or leave out one`,
      );
    }
    if (pauseMs !== undefined && faults.every((fault) => fault === "kill")) {
      throw new UsageError(
        `--pause-ms is ${pauseMs}, but ${given} has no pause or cut: add one, or leave it out`,
      );
    }
    if (maxWorkers !== undefined && maxWorkers <= workers) {
      throw new UsageError(
        `--max-workers is ${maxWorkers} and --workers ${workers}: raise it, or leave it out`,
      );
    }
  },
  notes: `Examples:
  deno task chaos
  deno task chaos --minutes 30 --seed 7
  deno task chaos --kills 200 --faults kill --modes DETERMINISTIC
  deno task chaos --faults pause,cut --modes DYNAMIC,OFF
  deno task chaos --workers 2 --max-workers 5

What is checked, by mode:
  DETERMINISTIC  each batch is the one of an undisturbed read; the reader stays within its window
  DYNAMIC        no element twice; each once if no worker is killed or times out (every other run)
  OFF            the same for each worker's stream; each once only if no worker is drained either
  sharing        each trainer gets a worker's elements in order, and none twice
  coordinated    in a step all consumers get their parts of one round of one task
  save           a save that is ended and called again leaves each element once, and nothing else

Readers wait for the faults of their run, so that each fault hits a running job. The seed decides times
and victims, but not what runs at those times. A relay in front of each process cuts connections, which
needs no permissions.`,
};

export const run = (args: readonly string[] = Deno.args): Promise<void> =>
  runProgram(PROGRAM, main, args);

if (import.meta.main) await run();

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { kills, maxWorkers, minutes = kills === undefined ? DEFAULT_MINUTES : Infinity } = values;
  const { downMs = DEFAULT_DOWN_MS, pauseMs = DEFAULT_PAUSE_MS } = values;
  using requests = new StopRequests();
  await using testBed = new TestBed(maxWorkers === undefined ? {} : { drainMs: SCALED_DRAIN_MS });
  using status = new StatusLine();
  const campaign = new Campaign({ ...values, minutes, downMs, pauseMs }, testBed, status);
  const end = await requests.interrupting(campaign.run(), async () => {
    const summary = await campaign.interrupt();
    status[Symbol.dispose]();
    return summary;
  });
  // A paused process would not notice the request to end.
  campaign.prepareToEnd();
  if (end === "kept") return;
  // A run that hangs fails when its processes end. Its rejection must not end this program before the
  // last line is printed.
  globalThis.addEventListener("unhandledrejection", (event) => event.preventDefault());
  await testBed.fail(`Promises were broken with --seed ${values.seed}`);
}
