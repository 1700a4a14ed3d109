/**
 * The main job: on one host, with every actor on a thread, what preprocessing on workers, sharing and coordinated reads
 * buy. Reading, decoding, augmenting, batching and the actors are real; of the training, the accelerator's step time alone is
 * simulated.
 *
 * ```sh
 * deno task simulate --quick
 * ```
 *
 * @module
 */

import { LeatError } from "../core/error.ts";
import denoJson from "../deno.json" with { type: "json" };
import { flag, number, type Program, runProgram, text, type Values } from "./lib/args.ts";
import { requireWritable } from "./lib/page.ts";
import { CORPUS_DIRECTORY, prepareCorpus } from "./simulate/corpus.ts";
import { coordinatedReads } from "./simulate/experiments/coordinated_reads.ts";
import { scaleOut } from "./simulate/experiments/scale_out.ts";
import { sharing } from "./simulate/experiments/sharing.ts";
import type { Simulation } from "./simulate/experiments/simulation.ts";
import { workerFailure } from "./simulate/experiments/worker_failure.ts";
import { Progress } from "./simulate/progress.ts";
import type { Experiment, SimulationReport } from "./simulate/results.ts";
import { summarize } from "./simulate/summary.ts";
import { formatNumber, renderTable } from "./lib/table.ts";

const EXPERIMENTS: Record<string, (simulation: Simulation) => Promise<Experiment>> = {
  a: scaleOut,
  b: sharing,
  c: coordinatedReads,
  d: workerFailure,
};

/** Most threads that the numbers of workers and trainers may ask for. */
const COUNT_MAX = 64;
const LINE_COLUMNS = 100;
const INTERRUPTED_EXIT_STATUS = 130;

const OPTIONS = {
  quick: flag(
    "Shorter runs, fewer of them, and a smaller corpus: about a minute on two idle cores, two where others use them.",
  ),
  images: text({
    placeholder: "DIR",
    help: "A folder of your own JPEGs, folders within it included, instead of made-up photographs.",
  }),
  text: text({
    placeholder: "FILE",
    help: "A file of your own text, a sample on each line, instead of made-up text.",
  }),
  corpus: text({
    placeholder: "DIR",
    help:
      "Where made-up and packed files are kept for the next run. Default: .cache/leat-corpus in the project.",
  }),
  report: text({
    placeholder: "FILE",
    default: "./report.html",
    help: "Where to write the page of plots.",
  }),
  only: text({
    placeholder: "a,b,c,d",
    default: "a,b,c,d",
    help:
      "Which experiments to run: (a) scale-out, (b) sharing, (c) coordinated reads, (d) a worker killed.",
  }),
  workers: text({
    placeholder: "1,2,4",
    help:
      "Numbers of workers in (a). Default: 1,2,4,8, with storage latency also 16; fewer with --quick.",
  }),
  trainers: text({
    placeholder: "1,2,4",
    help: "Numbers of trainers in (b), 1 among them. Default: 1,2,4,8,16; fewer with --quick.",
  }),
  storageLatencyMs: number({
    default: 40,
    min: 0,
    max: 10_000,
    help: "Added to every open and read of a file in the second curve of (a); 0 leaves that out.",
  }),
  stepTimeMs: number({
    min: 0.1,
    max: 60_000,
    help:
      "Step time of the accelerators in (a) and (b). Default: from the measured rate of preprocessing, so " +
      "that a colocated job is input-bound.",
  }),
};

const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task simulate",
  summary:
    "Runs the service on threads of this host, on real files, and shows what preprocessing on workers, sharing and " +
    "coordinated reads buy. Only the accelerators' step time is simulated.",
  options: OPTIONS,
  notes:
    "Progress goes to standard error, the tables to standard output. Ctrl-C stops and reports what there is.",
};

await runProgram(PROGRAM, main);

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const wanted = readExperiments(values.only);
  await requireWritable(values.report, "--report");
  const interrupted = new AbortController();
  const startedAt = new Date();
  const onInterrupt = () => interrupted.abort(new LeatError("cancelled", "Interrupted"));
  const progress = new Progress({ experiments: wanted.length + 1, onInterrupt });
  const experiments: Experiment[] = [];
  let corpus: string[] = [];
  try {
    const preparing = prepare(values, progress, interrupted.signal);
    const simulation = await Promise.race([preparing, rejectionOf(interrupted.signal)]);
    corpus = simulation.corpus.description;
    for (const letter of wanted) {
      interrupted.signal.throwIfAborted();
      experiments.push(await EXPERIMENTS[letter]!(simulation));
    }
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
  } finally {
    progress.close();
  }
  const report: SimulationReport = { run: describeRun(values, startedAt, corpus), experiments };
  await finish(report, values.report, interrupted.signal.aborted, wanted.length);
  // Files that were being made for the corpus would keep the process alive until all are there.
  if (interrupted.signal.aborted) Deno.exit(INTERRUPTED_EXIT_STATUS);
}

/** Rejects with the signal's reason when it is aborted. */
function rejectionOf(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  return promise;
}

async function prepare(
  values: Values<typeof OPTIONS>,
  progress: Progress,
  signal: AbortSignal,
): Promise<Simulation> {
  const { quick, images, text, storageLatencyMs, stepTimeMs } = values;
  const workers = readCounts("workers", values.workers);
  const trainers = readCounts("trainers", values.trainers);
  if (trainers !== undefined && !trainers.includes(1)) {
    throw new LeatError(
      "invalid_argument",
      `--trainers is '${values.trainers}': the others are held against one trainer, so 1 must be among them`,
    );
  }
  const corpus = await prepareCorpus({
    directory: values.corpus ?? CORPUS_DIRECTORY,
    quick,
    progress,
    ...(images === undefined ? {} : { images }),
    ...(text === undefined ? {} : { text }),
  });
  return {
    corpus,
    progress,
    signal,
    quick,
    hostCores: navigator.hardwareConcurrency,
    storageLatencyMs,
    ...(workers === undefined ? {} : { workers }),
    ...(trainers === undefined ? {} : { trainers }),
    ...(stepTimeMs === undefined ? {} : { stepTimeMs }),
  };
}

/** Prints the tables and writes the page. */
async function finish(
  report: SimulationReport,
  path: string,
  interrupted: boolean,
  wanted: number,
): Promise<void> {
  for (const experiment of report.experiments) {
    const { finding, table } = summarize(experiment);
    console.log(`\n${renderTable(table)}\n${wrap(finding)}`);
  }
  if (interrupted) {
    console.log(`\nInterrupted after ${report.experiments.length} of ${wanted} experiments.`);
  }
  if (report.experiments.length === 0) return;
  // Not before: what draws takes as long to load as all the rest, also for `--help` and refusals.
  const { writeReport } = await import("./simulate/report.ts");
  await writeReport(report, path);
  const seconds = formatNumber(report.run.durationSeconds, 0);
  console.log(`\nTook ${seconds} s. Report: ${await Deno.realPath(path)}`);
}

function describeRun(
  { quick }: Values<typeof OPTIONS>,
  startedAt: Date,
  corpus: string[],
): SimulationReport["run"] {
  return {
    startedAt: startedAt.toISOString(),
    durationSeconds: (Date.now() - startedAt.getTime()) / 1000,
    commandLine: [PROGRAM.usage, ...Deno.args].join(" "),
    hostCores: navigator.hardwareConcurrency,
    platform: `${Deno.build.os} ${Deno.build.arch}`,
    versions: { leat: denoJson.version, deno: Deno.version.deno },
    corpus,
    quick,
  };
}

function readExperiments(only: string): string[] {
  const letters = only.split(",").map((letter) => letter.trim());
  const known = Object.keys(EXPERIMENTS);
  const stray = letters.find((letter) => !known.includes(letter));
  if (stray !== undefined) {
    throw new LeatError(
      "invalid_argument",
      `--only is '${only}': '${stray}' is no experiment; name some of ${known.join(", ")}`,
    );
  }
  return known.filter((letter) => letters.includes(letter));
}

function readCounts(option: string, given: string | undefined): number[] | undefined {
  if (given === undefined) return undefined;
  const counts = given.split(",").map((count) => /^\s*\d+\s*$/.test(count) ? Number(count) : NaN);
  if (!counts.every((count) => count >= 1 && count <= COUNT_MAX)) {
    throw new LeatError(
      "invalid_argument",
      `--${option} is '${given}', but has to be whole numbers from 1 to ${COUNT_MAX} with commas between, as 1,2,4`,
    );
  }
  return [...new Set(counts)].sort((a, b) => a - b);
}

/** Lines of at most {@linkcode LINE_COLUMNS} characters. */
function wrap(paragraph: string): string {
  return paragraph.split(" ").reduce((lines, word) => {
    const last = lines.slice(lines.lastIndexOf("\n") + 1);
    if (lines === "") return word;
    return `${lines}${last.length + 1 + word.length <= LINE_COLUMNS ? " " : "\n"}${word}`;
  }, "");
}
