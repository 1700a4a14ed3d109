/**
 * Kills processes of a cluster again and again while a DETERMINISTIC job runs through it, and checks
 * that its stream is the same each time: `deno task chaos --help`.
 *
 * @module
 */
import { LeatError } from "../mod.ts";
import { chaosJob, type JobSize, StreamDigest } from "./chaos/job.ts";
import { Killer } from "./chaos/killer.ts";
import { Watch } from "./chaos/watch.ts";
import { Deployment } from "./cluster/deployment.ts";
import { EXIT_FAILURE, flag, integer, type Program, runProgram, type Values } from "./lib/args.ts";

const OPTIONS = {
  kills: integer({ help: "How often a process is killed (SIGKILL).", default: 20, min: 0 }),
  seed: integer({ help: "What the victims and their times are drawn from.", default: 1, min: 0 }),
  workers: integer({ help: "How many worker processes.", default: 3, min: 1, max: 64 }),
  elements: integer({ help: "How many elements the job has.", default: 20_000, min: 1 }),
  work: integer({
    help: "Steps of computation per element, a few nanoseconds each.",
    default: 100_000,
    min: 0,
  }),
  dispatcher: flag("Kills the dispatcher now and then, too; it goes on from its journal."),
};

const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task chaos",
  summary:
    "Starts a dispatcher and workers as processes of their own, reads a DETERMINISTIC job once " +
    "undisturbed and then again and again while workers are killed and started anew. Ends with " +
    "status 1 if a stream's hash differs, or a worker has produced nothing.",
  options: OPTIONS,
  notes: `Examples:
  deno task chaos
  deno task chaos --kills 200 --seed 7 --dispatcher`,
};

await runProgram(PROGRAM, main);

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const journal = await Deno.makeTempDir({ prefix: "leat-chaos-" });
  try {
    await using deployment = new Deployment(() => {}, { journal });
    await deployment.start(values.workers);
    if (!await runAll(values, deployment)) Deno.exitCode = EXIT_FAILURE;
  } finally {
    await Deno.remove(journal, { recursive: true });
  }
}

/** Whether every stream was the undisturbed one, and every worker has worked. */
async function runAll(
  { kills, seed, dispatcher, ...size }: Values<typeof OPTIONS>,
  deployment: Deployment,
): Promise<boolean> {
  using watch = new Watch(deployment);
  const wanted = await readJob(size, deployment);
  console.log(`undisturbed: ${textOf(wanted)}`);
  const killer = new Killer(deployment, {
    seed,
    kills,
    dispatcher,
    onKill: (name, count) => console.error(`kill ${count} of ${kills}: ${name}`),
  });
  let [run, wrong, longestMs] = [0, 0, 0];
  for (; !killer.isOver; run++) {
    const before = killer.kills;
    killer.start();
    const found = await readJob(size, deployment);
    await killer.stop();
    const isRight = found.hash === wanted.hash;
    if (!isRight) wrong++;
    longestMs = Math.max(longestMs, found.longestWaitMs);
    const word = isRight ? "same" : "DIFFERENT";
    console.log(`run ${run + 1}: ${killer.kills - before} kills, ${textOf(found)} (${word})`);
  }
  const idle = watch.idle;
  console.log(
    `${killer.kills} kills in ${run} runs: ${run - wrong} streams the same, ${wrong} different; ` +
      `longest wait for a batch ${(longestMs / 1_000).toFixed(1)} s; ` +
      `at most ${(watch.bufferedBytesMax / 2 ** 20).toFixed(1)} MiB at the reader; ` +
      (idle.length === 0 ? "every worker produced" : `IDLE: ${idle.join(", ")}`),
  );
  return wrong === 0 && idle.length === 0;
}

interface RunFigures {
  readonly batches: number;
  readonly hash: string;
  readonly seconds: number;
  readonly longestWaitMs: number;
}

/** Reads the job from its beginning to its end. */
async function readJob(size: JobSize, deployment: Deployment): Promise<RunFigures> {
  const { dispatcher: { address: service }, token } = deployment;
  const digest = new StreamDigest();
  const startedMs = performance.now();
  let [lastMs, longestWaitMs] = [startedMs, 0];
  for await (const batch of chaosJob(size, { service, token })) {
    digest.add(batch);
    const nowMs = performance.now();
    longestWaitMs = Math.max(longestWaitMs, nowMs - lastMs);
    lastMs = nowMs;
  }
  const { batches } = digest;
  if (batches === 0) throw new LeatError("data_loss", "The stream was empty");
  return { batches, hash: digest.end(), seconds: (lastMs - startedMs) / 1_000, longestWaitMs };
}

function textOf({ batches, hash, seconds, longestWaitMs }: RunFigures): string {
  return `${batches} batches in ${seconds.toFixed(1)} s, longest wait ` +
    `${(longestWaitMs / 1_000).toFixed(1)} s, hash ${hash}`;
}
