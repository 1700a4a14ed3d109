/** The experiments of the FastFlow paper with Leat: `deno task fastflow --help`. */
import { join } from "node:path";
import { counted } from "./lib/counted.ts";
import { EXIT_FAILURE, runProgram, UsageError } from "./lib/args.ts";
import { commandOf } from "./lib/command_line.ts";
import { makeTemporaryFolder, removeInUse } from "./lib/folders.ts";
import type { Program } from "./lib/help.ts";
import { flag, integer, subset, text, type Values } from "./lib/options.ts";
import { requireWritable } from "./lib/page.ts";
import { StopRequests } from "./lib/stop_requests.ts";
import { formatNumber, renderTable } from "./lib/table.ts";
import { Progress } from "./simulate/progress.ts";
import { LocalCluster } from "../mod.ts";
import { measureCosts } from "./fastflow/costs.ts";
import { writeData } from "./fastflow/data.ts";
import { ENVIRONMENTS, HOSTS } from "./fastflow/environments.ts";
import { measureOne, type RealEnvironment, runsPerWorkload } from "./fastflow/measured.ts";
import { modelAll, type Outcome } from "./fastflow/modelled.ts";
import { RemoteHost } from "./fastflow/remote_host.ts";
import { environmentsOf, sweep, type SweepResults } from "./fastflow/sweep/sweep.ts";
import { type Results, tablesOf } from "./fastflow/tables.ts";
import { type Letter, LETTERS, type Workload, WORKLOADS } from "./fastflow/workloads.ts";

const FULL = {
  ...{ profileSteps: 50, modelledSteps: 600, measuredSteps: 100 },
  ratios: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  measured: LETTERS,
  /** As in the paper's Fig. 9: one for data, one for computing. */
  measuredOnHosts: ["T", "S"] as readonly Letter[],
};
const QUICK = {
  ...{ profileSteps: 8, modelledSteps: 200, measuredSteps: 15, ratios: [0.25, 0.5, 0.75, 1] },
  measured: ["S"] as readonly Letter[],
  measuredOnHosts: ["T"] as readonly Letter[],
};

/** The ratios of a sweep on slow hosts. */
const COARSE_RATIOS = [0.25, 0.5, 0.75, 1];
/** About how long the sweep takes. */
const SWEEP_MINUTES = 20;

const OPTIONS = {
  quick: flag(
    `Shorter runs, and real processes only for ${QUICK.measured}, and for ${QUICK.measuredOnHosts} ` +
      "if ip and tc have the permissions: some minutes.",
  ),
  workloads: subset(LETTERS, {
    placeholder: "T,G,C,S,R,M,L",
    help: "Transformer ASR, GAN ADA, CTC ASR, Speaker Recognition, RandAugment, MelGAN, " +
      "Learnable Resizer.",
  }),
  modelled: flag("Measure only the costs of a batch, and run the rest in the model."),
  measured: flag(
    "Run only the sweep with real processes: up to 24 environments, fewer with --workloads or " +
      "without ip and tc, each with brute force over candidates and ratios. Measuring takes about " +
      "--minutes, the whole run longer. It needs 2 cores or more without other load.",
  ),
  minutes: integer({
    help: `About how long --measured measures, by default ${SWEEP_MINUTES}; the whole run takes ` +
      "longer. With more cores it measures more in this time; a busy host takes longer.",
    ...{ min: 1, max: 1_000 },
  }),
  out: text({ placeholder: "FILE", help: "Also writes the results as JSON." }),
  report: text({
    ...{ placeholder: "FILE", default: "./fastflow.html" },
    help: "Where to write the page of plots.",
  }),
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task fastflow",
  summary:
    "Runs the experiments of the FastFlow paper: local only, all remote, half remote and Leat's decision (Fig. 6), " +
    "each candidate (Fig. 8), each ratio (Fig. 9 and 10), and what profiling costs (Table 4).",
  options: OPTIONS,
  check({ measured, modelled, quick, minutes }) {
    if (measured && modelled) throw new UsageError("There are --measured and --modelled: give one");
    if (measured && quick) {
      throw new UsageError("--quick does not shorten --measured: leave it out, or give --minutes");
    }
    if (minutes !== undefined && !measured) {
      throw new UsageError(`--minutes is ${minutes}, but only --measured has a limit: add that`);
    }
  },
  notes:
    "The costs of each pipeline are measured in the same run. Environments with several workers, " +
    "slow networks and slow disks are modelled in virtual time. An environment with a worker in " +
    "processes of its own is measured. If ip and tc have the permissions, a slow network and a slow disk " +
    `are measured, too, for ${
      FULL.measuredOnHosts.join(" and ")
    }: the worker is in a network namespace behind a cable that tc slows down. ` +
    "Tables and plots say what is measured and what is modelled. Progress goes to standard error. The " +
    "exit status is 1 if an environment of --measured failed.",
};

if (import.meta.main) await runProgram(PROGRAM, main);

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { report: path, workloads: letters, out, measured } = values;
  requireWritable(path, "--report");
  if (out !== undefined) requireWritable(out, "--out");
  const workloads = WORKLOADS.filter(({ letter }) => letters.includes(letter));
  const startedMs = performance.now();
  const folder = makeTemporaryFolder("leat-fastflow-");
  using requests = new StopRequests();
  using progress = new Progress({ experiments: 3 + Object.keys(HOSTS).length });
  /** The results of the sweep so far. */
  let partial: Results | undefined;
  try {
    const started = measured
      ? runSweep(values, folder, progress, (results) => partial = results)
      : run(workloads, values, folder, progress);
    const results = await requests.interrupting(started, () => {
      progress.close();
      return interrupted(partial, out, folder);
    });
    progress.close();
    printTables(results);
    Deno.exitCode = statusOf(results);
    if (out !== undefined) await Deno.writeTextFile(out, jsonOf(results));
    const seconds = formatNumber((performance.now() - startedMs) / 1_000, 0);
    // Loaded late: `--help` does not need the drawing library.
    const { writeReport } = await import("./fastflow/report.ts");
    const host = `${counted(navigator.hardwareConcurrency, "core")}, ${Deno.build.arch}`;
    const facts = [["Took", `${seconds} s`], ["Host", host]] as const;
    writeReport(results, facts, commandOf(PROGRAM.usage, Deno.args), path);
    console.log(`\nTook ${seconds} s. Report: ${await Deno.realPath(path)}`);
  } finally {
    removeInUse(folder);
  }
}

/**
 * Keeps the results of an interrupted program, then removes its data. Returns the last line to print.
 * @param partial The results of the sweep so far.
 */
export function interrupted(
  partial: Results | undefined,
  out: string | undefined,
  folder: string,
): string {
  try {
    if (partial === undefined) return "Interrupted: nothing is kept";
    printTables(partial);
    if (out !== undefined) Deno.writeTextFileSync(out, jsonOf(partial));
    return "Interrupted: the table has the environments that were measured";
  } finally {
    removeInUse(folder);
  }
}

/** Returns the exit status: a failure if an environment of the sweep failed. */
export function statusOf({ sweep }: Pick<Results, "sweep">): number {
  return sweep === undefined || sweep.failed.length === 0 ? 0 : EXIT_FAILURE;
}

function printTables(results: Results): void {
  for (const { finding, table } of tablesOf(results)) {
    console.log(`\n${renderTable(table)}\n${finding}`);
  }
}

function jsonOf(results: Results): string {
  return `${JSON.stringify(results, null, 1)}\n`;
}

async function runSweep(
  { workloads: letters, minutes = SWEEP_MINUTES }: Values<typeof OPTIONS>,
  folder: string,
  progress: Progress,
  onFound: (results: Results) => void,
): Promise<Results> {
  const data = await writeData(folder);
  const { length } = environmentsOf(letters);
  progress.beginExperiment("measured environments", 1);
  progress.beginRun("sweep", length, "environments");
  let done = 0;
  const resultsOf = (found: SweepResults): Results => ({ costs: [], outcomes: [], sweep: found });
  const onDone = (found: SweepResults) => {
    progress.update({ done: ++done });
    onFound(resultsOf(found));
  };
  const found = await sweep({ letters, data, folder, minutes, onDone });
  progress.endRun();
  return resultsOf(found);
}

async function run(
  workloads: readonly Workload[],
  { quick, modelled }: Values<typeof OPTIONS>,
  folder: string,
  progress: Progress,
): Promise<Results> {
  const effort = quick ? QUICK : FULL;
  const { profileSteps, modelledSteps, measuredSteps, ratios, measured, measuredOnHosts } = effort;
  const data = await writeData(folder);
  await using service = await LocalCluster.start({ workers: 1, confine: { dataRoots: [folder] } });
  const costs: Results["costs"][number][] = [];
  progress.beginExperiment("costs of a batch", workloads.length);
  for (const workload of workloads) {
    progress.beginRun(workload.name, 1, "workload");
    const metricsStore = join(folder, "metrics.sqlite");
    costs.push({
      workload,
      ...await measureCosts(workload, data, { service, metricsStore, profileSteps }),
    });
    progress.endRun(`${formatNumber(costs.at(-1)!.prepareMs)} ms`);
  }
  const outcomes: Outcome[] = [];
  progress.beginExperiment("modelled environments", workloads.length);
  for (const { workload, ...cost } of costs) {
    let done = 0;
    progress.beginRun(workload.name, ENVIRONMENTS.length, "environments");
    const update = () => progress.update({ done: ++done });
    outcomes.push(...await modelAll(workload, cost, modelledSteps, update));
    progress.endRun();
  }
  const real = (letters: readonly Letter[]) =>
    modelled ? [] : costs.filter(({ workload }) => letters.includes(workload.letter));
  const measure = async (at: RealEnvironment, chosen: typeof costs, ratios: readonly number[]) => {
    progress.beginExperiment(at.environment, chosen.length);
    for (const { workload, ...cost } of chosen) {
      let done = 0;
      progress.beginRun(workload.name, runsPerWorkload(ratios), "runs");
      outcomes.push(
        await measureOne(workload, data, at, cost, {
          ...{ steps: measuredSteps, profileSteps, ratios },
          onRun: () => progress.update({ done: done++ }),
        }),
      );
      progress.endRun();
    }
  };
  await measure({ environment: "1:1, processes", service }, real(measured), ratios);
  const onHosts = real(measuredOnHosts);
  const whyNoHosts = onHosts.length === 0 ? undefined : await RemoteHost.whyNot();
  if (onHosts.length > 0 && whyNoHosts === undefined) {
    for (const [environment, options] of Object.entries(HOSTS)) {
      await using host = await RemoteHost.start({ ...options, dataRoot: folder });
      await measure({ environment, service: host.address }, onHosts, COARSE_RATIOS);
    }
  }
  return { costs, outcomes, ...(whyNoHosts === undefined ? {} : { whyNoHosts }) };
}
