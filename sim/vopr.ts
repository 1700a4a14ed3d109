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
import { drawOptions, formatRun, runSwarm } from "./swarm.ts";
import type { Workload } from "./workload.ts";
import { runDynamic } from "./workload_dynamic.ts";
import { runOrdered } from "./workload_ordered.ts";
import { runRounds } from "./workload_rounds.ts";
import { runSharing } from "./workload_sharing.ts";

const HELP = `Crashes a simulated cluster, seed after seed.

Usage: deno run sim/vopr.ts [options]

  --workload W  What the cluster does: dynamic, ordered (DETERMINISTIC), rounds (coordinated
                reads) or sharing. Default: all, each with every seed.
  --seeds N     How many seeds to run. Default 1000.
  --seed S      The first of them. Default 1.
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

const WORKLOADS: Readonly<Record<string, Workload>> = {
  dynamic: runDynamic,
  ordered: runOrdered,
  rounds: runRounds,
  sharing: runSharing,
};

const OPTIONS = {
  workload: { type: "string" },
  seeds: { type: "string", default: "1000" },
  seed: { type: "string", default: "1" },
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
  const seeds = Number(values.seeds);
  const first = BigInt(values.seed);
  let status = 0;
  for (const name of names) {
    const failed = values.timeline
      ? await showTimeline(name, first)
      : await hunt(name, first, seeds, values.hashes);
    status ||= failed;
  }
  return status;
}

async function hunt(name: string, first: bigint, seeds: number, hashes: boolean): Promise<number> {
  const startMs = performance.now();
  let done = 0;
  const runs = function* () {
    for (let i = 0; i < seeds; i++) yield drawOptions(first + BigInt(i));
  };
  const { counters, failed, events } = await runSwarm(
    WORKLOADS[name]!,
    runs(),
    ({ seed }, { hash, violations }) => {
      if (hashes) console.log(`${name} ${seed} ${hash}`);
      if (violations.length > 0) {
        console.log(
          `SEED=${seed} failed; repeat it with: ` +
            `deno run sim/vopr.ts --workload ${name} --seed ${seed} --timeline`,
        );
      }
      if (++done % Math.ceil(seeds / PROGRESS_LINES) === 0) {
        console.error(`${name}: ${done}/${seeds} seeds`);
      }
    },
  );
  const tookMs = performance.now() - startMs;
  console.log(
    `${name}: ${done} seeds, ${events} events in ${(tookMs / 1_000).toFixed(1)} s ` +
      `(${Math.round(events / tookMs)} events per ms); ${failed.length} failed`,
  );
  for (const [what, count] of counters.entries()) console.log(`  ${what.padEnd(24)} ${count}`);
  for (const { options } of failed.slice(0, TIMELINES_MAX)) await showTimeline(name, options.seed);
  if (failed.length > 0) return 1;
  if (seeds >= COVERAGE_SEEDS_MIN) counters.expectAll(FAULTS);
  return 0;
}

async function showTimeline(name: string, seed: bigint): Promise<number> {
  const options = drawOptions(seed);
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
