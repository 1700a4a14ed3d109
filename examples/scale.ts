/**
 * How the service grows: the same actors in simulated clusters of some workers to thousands, and the worker
 * sweep of the tf.data service paper: `deno task scale --help`.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";
import { flag, integer, type Program, runProgram, text, type Values } from "./lib/args.ts";
import { sizeTable } from "./scale/growth.ts";
import type { ScaleResults, Series, SizeRun } from "./scale/measurements.ts";
import { PAPER_WORKERS, sweepSize } from "./scale/paper_sweep.ts";
import { renderScaleReport, sweepTable } from "./scale/report.ts";
import { afterWarmUp, measureAll, requireAll, type Wanted } from "./scale/series.ts";
import { clientsFor, measureSize } from "./scale/size.ts";
import { requireWritable, writePage } from "./lib/page.ts";
import { Progress } from "./simulate/progress.ts";
import { formatNumber, renderTable } from "./lib/table.ts";

const SIZES = [8, 64, 640, 5_000];
const QUICK_SIZES = [8, 32, 128];
const QUICK_SWEEP = [8, 32];
const WARM_UP_WORKERS = 8;
/** More workers than fit the memory of most machines. */
const WORKERS_MAX = 20_000;

const OPTIONS = {
  workers: text({
    placeholder: "8,64,640,5000",
    help: `Sizes of clusters. Default: ${SIZES.join(",")}; with --quick ${QUICK_SIZES.join(",")}.`,
  }),
  clients: integer({
    min: 1,
    max: WORKERS_MAX,
    help: "Clients of each cluster. Default: one for five workers.",
  }),
  sweep: text({
    placeholder: "8,64,512",
    help: `Sizes of the paper's worker sweep, or none. Default: ${PAPER_WORKERS.join(",")}; with ` +
      `--quick ${QUICK_SWEEP.join(",")}.`,
  }),
  out: text({
    placeholder: "FILE",
    default: "./scale.html",
    help: "Where to write the page of plots.",
  }),
  quick: flag("Small clusters: ends within a minute."),
};

const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task scale",
  summary:
    "Runs the service's actors in simulated clusters of growing size, and shows what the dispatcher has to do, " +
    "how long clients wait for their first batch and for a dispatcher that has crashed, and what memory a " +
    "worker takes.",
  options: OPTIONS,
  notes: `Examples:
  deno task scale --quick
  deno task scale --workers 5000 --clients 1000 --sweep none

Times of the cluster are virtual; CPU time and memory are this machine's. Progress goes to standard error.
The page is written after each size. Where a size fails the others are measured and shown, and the exit
status is 1.`,
};

await runProgram(PROGRAM, main);

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { quick, clients, out } = values;
  const sizes = readSizes("workers", values.workers) ?? (quick ? QUICK_SIZES : SIZES);
  const sweepSizes = values.sweep === "none"
    ? []
    : readSizes("sweep", values.sweep) ?? (quick ? QUICK_SWEEP : PAPER_WORKERS);
  await requireWritable(out, "--out");
  const startedAt = new Date();
  const write = (results: ScaleResults) =>
    writePage(
      renderScaleReport({
        startedAt: startedAt.toISOString(),
        durationSeconds: (Date.now() - startedAt.getTime()) / 1_000,
        commandLine: [PROGRAM.usage, ...Deno.args].join(" "),
        host: `${navigator.hardwareConcurrency} cores, ${Deno.build.os} ${Deno.build.arch}`,
        ...results,
      }),
      out,
    );
  const results = await measureWanted({ sizes, sweep: sweepSizes }, clients, write);
  if (results.sizes.length > 0) console.log(`\n${renderTable(sizeTable(results.sizes))}`);
  if (results.sweep.length > 0) console.log(`\n${renderTable(sweepTable(results.sweep))}`);
  console.log(`\nReport: ${await Deno.realPath(out)}`);
  requireAll(results);
}

/** Measures all, and shows how far it is. */
async function measureWanted(
  wanted: Wanted,
  clients: number | undefined,
  onDone: (results: ScaleResults) => Promise<void>,
): Promise<ScaleResults> {
  using progress = new Progress({ experiments: 2 });
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
      // What is compiled on the way would count for the first size, and hide how the others grow.
      afterWarmUp(
        () => measureSize(WARM_UP_WORKERS, 1, () => {}),
        (workers) => measureOne(workers, clients ?? clientsFor(workers), progress),
      ),
    ),
    sweep: show("worker sweep of the paper", wanted.sweep.length, async (workers) => {
      progress.beginRun(`${workers} workers`, 1, "run");
      const run = await sweepSize(workers);
      progress.update({ done: 1 });
      progress.endRun();
      return run;
    }),
  }, onDone);
}

async function measureOne(workers: number, clients: number, progress: Progress): Promise<SizeRun> {
  progress.beginRun(`${workers} workers, ${clients} clients`, 100, "%");
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

/** @throws LeatError `invalid_argument` for what is no list of sizes. */
function readSizes(option: string, given: string | undefined): number[] | undefined {
  if (given === undefined) return undefined;
  const sizes = given.split(",").map((size) => /^\s*\d+\s*$/.test(size) ? Number(size) : NaN);
  if (sizes.every((size) => size >= 1 && size <= WORKERS_MAX)) {
    return [...new Set(sizes)].sort((a, b) => a - b);
  }
  throw new LeatError(
    "invalid_argument",
    `--${option} is '${given}', but has to be whole numbers from 1 to ${WORKERS_MAX} with commas between, as ` +
      SIZES.join(","),
  );
}
