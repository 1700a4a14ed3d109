/**
 * Runs jobs through a cluster of processes for a bounded time, and checks that memory, threads and
 * file handles do not grow: `deno task soak --help`.
 */
import { Violations } from "../sim/checkers/checker.ts";
import { jobOptions } from "./chaos/job_options.ts";
import { MODES } from "./chaos/modes/drill.ts";
import { FAULTS, Nemesis } from "./chaos/nemesis.ts";
import { DrillRunner } from "./chaos/drill_runner.ts";
import { TestBed } from "./chaos/test_bed.ts";
import { runProgram, UsageError } from "./lib/args.ts";
import { commandOf } from "./lib/command_line.ts";
import type { Program } from "./lib/help.ts";
import { choice, integer, milliseconds, number, subset, text, type Values } from "./lib/options.ts";
import { requireWritable } from "./lib/page.ts";
import { counted } from "./lib/counted.ts";
import { StatusLine } from "./lib/status_line.ts";
import { StopRequests } from "./lib/stop_requests.ts";
import { renderTable } from "./lib/table.ts";
import { actingEvery } from "./soak/acting_every.ts";
import { runLoad } from "./soak/load.ts";
import { PROBE_FLAGS, Samples } from "./soak/samples.ts";
import type { SoakReport } from "./soak/report.ts";
import { CREEP_SHARE, MARGINS, SAMPLES_OF_RUN_MIN, trendsOf, WARM_UP_SHARE } from "./soak/trend.ts";

const SECONDS_PER_MINUTE = 60;
/** Short, so that the dispatcher does not accumulate ended jobs. */
const JOB_GC_TIMEOUT_MS = 5_000;
const FAULTS_PER_ROUND = 5;
const BETWEEN_FAULTS_MS = 1_000;
const FAULT_LASTS_MS = 3_000;
const GENTLE_MS = 500;
const SPARED = 1;

const OPTIONS = {
  minutes: number({
    help: "Starts no job after this many minutes.",
    default: 8,
    min: 0.05,
    max: 10_000,
  }),
  modes: subset(MODES, { help: "Which jobs run, round-robin." }),
  lanes: integer({ help: "How many jobs run at the same time.", default: 2, min: 1, max: 16 }),
  workers: integer({ help: "How many worker processes.", default: 2, min: 1, max: 64 }),
  chaos: choice(["none", ...FAULTS], {
    help: "The faults of workers. A killed worker is restarted, and judged only if it " +
      "lives for most of the run.",
    default: "none",
  }),
  spared: integer({
    help: `How many workers get no faults of --chaos, by default ${SPARED}.`,
    min: 0,
    max: 63,
  }),
  seed: integer({ help: "The seed of all random choices.", default: 1, min: 0 }),
  sampleMs: milliseconds({ help: "The time between two samples.", default: 5_000, min: 100 }),
  ...jobOptions({ elements: 4_000, work: 20_000 }),
  report: text({
    help: "Where the page with the plots is written.",
    default: "soak-report.html",
    placeholder: "FILE",
  }),
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task soak",
  summary:
    "Starts a dispatcher and workers as processes of their own, runs jobs of every mode through them " +
    "sequentially and concurrently, and samples resident memory, V8's heap, threads and " +
    "file handles of each process. Ends with status 1 if one of them grows, or a guarantee is broken.",
  options: OPTIONS,
  check({ workers, chaos, spared }) {
    if (chaos === "none") {
      if (spared === undefined) return;
      throw new UsageError(`--spared is ${spared}, but there are no faults: add --chaos`);
    }
    if ((spared ?? SPARED) < workers) return;
    throw new UsageError(
      `--spared is ${
        spared ?? SPARED
      } of ${workers} workers, and --chaos ${chaos} needs one for faults; ` +
        "spare fewer, or have more --workers",
    );
  },
  notes: `Examples:
  deno task soak
  deno task soak --minutes 60 --lanes 4 --report /tmp/soak.html
  deno task soak --minutes 20 --chaos cut

The first ${
    100 * WARM_UP_SHARE
  } % of the time are warm-up. Of the rest, the lower quartile of the last third is compared with that
of the first: the quartile is what remains when jobs end. It may grow by
${
    Object.entries(MARGINS)
      .map(([name, { more, percent, unit }]) =>
        `  ${name.padEnd(8)} ${percent} %, or ${more} ${unit}`
      )
      .join("\n")
  }
Growth is judged only after ${SAMPLES_OF_RUN_MIN} samples (--sample-ms); a run that is shorter says so.
What rises all the way, and no slower at the end, may grow by only ${100 * CREEP_SHARE} % of that.
Threads and file handles are read from /proc, and left out where there is none.`,
};

export const run = (args: readonly string[] = Deno.args): Promise<void> =>
  runProgram(PROGRAM, main, args);

if (import.meta.main) await run();

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { chaos, spared = SPARED, seed, report: path } = values;
  requireWritable(path, "--report");
  using requests = new StopRequests();
  const samples = new Samples();
  const violations = new Violations();
  await using testBed = new TestBed({
    flags: PROBE_FLAGS,
    onOutput: (_name, line) => samples.received(line),
    dispatcherArgs: ["--job-gc-timeout-ms", `${JOB_GC_TIMEOUT_MS}`],
  });
  using status = new StatusLine();
  const nemesis = chaos === "none" ? undefined : new Nemesis(testBed.deployment, {
    ...{ seed, faults: [chaos], relays: testBed.relays, dispatcherEvery: 0, spared },
    ...{ betweenMaxMs: BETWEEN_FAULTS_MS, downMaxMs: FAULT_LASTS_MS, pauseMaxMs: FAULT_LASTS_MS },
    ...{ gentleMaxMs: GENTLE_MS, onFault: (what) => testBed.logs.write("faults", what) },
    findings: violations.by("processes"),
  });
  const soaked = soak(values, testBed, { nemesis, samples, violations, status });
  const report = await requests.interrupting(soaked, async () => {
    nemesis?.enough();
    nemesis?.resumeAll();
    const done = `${
      samples.seconds.toFixed(0)
    } s: growth was not judged, and no report was written`;
    const summary = await testBed.interrupted(done, violations);
    status[Symbol.dispose]();
    return summary;
  });
  nemesis?.resumeAll();
  // Loaded after the samples, because the drawing library's memory would count as the readers'.
  const { findingOf, trendTable, writeSoakReport } = await import("./soak/report.ts");
  writeSoakReport(report, path);
  if (report.trends.length > 0) console.log(renderTable(trendTable(report.trends)));
  console.log(`${findingOf(report)}. Plots: ${path}`);
  const isKept = report.violations.length === 0 && report.trends.every(({ grows }) => !grows);
  if (!isKept) await testBed.fail(`--seed ${seed}`);
}

async function soak(
  values: Values<typeof OPTIONS>,
  testBed: TestBed,
  { nemesis, samples, violations, status }: {
    readonly nemesis: Nemesis | undefined;
    readonly samples: Samples;
    readonly violations: Violations;
    readonly status: StatusLine;
  },
): Promise<SoakReport> {
  const { minutes, modes, lanes, workers, seed, sampleMs, elements, work, patienceS } = values;
  const startedAt = new Date().toISOString();
  await testBed.deployment.start(workers);
  let runs = 0;
  const runner = new DrillRunner(testBed, nemesis, {
    ...{ seed, workers, size: { elements, work }, patienceMs: patienceS * 1_000 },
    violations,
    onStep: () =>
      status.show(
        `${(samples.seconds / SECONDS_PER_MINUTE).toFixed(1)} of ${minutes} minutes: ${
          counted(runs, "job")
        }, ` +
          counted(nemesis?.total() ?? 0, "fault"),
      ),
  });
  if (modes.includes("DETERMINISTIC")) await runner.readUndisturbed();
  samples.start();
  const sample = () => {
    const { dispatcher, workers } = testBed.deployment;
    return samples.take([dispatcher, ...workers].filter(({ end }) => end === undefined));
  };
  const load = () =>
    runLoad(runner, nemesis, {
      ...{ modes, lanes, faultsPerRound: FAULTS_PER_ROUND },
      goesOn: () => violations.count === 0 && samples.seconds < minutes * SECONDS_PER_MINUTE,
      onRun: (mode, count) => {
        runs++;
        status.note(`${samples.seconds.toFixed(0)} s: ${mode} job ${count} is done`);
      },
    });
  const counts = await actingEvery(sampleMs, sample, load);
  return {
    startedAt,
    commandLine: commandOf(PROGRAM.usage, Deno.args),
    seconds: samples.seconds,
    sampleMs,
    faults: nemesis?.total() ?? 0,
    runs: Object.fromEntries(counts),
    violations: violations.list(),
    series: Object.fromEntries(samples.series),
    trends: trendsOf(samples.series, samples.seconds),
  };
}
