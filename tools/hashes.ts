/**
 * Compares the trace hashes of simulated runs with recorded ones, or records them:
 *
 *     deno task hashes
 *     deno task hashes --write
 *
 * A trace covers every message of a run with its time and fate. A change that only moves code
 * leaves all hashes unchanged. See docs/simulation.md.
 */
import { EXIT_FAILURE, EXIT_INTERRUPTED, runProgram, UsageError } from "../cli/lib/args.ts";
import type { Program } from "../cli/lib/help.ts";
import { choice, flag, integer, type Values } from "../cli/lib/options.ts";
import { counted } from "../cli/lib/counted.ts";
import { StopRequests } from "../cli/lib/stop_requests.ts";
import { SeedPool } from "../sim/vopr/pool.ts";
import { CampaignProgress } from "../sim/vopr/progress.ts";
import {
  differenceText,
  formatHashes,
  hashDifferences,
  parseHashes,
  recordedHash,
  recordedRuns,
  runKey,
} from "../sim/vopr/recorded_hashes.ts";
import type { SeedOutcome } from "../sim/vopr/seed_run.ts";
import { ALL } from "../sim/vopr/settings.ts";
import { WORKLOADS } from "../sim/workloads/workloads.ts";

/** The recorded hashes. */
const FILE = new URL("../tests/sim/trace_hashes.txt", import.meta.url);
/** Number of recorded seeds of each workload. */
const SEEDS = 200;
/** The longest delay of a timer, so that slow runs are never abandoned. */
const SEED_TIMEOUT_MS = 2_000_000_000;

/** Stands for the hash of a run that was not started. */
const NOT_RUN = "none";

const OPTIONS = {
  write: flag("Records the hashes instead of comparing them."),
  workload: choice([ALL, ...Object.keys(WORKLOADS)], {
    help: "Compares or records the runs of this workload only.",
    placeholder: "NAME",
    default: ALL,
  }),
  seeds: integer({
    help: "How many seeds of each workload to compare.",
    default: SEEDS,
    min: 1,
    max: SEEDS,
  }),
  jobs: integer({
    help: "Threads, by default one for each core; 0 runs the seeds in the main thread.",
    min: 0,
    max: 1_024,
  }),
};

type Settings = Values<typeof OPTIONS>;

/** The program's options and help. */
export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task hashes",
  summary: `Compares the trace hashes of ${SEEDS} seeds of each workload with the recorded ones, ` +
    "and says which run differs first.",
  options: OPTIONS,
  notes:
    "The exit status is 1 if a hash differs. A run that breaks a guarantee is shown, and has a hash " +
    "too: guarantees are what `deno task vopr` is for.",
  check({ write, seeds }) {
    if (!write || seeds === SEEDS) return;
    throw new UsageError("--write records all seeds: leave out --seeds");
  },
};

async function main(settings: Settings): Promise<void> {
  const { write, seeds, workload, jobs = navigator.hardwareConcurrency } = settings;
  const workloads = workload === ALL ? Object.keys(WORKLOADS) : [workload];
  const runs = [...recordedRuns(workloads, seeds)];
  // Inserted in the order of the file, because runs end in any order.
  const found = new Map(runs.map((run) => [runKey(run), NOT_RUN]));
  using pool = new SeedPool({ jobs, seedTimeoutMs: SEED_TIMEOUT_MS });
  using requests = new StopRequests();
  let isInterrupted = false;
  requests.first.then(() => {
    isInterrupted = true;
    pool.stop();
  });
  const broken: SeedOutcome[] = [];
  let ended = 0;
  {
    using progress = new CampaignProgress({ runs: runs.length, timeMs: Infinity });
    await pool.runAll(runs, (outcome) => {
      found.set(runKey(outcome.run), recordedHash(outcome));
      if (outcome.violations.length > 0) broken.push(outcome);
      progress.update({ done: ++ended, failed: broken.length });
    });
  }
  if (isInterrupted) {
    Deno.exitCode = EXIT_INTERRUPTED;
    console.error(`Interrupted after ${ended} of ${counted(runs.length, "run")}`);
    if (write) return;
    for (const [key, hash] of found) if (hash === NOT_RUN) found.delete(key);
  }
  for (const { run, violations } of broken) {
    console.log(`seed ${run.options.seed} of ${run.workload} breaks a promise: ${violations[0]}`);
  }
  if (write) {
    if ([...found.values()].includes("")) {
      console.log("Nothing was recorded: some of the runs above did not end");
      Deno.exitCode = EXIT_FAILURE;
      return;
    }
    const recorded = parseHashes(await Deno.readTextFile(FILE));
    const isWhole = workload === ALL;
    await Deno.writeTextFile(
      FILE,
      formatHashes(isWhole ? found : new Map([...recorded, ...found])),
    );
    console.log(`Recorded ${counted(runs.length, "run")}`);
    return;
  }
  const differences = hashDifferences(parseHashes(await Deno.readTextFile(FILE)), found);
  const [first] = differences;
  if (first === undefined) {
    console.log(`${counted(found.size, "run")}: every trace is as recorded`);
    return;
  }
  console.log(
    `${differences.length} of ${counted(found.size, "run")} differ. First: ${
      differenceText(first)
    }`,
  );
  Deno.exitCode = EXIT_FAILURE;
}

if (import.meta.main) await runProgram(PROGRAM, main);
