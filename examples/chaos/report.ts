/**
 * What `deno task chaos` says: a line of progress while it runs, and a table at the end.
 *
 * @module
 */
import type { Role } from "./killer.ts";

/** How far it is. */
export interface ChaosProgress {
  readonly run: number;
  readonly runs: number;
  readonly batches: number;
  readonly batchesWanted: number;
  readonly kills: Readonly<Record<Role, number>>;
  readonly killsWanted: number;
  /** Processes that are down now. */
  readonly down: number;
}

/** What came of it. */
export interface ChaosOutcome {
  readonly kills: Readonly<Record<Role, number>>;
  readonly hash: string;
  readonly streams: { readonly same: number; readonly different: number };
  /** By worker, how many answers it was seen to hand out. */
  readonly served: ReadonlyMap<string, number>;
  readonly held: Limited;
  readonly open: Limited;
  readonly longestWaitMs: number;
  readonly seconds: number;
}

/** The most there was of something, and how much there may be. */
export interface Limited {
  readonly most: number;
  readonly limit: number;
}

/** One line. */
export function progressLine(
  { run, runs, batches, batchesWanted, kills, killsWanted, down }: ChaosProgress,
): string {
  const killed = kills.worker + kills.dispatcher;
  return `run ${run} of ${runs}: batch ${batches} of ${batchesWanted}; ` +
    `${killed} of ${killsWanted} kills (${killsText(kills)}), ${down} down now`;
}

/** What was promised and is not so, in words; empty when all was kept. */
export function brokenPromises({ streams, served, held, open }: ChaosOutcome): string[] {
  const idle = [...served].filter(([, count]) => count === 0).map(([name]) => name);
  return [
    ...(streams.different > 0 ? [`${streams.different} streams differ`] : []),
    ...(idle.length > 0 ? [`nothing came of ${idle.join(", ")}`] : []),
    ...(held.most > held.limit ? [`the reader held ${held.most} bytes of ${held.limit}`] : []),
    ...(open.most > open.limit ? [`${open.most} splits of ${open.limit} were open`] : []),
  ];
}

/** The table. */
export function outcomeTable(outcome: ChaosOutcome): string {
  const { kills, hash, streams, served, held, open, longestWaitMs, seconds } = outcome;
  const all = [...served.values()].reduce((sum, count) => sum + count, 0);
  const shares = [...served].sort(([a], [b]) => a < b ? -1 : 1).map(([name, count]) =>
    `${name} ${(100 * count / Math.max(1, all)).toFixed(0)} %`
  );
  const broken = brokenPromises(outcome);
  const rows = [
    [
      "kills",
      `${kills.worker + kills.dispatcher} (${killsText(kills)}) in ${seconds.toFixed(0)} s`,
    ],
    ["streams", `${streams.same} the same, ${streams.different} different; hash ${hash}`],
    ["shares", shares.join(", ")],
    ["reader held", `at most ${held.most} bytes (limit ${held.limit})`],
    ["splits open", `at most ${open.most} (limit ${open.limit})`],
    ["longest wait", `${(longestWaitMs / 1_000).toFixed(1)} s for a batch`],
    ["promises", broken.length === 0 ? "kept" : `BROKEN: ${broken.join("; ")}`],
  ];
  return rows.map(([name, text]) => `${name!.padEnd(13)} ${text}`).join("\n");
}

function killsText({ worker, dispatcher }: Readonly<Record<Role, number>>): string {
  return `${counted(worker, "worker")}, ${counted(dispatcher, "dispatcher")}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
