/**
 * Crashes simulated clusters, seed after seed, on all cores, until the seeds end or a promise
 * breaks:
 *
 * deno task vopr --seeds 1000000
 *
 * Everything that happens in a run is drawn from its seed. A seed that fails is printed with the
 * command that repeats it. See docs/simulation.md.
 */
import { EXIT_FAILURE, EXIT_INTERRUPTED, runProgram, UsageError } from "../cli/lib/args.ts";
import type { Program } from "../cli/lib/help.ts";
import { counted } from "../cli/lib/counted.ts";
import { StopRequests } from "../cli/lib/stop_requests.ts";
import { FAULTS } from "./engine/counters.ts";
import { counterOf, FAULT_POINTS } from "./faults/fault_points.ts";
import { SimRandom } from "./engine/random.ts";
import { crashPoints } from "./workloads/swarm.ts";
import { MUTANTS } from "./mutants/mutants.ts";
import type { Mutant } from "./mutants/mutant.ts";
import { refuseIgnored } from "./vopr/conflicts.ts";
import { failureLine, failureReport, hashLine, showTimeline } from "./vopr/failure.ts";
import { type CrashWish, seedOptions } from "./vopr/flags.ts";
import { helpNotes } from "./vopr/help_notes.ts";
import { type Hunted, huntMutant, mutantTable } from "./vopr/mutant_hunt.ts";
import {
  ALL,
  given,
  NO_MUTANT,
  OPTIONS,
  SEED_TIMEOUT_S,
  SEEDS,
  type Settings,
} from "./vopr/settings.ts";
import { shrink } from "./vopr/shrink.ts";
import { SeedPool } from "./vopr/pool.ts";
import { CampaignProgress } from "./vopr/progress.ts";
import { outcomeOf, type SeedOutcome, type SeedRun } from "./vopr/seed_run.ts";
import { Tally } from "./vopr/tally.ts";
import type { RunOptions } from "./workloads/workload.ts";
import { WORKLOADS } from "./workloads/workloads.ts";

/** Number of seeds, over all workloads, after which every fault must have happened. */
const COVERAGE_SEEDS_MIN = 2_000;
/** Maximum number of seeds until a mutant must be noticed. */
const MUTANT_SEEDS_MAX = 500;
/** Maximum number of failures to shrink, each of another checker or workload. */
const SHRUNK_MAX = 3;
/** Limits of the runs that shrink one failure. */
const SHRINK_RUNS_MAX = 200;
const SHRINK_TIME_MAX_MS = 60_000;

/** The program's usage and options. */
export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task vopr",
  summary:
    "Crashes simulated clusters, seed after seed. A seed is one run of one workload: both the " +
    "workload and everything that goes wrong are drawn from it, so that seeds spread over the " +
    "workloads.",
  options: OPTIONS,
  check: (settings) => refuseIgnored(given(settings)),
  notes: helpNotes({
    end:
      "The exit status is 1 if a promise was broken, or if one of the faults never happened in " +
      `${COVERAGE_SEEDS_MIN} seeds or more over all workloads. Ctrl-C ends the campaign with what ` +
      "is known by then.",
  }),
};

interface Runs {
  /** The noun for one run, such as `seed`. */
  readonly noun: string;
  readonly total: number;
  readonly runs: Iterable<SeedRun>;
}

async function main(settings: Settings): Promise<void> {
  if (settings.mutants) {
    Deno.exitCode = await huntMutants(settings);
    return;
  }
  const runs = await runsOf(settings);
  if (settings.timeline) {
    const [first] = runs.runs;
    using requests = new StopRequests();
    const seed = `seed ${first!.options.seed} of ${first!.workload}`;
    const isBroken = await requests.interrupting(
      showTimeline(first!, settings),
      () => `Interrupted: the run of ${seed} has not ended, and its timeline is lost`,
    );
    if (isBroken) Deno.exitCode = EXIT_FAILURE;
    return;
  }
  Deno.exitCode = await campaign(settings, runs);
}

/** Returns the runs that the settings request. */
async function runsOf(settings: Settings): Promise<Runs> {
  const { seed, crash, mutant } = settings;
  const first = BigInt(seed);
  const workload = settings.workload === ALL
    ? MUTANTS.get(mutant)?.workload ?? ALL
    : settings.workload;
  const workloadOf = (seed: bigint) => workload === ALL ? drawWorkload(seed) : workload;
  if (crash === undefined) {
    const runs = drawnRuns(first, workloadOf, settings);
    return { noun: "seed", total: seedsOf(settings), runs };
  }
  const run = { index: 0, workload: workloadOf(first), ...mutantOf(settings) };
  const points = await pointsOf(run, first, crash);
  const runs = points.map((options, index): SeedRun => ({ ...run, index, options }));
  return { noun: "crash point", total: runs.length, runs };
}

/**
 * Returns the runs in which the node crashes at each message, or at the given message.
 * @throws {UsageError} if a run has no such message.
 */
async function pointsOf(
  run: Omit<SeedRun, "options">,
  seed: bigint,
  { role, message }: CrashWish,
): Promise<readonly RunOptions[]> {
  const points = await crashPoints((options) => outcomeOf({ ...run, options }), { seed, role });
  if (points.length === 0) {
    throw new UsageError(
      `--crash is '${role}', but that node has no message in seed ${seed} of ${run.workload}: ` +
        "choose another role, or another --workload",
    );
  }
  if (message === undefined) return points;
  const point = points[message - 1];
  if (point !== undefined) return [point];
  throw new UsageError(
    `--crash is '${role}@${message}', but in seed ${seed} of ${run.workload} that node has ` +
      `${counted(points.length, "message")}: give one of 1 to ${points.length}`,
  );
}

function* drawnRuns(
  first: bigint,
  workloadOf: (seed: bigint) => string,
  settings: Settings,
): Iterable<SeedRun> {
  const count = seedsOf(settings);
  for (let index = 0; index < count; index++) {
    const seed = first + BigInt(index);
    const { mutant } = mutantOf(settings);
    const given = seedOptions(seed, mutant);
    const { faults = given.faults, crashes = given.crashes ?? [] } = settings;
    yield {
      index,
      workload: workloadOf(seed),
      options: { seed, faults, crashes },
      ...mutantOf(settings),
    };
  }
}

function mutantOf({ mutant }: Settings): { readonly mutant?: string } {
  return mutant === NO_MUTANT ? {} : { mutant };
}

function seedsOf({ seeds, minutes }: Settings): number {
  return seeds ?? (minutes === undefined ? SEEDS : Infinity);
}

function drawWorkload(seed: bigint): string {
  const [first, ...others] = Object.keys(WORKLOADS);
  return new SimRandom(seed).fork("workload").pick([first!, ...others]);
}

/** Executes all runs, prints the results, and returns the exit status. */
async function campaign(settings: Settings, { runs, noun, total }: Runs): Promise<number> {
  const { minutes = Infinity, hashes } = settings;
  const tally = new Tally(noun);
  const timeMs = minutes * 60_000;
  let isInterrupted = false;
  using pool = poolOf(settings);
  using requests = new StopRequests();
  requests.first.then(() => {
    isInterrupted = true;
    pool.stop();
  });
  let elapsedMs: number;
  {
    using progress = new CampaignProgress({ runs: total, timeMs }, { noun });
    const inOrder = new InOrder((line) => progress.note(line));
    await pool.runAll(runs, (outcome) => {
      const { run, hash, violations } = outcome;
      tally.add(outcome);
      if (hashes) inOrder.add(run.index, hashLine(run, hash));
      if (violations.length > 0) progress.note(failureLine(outcome));
      const { runs: done, failed } = tally.total;
      progress.update({ done, failed, eventsPerMs: tally.eventsPerMs });
      if (progress.elapsedMs >= timeMs) pool.stop();
    });
    elapsedMs = progress.elapsedMs;
  }
  console.log(`\n${tally}`);
  if (!isInterrupted) {
    await requests.interrupting(
      reportFailures(tally, pool),
      () => "\nInterrupted: the failures above are not shrunk",
    );
  }
  return verdict(tally, { elapsedMs, isInterrupted, total, due: dueIn(settings) });
}

/** Shrinks the first failure of each kind, and prints the result. */
async function reportFailures(tally: Tally, pool: SeedPool): Promise<void> {
  const kinds = new Map<string, SeedOutcome>();
  for (const failed of tally.failed) {
    // A run that did not end would not end with fewer faults, either. A crash point has nothing to shrink.
    if (failed.hash === "" || failed.run.options.crashPoint !== undefined) continue;
    const kind = `${failed.run.workload} ${failed.checkers[0]}`;
    if (!kinds.has(kind) && kinds.size < SHRUNK_MAX) kinds.set(kind, failed);
  }
  for (const failed of kinds.values()) {
    console.error(`Shrinking seed ${failed.run.options.seed} of ${failed.run.workload}`);
    const untilMs = performance.now() + SHRINK_TIME_MAX_MS;
    const limits = { runs: SHRINK_RUNS_MAX, timeMs: SHRINK_TIME_MAX_MS };
    using progress = new CampaignProgress(limits, { noun: "run", failed: "failed before" });
    const shrunk = await shrink(failed, {
      run: (run) => pool.run(run),
      width: pool.width,
      runsMax: SHRINK_RUNS_MAX,
      isEnough: () => performance.now() > untilMs,
      onRun: (done) => progress.update({ done, failed: tally.total.failed }),
    });
    progress.note(`\n${await failureReport(failed, shrunk)}`);
  }
}

/** Runs each mutant until it is noticed. */
async function huntMutants(settings: Settings): Promise<number> {
  const { seed, seeds = MUTANT_SEEDS_MAX } = settings;
  const mutants = mutantsOf(settings);
  using pool = poolOf(settings);
  using requests = new StopRequests();
  console.error(
    `Running ${counted(mutants.length, "mutant")}, with up to ${counted(seeds, "seed")} each`,
  );
  const hunted: Hunted[] = [];
  const isUnnoticed = ({ caughtAt }: Hunted) => caughtAt === undefined;
  {
    const limits = { runs: mutants.length, timeMs: Infinity };
    using progress = new CampaignProgress(limits, { noun: "mutant", failed: "not noticed" });
    const hunt = async () => {
      for (const mutant of mutants) {
        hunted.push(await huntMutant(pool, mutant, { first: BigInt(seed), seedsMax: seeds }));
        const failed = hunted.filter(isUnnoticed).length;
        progress.update({ done: hunted.length, failed });
      }
    };
    await requests.interrupting(hunt(), () => {
      progress[Symbol.dispose]();
      if (hunted.length > 0) console.log(mutantTable(hunted));
      return `Interrupted: ${hunted.length} of ${counted(mutants.length, "mutant")} were run; ` +
        `${hunted.filter(isUnnoticed).length} of them were not noticed`;
    });
  }
  console.log(mutantTable(hunted));
  const unnoticed = hunted.filter(isUnnoticed);
  for (const { mutant } of unnoticed) {
    console.log(`Not noticed: ${mutant.name}: ${mutant.wrong}`);
  }
  console.log(
    `${hunted.length - unnoticed.length} of ${counted(hunted.length, "mutant")} were noticed`,
  );
  return unnoticed.length === 0 ? 0 : EXIT_FAILURE;
}

/** Returns all mutants, or those of the given workload. @throws {UsageError} if it has none. */
function mutantsOf({ workload }: Settings): readonly Mutant[] {
  const all = [...MUTANTS.values()];
  const mutants = all.filter((mutant) => workload === ALL || mutant.workload === workload);
  if (mutants.length > 0) return mutants;
  const names = new Set(all.map(({ workload }) => workload));
  throw new UsageError(
    `--mutants: --workload ${workload} has no mutants; there are some for ` +
      [...names].join(", "),
  );
}

function poolOf(settings: Settings): SeedPool {
  const { seedTimeoutS = SEED_TIMEOUT_S } = settings;
  return new SeedPool({ jobs: jobsOf(settings), seedTimeoutMs: seedTimeoutS * 1_000 });
}

/** Returns the number of threads; 0 if the threads may not read the modules that they import. */
function jobsOf({ jobs = navigator.hardwareConcurrency }: Settings): number {
  const path = new URL("../", import.meta.url);
  if (jobs === 0 || Deno.permissions.querySync({ name: "read", path }).state === "granted") {
    return jobs;
  }
  console.error("Seeds run in one thread, because modules may not be read: use `deno task vopr`");
  return 0;
}

/** Returns the counters that a long campaign must have reached: all, if workload and faults are drawn. */
function dueIn({ workload, faults, crashes, crash, mutant }: Settings): readonly string[] {
  const isDrawn = workload === ALL && mutant === NO_MUTANT && faults === undefined &&
    crashes === undefined && crash === undefined;
  return isDrawn ? [...FAULTS, ...FAULT_POINTS.map(counterOf)] : [];
}

function verdict(
  tally: Tally,
  { elapsedMs, isInterrupted, total, due }: {
    readonly elapsedMs: number;
    readonly isInterrupted: boolean;
    readonly total: number;
    readonly due: readonly string[];
  },
): number {
  const { runs, failed } = tally.total;
  const isCut = runs < total && Number.isFinite(total);
  console.log(
    `\n${isCut ? `${runs} of ${counted(total, tally.noun)}` : counted(runs, tally.noun)} in ` +
      `${(elapsedMs / 1_000).toFixed(1)} s (${
        (1_000 * runs / elapsedMs).toFixed(1)
      } per second); ` +
      `${failed} failed${isInterrupted ? "; interrupted" : ""}`,
  );
  if (failed > 0) return EXIT_FAILURE;
  if (runs >= COVERAGE_SEEDS_MIN) tally.counters.expectAll(due);
  return isInterrupted ? EXIT_INTERRUPTED : 0;
}

/** Prints lines in the order of their indices, although they are added in any order. */
class InOrder {
  readonly #print: (line: string) => void;
  readonly #waiting = new Map<number, string>();
  #next = 0;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  add(index: number, line: string): void {
    this.#waiting.set(index, line);
    for (let line; (line = this.#waiting.get(this.#next)) !== undefined;) {
      this.#waiting.delete(this.#next++);
      this.#print(line);
    }
  }
}

if (import.meta.main) await runProgram(PROGRAM, main);
