/**
 * How the service scales: the production actors in simulated clusters of a few to thousands of
 * workers, and the worker sweep of the tf.data service paper: `deno task scale --help`.
 */
import { LeatError } from "../core/error.ts";
import { runProgram } from "./lib/args.ts";
import { commandOf } from "./lib/command_line.ts";
import type { Program } from "./lib/help.ts";
import { flag, integer, integers, type Option, text, type Values } from "./lib/options.ts";
import { sizeTable } from "./scale/growth.ts";
import type { ScaleResults, Series, SizeRun } from "./scale/measurements.ts";
import { PAPER_WORKERS, sweepSize } from "./scale/paper_sweep.ts";
import { renderScaleReport, sweepTable } from "./scale/report.ts";
import { afterWarmUp, isToCome, measureAll, requireAll, type Wanted } from "./scale/series.ts";
import { clientsFor, measureSize } from "./scale/size.ts";
import { requireWritable, writePage } from "./lib/page.ts";
import { counted } from "./lib/counted.ts";
import { StopRequests } from "./lib/stop_requests.ts";
import { Progress } from "./simulate/progress.ts";
import { formatNumber, renderTable } from "./lib/table.ts";

const SIZES = [8, 64, 640, 5_000];
const QUICK_SIZES = [8, 32, 128];
const QUICK_SWEEP = [8, 32];
const WARM_UP_WORKERS = 8;
/** Limit of `--workers`, `--sweep` and `--clients`. Most machines run out of memory before it. */
const WORKERS_MAX = 20_000;

const OPTIONS = {
  workers: integers({
    ...{ placeholder: "8,64,640,5000", min: 1, max: WORKERS_MAX },
    help: `Sizes of clusters. Default: ${SIZES.join(",")}; with --quick ${QUICK_SIZES.join(",")}.`,
  }),
  clients: integer({
    min: 1,
    max: WORKERS_MAX,
    help: "Clients of each cluster of --workers. Default: one for every five workers.",
  }),
  sweep: orNone(integers({
    ...{ placeholder: "8,64,512", min: 1, max: WORKERS_MAX },
    help:
      `Sizes of the paper's worker sweep; none skips it. Default: ${
        PAPER_WORKERS.join(",")
      }; with ` +
      `--quick ${QUICK_SWEEP.join(",")}.`,
  })),
  out: text({
    placeholder: "FILE",
    default: "./scale.html",
    help: "Where to write the page of plots.",
  }),
  quick: flag("Small clusters: ends within a minute."),
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task scale",
  summary:
    "Runs the service's actors in simulated clusters of growing size, and shows the load of the dispatcher, " +
    "how long clients wait for their first batch and for a dispatcher that has crashed, and what memory a " +
    "worker takes.",
  options: OPTIONS,
  notes: `Examples:
  deno task scale --quick
  deno task scale --workers 5000 --clients 1000 --sweep none

Times of the cluster are virtual; CPU time and memory are this machine's. Progress goes to standard error.
The page is written after each size. If a size fails, the others are still measured and shown, and the
exit status is 1.`,
};

export const run = (args: readonly string[] = Deno.args): Promise<void> =>
  runProgram(PROGRAM, main, args);

if (import.meta.main) await run();

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { quick, clients, out } = values;
  const sizes = values.workers ?? (quick ? QUICK_SIZES : SIZES);
  const sweep = values.sweep ?? (quick ? QUICK_SWEEP : PAPER_WORKERS);
  requireWritable(out, "--out");
  const startedAt = new Date();
  const startedMs = performance.now();
  const write = (results: ScaleResults) =>
    writePage(
      renderScaleReport({
        startedAt: startedAt.toISOString(),
        durationSeconds: (performance.now() - startedMs) / 1_000,
        commandLine: commandOf(PROGRAM.usage, Deno.args),
        host: `${navigator.hardwareConcurrency} cores, ${Deno.build.os} ${Deno.build.arch}`,
        ...results,
      }),
      out,
    );
  using requests = new StopRequests();
  using progress = new Progress({ experiments: 2 });
  const all = sizes.length + sweep.length;
  let tried = 0;
  const measuring = measureWanted({ sizes, sweep }, clients, progress, (results) => {
    write(results);
    tried = all - results.gaps.filter(isToCome).length;
  });
  const results = await requests.interrupting(measuring, () => {
    progress.close();
    return `Interrupted after ${tried} of ${all} sizes: ` +
      (tried === 0 ? "nothing is kept" : `${out} shows only these`);
  });
  progress.close();
  if (results.sizes.length > 0) console.log(`\n${renderTable(sizeTable(results.sizes))}`);
  if (results.sweep.length > 0) console.log(`\n${renderTable(sweepTable(results.sweep))}`);
  console.log(`\nReport: ${await Deno.realPath(out)}`);
  requireAll(results);
}

/** Measures all wanted sizes, and shows the progress. */
async function measureWanted(
  wanted: Wanted,
  clients: number | undefined,
  progress: Progress,
  onDone: (results: ScaleResults) => void,
): Promise<ScaleResults> {
  let shown: Series | undefined;
  const show =
    <R>(series: Series, runs: number, measure: (workers: number) => Promise<R>) =>
    async (workers: number): Promise<R> => {
      if (series !== shown) progress.beginExperiment(series, runs);
      shown = series;
      try {
        return await measure(workers);
      } catch (error) {
        progress.endRun(`failed: ${LeatError.from(error).message}`);
        throw error;
      }
    };
  return await measureAll(wanted, {
    size: show(
      "cluster sizes",
      wanted.sizes.length,
      // The first run also pays for compilation, which would make the smallest size look expensive.
      afterWarmUp(
        () => measureSize(WARM_UP_WORKERS, 1, () => {}),
        (workers) => measureOne(workers, clients ?? clientsFor(workers), progress),
      ),
    ),
    sweep: show("worker sweep of the paper", wanted.sweep.length, async (workers) => {
      progress.beginRun(counted(workers, "worker"), 1, "run");
      const run = await sweepSize(workers);
      progress.update({ done: 1 });
      progress.endRun();
      return run;
    }),
  }, onDone);
}

async function measureOne(workers: number, clients: number, progress: Progress): Promise<SizeRun> {
  progress.beginRun(`${counted(workers, "worker")}, ${counted(clients, "client")}`, 100, "%");
  const run = await measureSize(workers, clients, (_, done) => {
    progress.update({ done: Math.floor(100 * done) });
  });
  progress.update({ done: 100 });
  progress.endRun(
    `${formatNumber(run.cpuSeconds.value, 1)} s of CPU, ${
      formatNumber(run.eventsPerCpuMs.value, 0)
    } events per ms`,
  );
  return run;
}

/** Makes an option also read `none`, as an empty list. */
function orNone<T>(option: Option<readonly T[] | undefined>): Option<readonly T[] | undefined> {
  return { ...option, read: (texts) => texts.join() === "none" ? [] : option.read(texts) };
}
