/**
 * Executes a run of any workload. It first applies the faults of the run's options. Then it heals the
 * cluster, which must finish, and reports the result.
 */
import { LeatError } from "../../core/error.ts";
import type { Violations } from "../checkers/checker.ts";
import type { SimCluster } from "../engine/cluster.ts";
import {
  CRASH_AFTER_MAX_MS,
  type Crashes,
  type CrashPoint,
  DOWN_MAX_MS,
  type Role,
} from "../faults/crashes.ts";
import { findLeaks, hasLeaks } from "./lib/leak_check.ts";
import { Nemesis } from "../faults/nemesis.ts";
import { type FaultOptions, NO_FAULTS } from "../faults/options.ts";
import { BugChecker } from "../checkers/bugs.ts";
import { FenceChecker } from "../checkers/fences.ts";
import { MemoryChecker } from "../checkers/memory.ts";
import { journalOf } from "../engine/service.ts";

/** Latest time at which the cluster heals, in ms. */
const HEAL_AFTER_MAX_MS = 20_000;
/** Default virtual time within which a healed cluster must finish, in ms. */
const LIVENESS_MAX_MS = 300_000;
/** Maximum number of events of each half of a run. */
const STEPS_MAX = 500_000;

export interface RunOptions {
  readonly seed: bigint;
  readonly faults: FaultOptions;
  /** For each entry, a node of the role crashes. Roles may repeat. Default: none. */
  readonly crashes?: readonly Role[];
  /** A crash at a counted message. Default: none. */
  readonly crashPoint?: CrashPoint;
  /** Whether some elements fail. See `failing_elements.ts`. Default false. */
  readonly failing?: boolean;
  /** See {@linkcode SimCluster}. */
  readonly readable?: boolean;
}

export interface RunOutcome {
  /** Broken promises, each after its checker's name; empty if there are none. */
  readonly violations: readonly string[];
  /** The checkers that found broken promises. */
  readonly checkers: readonly string[];
  readonly hash: string;
  readonly delivered: number;
  readonly cluster: SimCluster;
}

/** Runs one seed of a workload. */
export type Workload<O extends RunOptions = RunOptions> = (options: O) => Promise<RunOutcome>;

/** A run that has been set up. */
interface Run {
  readonly cluster: SimCluster;
  readonly violations: Violations;
  toTheEnd(): Promise<void>;
}

/** Share of runs that check for leaks at the end, which takes a while. */
const LEAK_CHECK_PROBABILITY = 1 / 2;
/** Virtual time in ms after which nothing may be left, because clients and jobs have timed out. */
const LEFT_MAX_MS = 600_000;
/** Average number of events between two checks for leaks. */
const LEFT_EVERY = 16;

/** Executes a run and returns the result. An error also counts as a broken promise. */
export async function outcomeOf<R extends Run>(
  run: R,
  delivered: (run: R) => number,
): Promise<RunOutcome> {
  const { cluster, violations } = run;
  if (!cluster.network.copiesMessages) cluster.counters.tally("messages_as_bytes");
  const memory = new MemoryChecker(violations.by("memory"));
  const nodes = () => cluster.nodes;
  cluster.onStep = () => memory.look(nodes, cluster.scheduler.nowUs / 1_000);
  const fences = new FenceChecker(violations.by("fences"));
  const bugs = new BugChecker(violations.by("bugs"));
  cluster.onStart = (node) => {
    bugs.watch(node);
    if (cluster.trainers.includes(node.name)) memory.watch(node);
    fences.watch(node.system);
  };
  for (const node of cluster.nodes) if (node.isUp) cluster.onStart(node);
  try {
    await run.toTheEnd();
  } catch (error) {
    violations.by("liveness").add(LeatError.from(error).message);
  }
  const isChosen = cluster.random.fork("leftovers").chance(LEAK_CHECK_PROBABILITY);
  if (isChosen && violations.count === 0) await expectNothingLeft(run);
  for (const node of cluster.nodes) {
    const journal = journalOf(node);
    memory.ended(node.name, journal?.end() ?? 0);
    for (const what of journal?.found ?? []) violations.by("journal").add(what);
  }
  return {
    violations: violations.list(),
    checkers: violations.checkers,
    hash: cluster.trace.hash,
    delivered: delivered(run),
    cluster,
  };
}

/** Crashes all training processes like power cuts, and waits until nothing of theirs is left. */
async function expectNothingLeft({ cluster, violations }: Run): Promise<void> {
  for (const name of cluster.trainers) {
    const node = cluster.node(name);
    if (node.isUp) node.crash();
  }
  try {
    // Checks at irregular intervals. At regular intervals, a heartbeat could be in transit every time.
    const rng = cluster.random.fork("looks");
    const until = () => rng.int(LEFT_EVERY) === 0 && !hasLeaks(cluster);
    await cluster.run({ until, timeMaxMs: LEFT_MAX_MS, stepsMax: STEPS_MAX });
  } catch (error) {
    const found = violations.by("leftovers");
    for (const what of findLeaks(cluster)) found.add(`${what} is left`);
    found.add(LeatError.from(error).message);
  }
}

/** The faults of a run that does not draw them. A tenth of all messages is lost. */
export const WORKLOAD_FAULTS: FaultOptions = {
  ...NO_FAULTS,
  lossProbability: 0.1,
  duplicateProbability: 0.1,
  reorderProbability: 0.1,
  delayMaxMs: 5,
  reorderDelayMaxMs: 50,
  connectFailureProbability: 0.1,
  silentCrashProbability: 0.3,
  diskSyncMaxMs: 20,
};

/**
 * Runs with faults for a while, then without.
 * @param livenessMaxMs Virtual time within which the healed cluster must finish.
 * @throws LeatError `deadline_exceeded` if it does not.
 */
export async function runThroughTrouble(
  cluster: SimCluster,
  crashes: Crashes,
  isDone: () => boolean,
  livenessMaxMs?: number,
): Promise<void> {
  const rng = cluster.random.fork("heal");
  const nemesis = new Nemesis(cluster);
  let isTimeToHeal = false;
  const { healAfterMaxMs = HEAL_AFTER_MAX_MS } = cluster.network.faults;
  cluster.after(rng.between(0, healAfterMaxMs), "heal", () => isTimeToHeal = true);
  nemesis.start();
  await cluster.run({
    until: () => (isTimeToHeal || isDone()) && crashes.over,
    timeMaxMs: healAfterMaxMs + CRASH_AFTER_MAX_MS + DOWN_MAX_MS,
    stepsMax: STEPS_MAX,
  });
  nemesis.stop();
  cluster.heal();
  await runUntil(cluster, isDone, "everybody has reached the end", livenessMaxMs);
}

/**
 * Runs a healed cluster until a condition holds.
 * @throws LeatError `deadline_exceeded`, naming the condition, if it never does.
 */
export async function runUntil(
  cluster: SimCluster,
  holds: () => boolean,
  what: string,
  timeMaxMs = LIVENESS_MAX_MS,
): Promise<void> {
  try {
    await cluster.run({ until: holds, timeMaxMs, stepsMax: STEPS_MAX });
  } catch (error) {
    const { code, message } = LeatError.from(error);
    throw new LeatError(code, `This never came true: ${what}: ${message}`, { cause: error });
  }
}
