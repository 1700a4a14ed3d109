/**
 * Kills processes of a cluster again and again while a DETERMINISTIC job runs through it, and checks
 * that its stream is the same each time: `deno task chaos --help`.
 *
 * @module
 */
import { LeatError } from "../mod.ts";
import { chaosJob, type JobSize, openReaderHome, StreamDigest, WINDOW } from "./chaos/job.ts";
import { Killer } from "./chaos/killer.ts";
import { brokenPromises, type ChaosOutcome, outcomeTable, progressLine } from "./chaos/report.ts";
import { Watch } from "./chaos/watch.ts";
import { StatusLine } from "./chaos/status_line.ts";
import { Deployment } from "./cluster/deployment.ts";
import { EXIT_FAILURE, integer, type Program, runProgram, type Values } from "./lib/args.ts";

const OPTIONS = {
  kills: integer({ help: "How often a process is killed (SIGKILL).", default: 20, min: 1 }),
  killsPerRun: integer({ help: "How many of them while one job runs.", default: 10, min: 1 }),
  seed: integer({ help: "What the victims and their times are drawn from.", default: 1, min: 0 }),
  workers: integer({ help: "How many worker processes.", default: 3, min: 1, max: 64 }),
  dispatcherEvery: integer({
    help: "Of so many kills one is the dispatcher's, on average, which goes on from its journal; " +
      "0: none.",
    default: 5,
    min: 0,
  }),
  betweenMs: integer({ help: "The longest time between two kills.", default: 900, min: 1 }),
  downMs: integer({
    help:
      "The longest time before a killed worker is started again: from two seconds on some are " +
      "given up before they are back.",
    default: 3_000,
    min: 0,
  }),
  elements: integer({ help: "How many elements the job has.", default: 20_000, min: 1 }),
  work: integer({
    help: "Steps of computation per element, about a nanosecond each.",
    default: 100_000,
    min: 0,
  }),
};

const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task chaos",
  summary:
    "Starts a dispatcher and workers as processes of their own, reads a DETERMINISTIC job once " +
    "undisturbed and then again and again while processes are killed and started anew. Ends with " +
    "status 1 if a stream's hash differs, a worker gave nothing, or the reader held more than its " +
    "window.",
  options: OPTIONS,
  notes: `Examples:
  deno task chaos
  deno task chaos --kills 200 --seed 7

The reader waits where the kills of its run are behind, so that each of them hits a job that goes on.
Times and victims are the seed's; what is under way when they come is not.`,
};

await runProgram(PROGRAM, main);

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const journal = await Deno.makeTempDir({ prefix: "leat-chaos-" });
  try {
    await using deployment = new Deployment(() => {}, { journal, windowSplits: WINDOW.splits });
    await deployment.start(values.workers);
    const outcome = await runAll(values, deployment);
    console.log(outcomeTable(outcome));
    if (brokenPromises(outcome).length > 0) Deno.exitCode = EXIT_FAILURE;
  } finally {
    await Deno.remove(journal, { recursive: true });
  }
}

async function runAll(
  { kills, killsPerRun, ...values }: Values<typeof OPTIONS>,
  deployment: Deployment,
): Promise<ChaosOutcome> {
  const { workers, betweenMs: betweenMaxMs, downMs: downMaxMs, dispatcherEvery, seed } = values;
  const startedMs = performance.now();
  using home = openReaderHome(deployment);
  using watch = new Watch(deployment);
  using status = new StatusLine();
  const wanted = await readJob(values, home.address, () => Promise.resolve());
  console.log(`undisturbed: ${textOf(wanted)}`);
  const onKill = (name: string) => status.note(`kill ${killer.total} of ${kills}: ${name}`);
  const killer: Killer = new Killer(deployment, {
    ...{ seed, betweenMaxMs, downMaxMs, dispatcherEvery, onKill },
  });
  const runs = Math.ceil(kills / killsPerRun);
  const streams = { same: 0, different: 0 };
  let longestWaitMs = 0;
  for (let run = 1; run <= runs; run++) {
    const before = killer.total;
    killer.start(Math.min(killsPerRun, kills - before));
    const found = await readJob(values, home.address, async (batches) => {
      const { batches: batchesWanted } = wanted;
      const { kills: soFar, down } = killer;
      const progress = {
        run,
        runs,
        batches,
        batchesWanted,
        kills: soFar,
        killsWanted: kills,
        down,
      };
      status.show(progressLine(progress));
      await killer.keepUp(batches / batchesWanted);
    });
    await killer.stop();
    const isSame = found.hash === wanted.hash;
    streams[isSame ? "same" : "different"]++;
    longestWaitMs = Math.max(longestWaitMs, found.longestWaitMs);
    const word = isSame ? "same" : "DIFFERENT";
    console.log(`run ${run}: ${killer.total - before} kills, ${textOf(found)} (${word})`);
  }
  return {
    kills: killer.kills,
    hash: wanted.hash,
    streams,
    served: watch.served,
    held: { most: watch.bufferedBytesMax, limit: WINDOW.bytesWith(workers) },
    open: { most: watch.openSplitsMax, limit: WINDOW.splits },
    longestWaitMs,
    seconds: (performance.now() - startedMs) / 1_000,
  };
}

interface RunFigures {
  readonly batches: number;
  readonly hash: string;
  readonly seconds: number;
  readonly longestWaitMs: number;
}

/** Reads the job from its beginning to its end. What `step` takes after each batch is not waiting. */
async function readJob(
  size: JobSize,
  service: string,
  step: (batches: number) => Promise<void>,
): Promise<RunFigures> {
  const digest = new StreamDigest();
  const startedMs = performance.now();
  let [sinceMs, longestWaitMs] = [startedMs, 0];
  for await (const batch of chaosJob(size, service)) {
    digest.add(batch);
    longestWaitMs = Math.max(longestWaitMs, performance.now() - sinceMs);
    await step(digest.batches);
    sinceMs = performance.now();
  }
  const { batches } = digest;
  if (batches === 0) throw new LeatError("data_loss", "The stream was empty");
  const seconds = (performance.now() - startedMs) / 1_000;
  return { batches, hash: digest.end(), seconds, longestWaitMs };
}

function textOf({ batches, hash, seconds, longestWaitMs }: RunFigures): string {
  return `${batches} batches in ${seconds.toFixed(1)} s, longest wait ` +
    `${(longestWaitMs / 1_000).toFixed(1)} s, hash ${hash}`;
}
