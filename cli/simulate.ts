/**
 * Measures what preprocessing on workers, sharing and coordinated reads gain, on one host, with every
 * actor on a thread. Reading, decoding, augmenting, batching and the actors are real. Only the
 * accelerator's step time is simulated.
 *
 * ```sh
 * deno task simulate --quick
 * ```
 */

import { LeatError } from "../core/error.ts";
import denoJson from "../deno.json" with { type: "json" };
import { EXIT_INTERRUPTED, runProgram, UsageError } from "./lib/args.ts";
import { commandOf } from "./lib/command_line.ts";
import { kebab, type Program } from "./lib/help.ts";
import { flag, integers, number, subset, text, type Values } from "./lib/options.ts";
import { requireWritable } from "./lib/page.ts";
import { StopRequests } from "./lib/stop_requests.ts";
import { checkFolders, CORPUS_DIRECTORY, prepareCorpus } from "./simulate/corpus.ts";
import { coordinatedReads } from "./simulate/experiments/coordinated_reads.ts";
import { scaleOut } from "./simulate/experiments/scale_out.ts";
import { sharing } from "./simulate/experiments/sharing.ts";
import type { Simulation } from "./simulate/experiments/simulation.ts";
import { workerFailure } from "./simulate/experiments/worker_failure.ts";
import { USER_IMAGES_MAX } from "./simulate/image_corpus.ts";
import { Progress } from "./simulate/progress.ts";
import type { Experiment, SimulationReport } from "./simulate/results.ts";
import { summarize } from "./simulate/summary.ts";
import { TOKENS_MAX, USER_TEXTS_MAX } from "./simulate/text_corpus.ts";
import { formatNumber, renderTable } from "./lib/table.ts";
import { wrap } from "./lib/text.ts";
import { definedFields } from "../core/tree.ts";

const LETTERS = ["a", "b", "c", "d"] as const;
const EXPERIMENTS: Record<
  typeof LETTERS[number],
  (simulation: Simulation) => Promise<Experiment>
> = {
  a: scaleOut,
  b: sharing,
  c: coordinatedReads,
  d: workerFailure,
};

/** For each option that only some experiments use, which these are. */
const USED_BY = {
  ...{ images: "abd", text: "c", workers: "a", trainers: "b", storageLatencyMs: "a" },
  stepTimeMs: "ab",
} as const;

/** Default of `--storage-latency-ms`. */
const STORAGE_LATENCY_MS = 40;
/** Limit of the number of workers or trainers, each of which is a thread. */
const COUNT_MAX = 64;
const LINE_COLUMNS = 100;

const OPTIONS = {
  quick: flag(
    "Shorter runs, fewer of them, and a smaller corpus: about 40 seconds on two idle cores, two minutes on busy ones.",
  ),
  images: text({
    placeholder: "DIR",
    help:
      "A folder of your own JPEGs, subfolders included, instead of generated photographs in (a), " +
      `(b) and (d): the first ${
        formatNumber(USER_IMAGES_MAX, 0)
      } .jpg and .jpeg files in the order of their paths.`,
  }),
  text: text({
    placeholder: "FILE",
    help:
      "A file of your own text, a sample on each line, instead of generated text in (c): the first " +
      `${
        formatNumber(USER_TEXTS_MAX, 0)
      } lines that are not blank, and ${TOKENS_MAX} words of each.`,
  }),
  corpus: text({
    placeholder: "DIR",
    help:
      "Where generated and packed files are kept for the next run. Default: .cache/leat-corpus in the project.",
  }),
  report: text({
    placeholder: "FILE",
    default: "./report.html",
    help: "Where to write the page of plots.",
  }),
  only: subset(LETTERS, {
    placeholder: "a,b,c,d",
    help:
      "Which experiments to run: (a) scale-out, (b) sharing, (c) coordinated reads, (d) a worker killed.",
  }),
  workers: integers({
    ...{ placeholder: "1,2,4", min: 1, max: COUNT_MAX },
    help:
      "Numbers of workers in (a). Default: 1,2,4,8, with storage latency also 16; fewer with --quick.",
  }),
  trainers: integers({
    ...{ placeholder: "1,2,4", min: 1, max: COUNT_MAX },
    help: "Numbers of trainers in (b), 1 among them. Default: 1,2,4,8,16; fewer with --quick.",
  }),
  storageLatencyMs: number({
    min: 0,
    max: 10_000,
    help: "Added to every open and read of a file in the second curve of (a), by default " +
      `${STORAGE_LATENCY_MS}; 0 leaves that out.`,
  }),
  stepTimeMs: number({
    min: 0.1,
    max: 60_000,
    help:
      "Step time of the accelerators in (a) and (b). Default: from the measured rate of preprocessing, so " +
      "that a colocated job is input-bound.",
  }),
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task simulate",
  summary:
    "Runs the service on threads of this host, on real files, and shows what preprocessing on workers, sharing and " +
    "coordinated reads gain. Only the accelerators' step time is simulated.",
  options: OPTIONS,
  check(values) {
    refuseIgnored(values);
    const { trainers } = values;
    if (trainers === undefined || trainers.includes(1)) return;
    throw new UsageError(
      `--trainers is '${trainers}': the runs are compared with one trainer, so 1 must be among them`,
    );
  },
  notes:
    "Progress goes to standard error, the tables to standard output. Ctrl-C stops, and reports the finished experiments.",
};

export const run = (args: readonly string[] = Deno.args): Promise<void> =>
  runProgram(PROGRAM, main, args);

if (import.meta.main) await run();

/** @throws {UsageError} if an option is given that no experiment of `--only` uses. */
function refuseIgnored(values: Values<typeof OPTIONS>): void {
  const { only } = values;
  for (const [key, letters] of Object.entries(USED_BY)) {
    if (values[key as keyof typeof USED_BY] === undefined) continue;
    if (only.some((letter) => letters.includes(letter))) continue;
    const users = [...letters].map((letter) => `(${letter})`).join(" or ");
    throw new UsageError(
      `--${kebab(key)} is for ${users}, but --only is ${only}: add one, or leave out the option`,
    );
  }
}

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { images, text, only, report: path } = values;
  const wanted = LETTERS.filter((letter) => only.includes(letter));
  requireWritable(path, "--report");
  await UsageError.where(() => checkFolders({ images, text, corpus: values.corpus }));
  const interrupted = new AbortController();
  const startedAt = new Date();
  const startedMs = performance.now();
  using requests = new StopRequests();
  requests.first.then(() => interrupted.abort(new LeatError("cancelled", "Interrupted")));
  const progress = new Progress({ experiments: wanted.length + 1 });
  const experiments: Experiment[] = [];
  let corpus: string[] = [];
  let failure: unknown;
  try {
    const preparing = prepare(values, progress, interrupted.signal);
    const simulation = await Promise.race([preparing, rejectionOf(interrupted.signal)]);
    corpus = simulation.corpus.description;
    for (const letter of wanted) {
      interrupted.signal.throwIfAborted();
      experiments.push(await EXPERIMENTS[letter](simulation));
    }
  } catch (error) {
    if (!interrupted.signal.aborted) failure = error;
  } finally {
    progress.close();
  }
  const durationSeconds = (performance.now() - startedMs) / 1_000;
  const run = describeRun(values, { startedAt, durationSeconds, corpus });
  const report: SimulationReport = { run, experiments };
  await finish(report, path, interrupted.signal.aborted, wanted.length);
  if (failure !== undefined) throw failure;
  // Corpus files that are still being generated would keep the process alive.
  if (interrupted.signal.aborted) Deno.exit(EXIT_INTERRUPTED);
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
  const { quick, images, text, workers, trainers, stepTimeMs } = values;
  const { storageLatencyMs = STORAGE_LATENCY_MS } = values;
  const corpus = await prepareCorpus({
    directory: values.corpus ?? CORPUS_DIRECTORY,
    quick,
    progress,
    ...definedFields({ images, text }),
  });
  return {
    corpus,
    progress,
    signal,
    quick,
    hostCores: navigator.hardwareConcurrency,
    storageLatencyMs,
    ...definedFields({ workers, trainers, stepTimeMs }),
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
    console.log(`\n${renderTable(table)}\n${wrap(finding, LINE_COLUMNS).join("\n")}`);
  }
  if (interrupted) {
    console.log(`\nInterrupted after ${report.experiments.length} of ${wanted} experiments.`);
  }
  if (report.experiments.length === 0) return;
  // Loaded late: the drawing library takes as long to load as all other modules together, and
  // `--help` and errors do not need it.
  const { writeReport } = await import("./simulate/report.ts");
  writeReport(report, path);
  const seconds = formatNumber(report.run.durationSeconds, 0);
  console.log(`\nTook ${seconds} s. Report: ${await Deno.realPath(path)}`);
}

function describeRun(
  { quick }: Values<typeof OPTIONS>,
  { startedAt, durationSeconds, corpus }: {
    readonly startedAt: Date;
    readonly durationSeconds: number;
    readonly corpus: string[];
  },
): SimulationReport["run"] {
  return {
    startedAt: startedAt.toISOString(),
    durationSeconds,
    commandLine: commandOf(PROGRAM.usage, Deno.args),
    hostCores: navigator.hardwareConcurrency,
    platform: `${Deno.build.os} ${Deno.build.arch}`,
    versions: { leat: denoJson.version, deno: Deno.version.deno },
    corpus,
    quick,
  };
}
