/** The table that `deno task chaos` prints at the end. */
import { type Fault, FAULTS, type Role } from "./nemesis.ts";
import type { Mode } from "./modes/drill.ts";
import type { ScalingCounts } from "./scaling.ts";
import { counted } from "../lib/counted.ts";

/** The results of a campaign. */
interface ChaosOutcome {
  readonly faults: Readonly<Record<Fault, Readonly<Record<Role, number>>>>;
  /** The hash of the DETERMINISTIC stream without faults. */
  readonly hash: string | undefined;
  /** How many DETERMINISTIC streams were read under faults, and how many had this hash. */
  readonly streams: { readonly read: number; readonly same: number };
  /** Runs by mode. */
  readonly runs: ReadonlyMap<Mode, number>;
  /** How often the dispatcher timed out a worker, killed or not. */
  readonly timedOut: number;
  /** The steps of a scaler, if there was one. */
  readonly scaled: ScalingCounts | undefined;
  /** How many warnings readers logged. */
  readonly warnings: number;
  /** How many elements each worker was observed to serve. */
  readonly served: ReadonlyMap<string, number>;
  /** Bytes that a DETERMINISTIC reader buffered. */
  readonly held: Limited;
  /** Splits that a DETERMINISTIC reader had open. */
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

/** Returns the broken guarantees in words; empty if all were kept. */
export function brokenPromises(
  { violations, hash, streams, served, scaled, held, open }: ChaosOutcome,
): string[] {
  // A worker that served nothing is an error, because the undisturbed DETERMINISTIC job uses every
  // worker. Exceptions: that job did not run, or a scaler stopped workers before they got work.
  const idle = hash === undefined || scaled !== undefined
    ? []
    : [...served].filter(([, count]) => count === 0).map(([name]) => name);
  return [
    ...violations,
    ...(streams.same < streams.read
      ? [`${streams.read - streams.same} of ${streams.read} streams had another hash`]
      : []),
    ...(idle.length > 0 ? [`no batch came from ${idle.join(", ")}`] : []),
    ...(held.most > held.limit ? [`the reader held ${held.most} bytes (limit ${held.limit})`] : []),
    ...(open.most > open.limit ? [`${open.most} splits were open (limit ${open.limit})`] : []),
  ];
}

/** Returns the results as lines of names and values. */
export function outcomeTable(outcome: ChaosOutcome): string {
  const { faults, hash, streams, runs, timedOut, scaled, warnings, served, held, open } = outcome;
  const { longestWaitMs, seconds } = outcome;
  const total = [...served.values()].reduce((sum, count) => sum + count, 0);
  const shares = [...served].sort(([a], [b]) => a < b ? -1 : 1).map(([name, count]) =>
    `${name} ${(100 * count / Math.max(1, total)).toFixed(0)} %`
  );
  const broken = brokenPromises(outcome);
  const rows = [
    ...FAULTS.map((fault) => [`${fault}s`, countsText(faults[fault])]),
    ["timed out", `${counted(timedOut, "worker")}, at the dispatcher`],
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
  return `${started} started, ${stopped} stopped gracefully, ${cutShort} of them cut short`;
}

function countsText({ worker, dispatcher }: Readonly<Record<Role, number>>): string {
  return `${worker + dispatcher} (${counted(worker, "worker")}, ${
    counted(dispatcher, "dispatcher")
  })`;
}
