/** The output of `deno task chaos`: a line of progress while it runs, and a table at the end. */
import { type Fault, FAULTS, type Role } from "./nemesis.ts";
import type { Mode } from "./modes/drill.ts";
import type { ScalingCounts } from "./scaling.ts";
import { counted } from "../lib/counted.ts";

/** The results. */
interface ChaosOutcome {
  readonly faults: Readonly<Record<Fault, Readonly<Record<Role, number>>>>;
  /** The hash of the DETERMINISTIC stream without faults. */
  readonly hash: string | undefined;
  /** How many DETERMINISTIC streams were read under faults, and how many had that hash. */
  readonly streams: { readonly read: number; readonly same: number };
  /** Runs by mode. */
  readonly runs: ReadonlyMap<Mode, number>;
  /** How often a dispatcher timed out a worker, killed or not. */
  readonly givenUp: number;
  /** The steps of a scaler, if there was one. */
  readonly scaled: ScalingCounts | undefined;
  /** Warnings of readers. */
  readonly warnings: number;
  /** Elements that each worker was seen to serve. */
  readonly served: ReadonlyMap<string, number>;
  readonly held: Limited;
  readonly open: Limited;
  readonly longestWaitMs: number;
  readonly seconds: number;
  /** The findings of checkers. */
  readonly violations: readonly string[];
}

/** A maximum, and its limit. */
interface Limited {
  readonly most: number;
  readonly limit: number;
}

/** Broken guarantees, in words; empty if all were kept. */
export function brokenPromises(
  { violations, hash, streams, served, scaled, held, open }: ChaosOutcome,
): string[] {
  // The undisturbed DETERMINISTIC job uses every worker. Without it (saves serve no batches), or with
  // a scaler, which may stop workers before they get work, a worker may serve nothing.
  const idle = hash === undefined || scaled !== undefined
    ? []
    : [...served].filter(([, count]) => count === 0).map(([name]) => name);
  return [
    ...violations,
    ...(streams.same < streams.read
      ? [`${streams.read - streams.same} of ${streams.read} streams had another hash`]
      : []),
    ...(idle.length > 0 ? [`nothing came of ${idle.join(", ")}`] : []),
    ...(held.most > held.limit ? [`the reader held ${held.most} bytes of ${held.limit}`] : []),
    ...(open.most > open.limit ? [`${open.most} splits of ${open.limit} were open`] : []),
  ];
}

export function outcomeTable(outcome: ChaosOutcome): string {
  const { faults, hash, streams, runs, givenUp, scaled, warnings, served, held, open } = outcome;
  const { longestWaitMs, seconds } = outcome;
  const all = [...served.values()].reduce((sum, count) => sum + count, 0);
  const shares = [...served].sort(([a], [b]) => a < b ? -1 : 1).map(([name, count]) =>
    `${name} ${(100 * count / Math.max(1, all)).toFixed(0)} %`
  );
  const broken = brokenPromises(outcome);
  const rows = [
    ...FAULTS.map((fault) => [`${fault}s`, countsText(faults[fault])]),
    ["given up", `${counted(givenUp, "worker")} timed out at the dispatcher`],
    ...(scaled === undefined ? [] : [["scaled", scaledText(scaled)]]),
    ...(warnings === 0
      ? []
      : [["warnings", `${warnings} of readers, about nodes they could not reach`]]),
    ["runs", [...runs].map(([mode, count]) => `${mode} ${count}`).join(", ")],
    ...(hash === undefined ? [] : [
      ["hash", `${hash} of ${streams.same} of ${counted(streams.read, "DETERMINISTIC stream")}`],
      ["reader held", `at most ${held.most} bytes (limit ${held.limit})`],
      ["splits open", `at most ${open.most} (limit ${open.limit})`],
    ]),
    ["shares", shares.join(", ")],
    ["longest wait", `${(longestWaitMs / 1_000).toFixed(1)} s for a batch`],
    ["took", `${seconds.toFixed(0)} s`],
    ["promises", broken.length === 0 ? "kept" : `BROKEN: ${broken.join("; ")}`],
  ];
  return rows.map(([name, text]) => `${name!.padEnd(13)} ${text}`).join("\n");
}

function scaledText({ started, stopped, cutShort }: ScalingCounts): string {
  return `${started} started, ${stopped} stopped in order, ${cutShort} of them cut short`;
}

function countsText({ worker, dispatcher }: Readonly<Record<Role, number>>): string {
  return `${worker + dispatcher} (${counted(worker, "worker")}, ${
    counted(dispatcher, "dispatcher")
  })`;
}
