/**
 * Crashes a simulated cluster, seed after seed, until the seeds or a promise are broken:
 *
 *     deno run sim/vopr.ts --seeds 1000 --seed 1 --workload ordered
 *
 * Every fault of a run is drawn from its seed. A seed that fails is printed with the command that
 * repeats it and the timeline of its messages.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { FAULTS } from "./counters.ts";
import { ROLES } from "./crashes.ts";
import { NO_FAULTS } from "./options.ts";
import { crashPoints, drawOptions, formatRun, runSwarm } from "./swarm.ts";
import type { RunOptions } from "./workload.ts";
import { WORKLOADS } from "./workloads.ts";

const HELP = `Crashes a simulated cluster, seed after seed.

Usage: deno run sim/vopr.ts [options]

  --workload W  What the cluster does: dynamic, off, ordered (DETERMINISTIC), rounds (coordinated
                reads), sharing or saving (distributedSave). Default: all, each with every seed.
  --seeds N     How many seeds to run. Default 1000.
  --seed S      The first of them. Default 1.
  --crash R     Draws no faults, but crashes the dispatcher, a worker or a client (R) at each of its
                messages in turn, or at one (R@N), in the run of the seed.
  --timeline    Print what happened between the nodes, also when all went well.
  --hashes      Print the hash of each seed's trace.
  --help        Print this.
`;

/** Failed seeds that are printed with their timelines; others only by number. */
const TIMELINES_MAX = 1;
/** Fewer seeds need not have shown every fault. */
const COVERAGE_SEEDS_MIN = 500;
/** How often the number of seeds done is printed. */
const PROGRESS_LINES = 10;

const OPTIONS = {
  workload: { type: "string" },
  seeds: { type: "string", default: "1000" },
  seed: { type: "string", default: "1" },
  crash: { type: "string" },
  timeline: { type: "boolean", default: false },
  hashes: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

async function main(): Promise<number> {
  const { values } = parseArgs({ options: OPTIONS });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  for (const name of ["seeds", "seed"] as const) {
    if (/^[0-9]{1,15}$/.test(values[name])) continue;
    throw new TypeError(
      `--${name} must be a whole number of at most 15 digits, got "${values[name]}"`,
    );
  }
  const names = values.workload === undefined ? Object.keys(WORKLOADS) : [values.workload];
  const unknown = names.find((name) => !Object.hasOwn(WORKLOADS, name));
  if (unknown !== undefined) {
    throw new TypeError(
      `--workload must be one of ${Object.keys(WORKLOADS).join(", ")}, got "${unknown}"`,
    );
  }
  const seed = BigInt(values.seed);
  let status = 0;
  for (const name of names) {
    const runs = values.crash === undefined
      ? Array.from({ length: Number(values.seeds) }, (_, i) => drawOptions(seed + BigInt(i)))
      : await crashesAt(name, seed, values.crash);
    const failed = values.timeline
      ? await showTimeline(name, runs[0]!)
      : await hunt(name, runs, values.hashes);
    status ||= failed;
  }
  return status;
}

/** The runs that `--crash` asks for. */
async function crashesAt(name: string, seed: bigint, where: string): Promise<RunOptions[]> {
  const [, role, message] = /^(\w+)(?:@(\d+))?$/.exec(where) ?? [];
  const known = ROLES.find((each) => each === role);
  if (known === undefined) {
    throw new TypeError(
      `--crash must be one of ${ROLES.join(", ")}, as in ${ROLES[0]}@7, got "${where}"`,
    );
  }
  if (message === undefined) return await crashPoints(WORKLOADS[name]!, { seed, role: known });
  return [{ seed, faults: NO_FAULTS, crashPoint: { role: known, message: Number(message) } }];
}

async function hunt(name: string, runs: readonly RunOptions[], hashes: boolean): Promise<number> {
  const startMs = performance.now();
  let done = 0;
  const { counters, failed, events } = await runSwarm(
    WORKLOADS[name]!,
    runs,
    (options, { hash, violations }) => {
      const { seed } = options;
      if (hashes) console.log(`${name} ${seed} ${hash}`);
      if (violations.length > 0) {
        console.log(
          `SEED=${seed} failed; repeat it with: ` +
            `deno run sim/vopr.ts --workload ${name} ${flagsOf(options)} --timeline`,
        );
      }
      if (++done % Math.ceil(runs.length / PROGRESS_LINES) === 0) {
        console.error(`${name}: ${done}/${runs.length} runs`);
      }
    },
  );
  const tookMs = performance.now() - startMs;
  console.log(
    `${name}: ${done} runs, ${events} events in ${(tookMs / 1_000).toFixed(1)} s ` +
      `(${Math.round(events / tookMs)} events per ms); ${failed.length} failed`,
  );
  for (const [what, count] of counters.entries()) console.log(`  ${what.padEnd(24)} ${count}`);
  for (const { options } of failed.slice(0, TIMELINES_MAX)) await showTimeline(name, options);
  if (failed.length > 0) return 1;
  const isDrawn = runs.every(({ crashPoint }) => crashPoint === undefined);
  if (isDrawn && runs.length >= COVERAGE_SEEDS_MIN) counters.expectAll(FAULTS);
  return 0;
}

/** What repeats a run. */
function flagsOf({ seed, crashPoint }: RunOptions): string {
  if (crashPoint === undefined) return `--seed ${seed}`;
  return `--seed ${seed} --crash ${crashPoint.role}@${crashPoint.message}`;
}

async function showTimeline(name: string, options: RunOptions): Promise<number> {
  console.log(`${name}: ${formatRun(options)}`);
  const { violations, cluster } = await WORKLOADS[name]!({ ...options, readable: true });
  for (const line of cluster.trace.lines) console.log(line);
  for (const { timeMs, node, level, message } of cluster.logs) {
    console.log(`${timeMs.toFixed(3).padStart(12)} ms  ${node} ${level}: ${message}`);
  }
  for (const violation of violations) console.log(`VIOLATION ${violation}`);
  console.log(`${name}: ${formatRun(options)}`);
  return violations.length === 0 ? 0 : 1;
}

if (import.meta.main) {
  try {
    Deno.exitCode = await main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exitCode = 2;
  }
}
