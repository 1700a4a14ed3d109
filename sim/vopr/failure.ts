/**
 * Reports a failing seed: the faults that are necessary, the command that repeats it, and the end
 * of its timeline.
 */
import { counted } from "../../cli/lib/counted.ts";
import type { RunOutcome } from "../workloads/workload.ts";
import { formatRun } from "../workloads/swarm.ts";
import { formatCrashes, formatFaults, repeatCommand } from "./flags.ts";
import { outcomeOf, type SeedOutcome, type SeedRun } from "./seed_run.ts";
import type { Shrunk } from "./shrink.ts";

/** Number of lines shown before the broken promise. The command shows all lines. */
const TIMELINE_LINES = 40;

/** Returns one line about a failed seed. */
export function failureLine({ run, violations }: SeedOutcome): string {
  return `SEED=${run.options.seed} failed: ${violations[0]}\n  repeat it with: ` +
    repeatCommand(run);
}

/** Returns the full report of a failed seed that was shrunk. */
export async function failureReport(failed: SeedOutcome, shrunk: Shrunk): Promise<string> {
  const { run: { workload, options } } = failed;
  const { faults, crashes = [] } = shrunk.run.options;
  const lines = timelineOf(await outcomeOf(shrunk.run, { readable: true }));
  const shown = lines.slice(-TIMELINE_LINES);
  return [
    `${workload}: ${formatRun(options)}`,
    `Shrunk in ${shrunk.runs} runs; what remained necessary: ` +
    `crashes ${formatCrashes(crashes)}, faults ${formatFaults(faults)}`,
    ...shrunk.violations.map((violation) => `VIOLATION ${violation}`),
    `The last ${shown.length} of ${lines.length} lines before it:`,
    ...shown,
    `Repeat it with: ${repeatCommand(shrunk.run)}`,
    ...shrunk.run.mutant === undefined
      ? [`Keep it in tests/seeds.json: ${keptAs(shrunk.run)}`]
      : [],
  ].join("\n");
}

/** Returns one line with a run and the hash of its trace. */
export function hashLine({ workload, options }: SeedRun, hash: string): string {
  const { seed, crashPoint } = options;
  const point = crashPoint === undefined ? "" : ` ${crashPoint.role}@${crashPoint.message}`;
  return `${workload} ${seed}${point} ${hash}`;
}

/** Prints the timeline of a run, and its hash if asked. Returns whether a promise was broken. */
export async function showTimeline(
  run: SeedRun,
  { hashes }: { readonly hashes: boolean },
): Promise<boolean> {
  const title = `${run.workload}: ${formatRun(run.options)}`;
  console.log(title);
  const outcome = await outcomeOf(run, { readable: true });
  for (const line of timelineOf(outcome)) console.log(line);
  for (const violation of outcome.violations) console.log(`VIOLATION ${violation}`);
  console.log(title);
  if (hashes) console.log(hashLine(run, outcome.hash));
  const { violations: { length: broken } } = outcome;
  console.log(
    broken > 0
      ? `Broken: ${counted(broken, "violation")}, above`
      : `Held: every promise, in ${counted(outcome.cluster.scheduler.steps, "event")}`,
  );
  return broken > 0;
}

/** Returns messages, marks and log lines, sorted by time. */
function timelineOf({ cluster }: RunOutcome): string[] {
  const logs = cluster.logs.map(({ timeMs, node, level, message }) => ({
    timeMs,
    line: `${timeMs.toFixed(3).padStart(12)} ms  ${node} ${level}: ${message}`,
  }));
  const lines = cluster.trace.lines.map((line) => ({ timeMs: Number.parseFloat(line), line }));
  return [...lines, ...logs].sort((a, b) => a.timeMs - b.timeMs).map(({ line }) => line);
}

function keptAs({ workload, options: { seed, faults, crashes = [] } }: SeedRun): string {
  const kept = { faults: formatFaults(faults), crashes: formatCrashes(crashes) };
  return JSON.stringify({ workload, seed: String(seed), ...kept, found: "what it found" });
}
