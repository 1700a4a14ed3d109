/**
 * The options of `deno task vopr`.
 *
 * @module
 */
import {
  choice,
  flag,
  integer,
  number,
  type Option,
  text,
  type Values,
} from "../../examples/lib/args.ts";
import { MUTANTS } from "../mutants/mutants.ts";
import { WORKLOADS } from "../workloads.ts";
import { parseCrash, parseCrashes, parseFaults } from "./flags.ts";

/** Stands for all workloads. */
export const ALL = "all";
/** Stands for production code as it is. */
export const NO_MUTANT = "none";
/** How many, unless somebody says. */
export const SEEDS = 1_000;
/** Of how long a seed takes: one that takes this long does not end. */
export const SEED_TIMEOUT_S = 300;

/** A text that is read by a function of its own. */
function parsed<T>(help: string, placeholder: string, parse: (text: string) => T) {
  const { read, ...rest } = text({ help, placeholder });
  const option: Option<T | undefined> = {
    ...rest,
    read(texts) {
      const given = read(texts);
      return given === undefined ? undefined : parse(given);
    },
  };
  return option;
}

/** What it takes. */
export const OPTIONS = {
  seeds: integer({
    help: `How many seeds to run; ${SEEDS} unless the time is given.`,
    min: 1,
  }),
  seed: integer({ help: "The first of them.", default: 1, min: 0, max: Number.MAX_SAFE_INTEGER }),
  minutes: number({ help: "Ends after so long, however many runs that are.", min: 0.001 }),
  jobs: integer({
    help: "Threads, by default one for each core; 0 runs the seeds in the main thread.",
    min: 0,
    max: 1_024,
  }),
  workload: choice([ALL, ...Object.keys(WORKLOADS)], {
    help: "What the clusters do. One that is named has all seeds.",
    placeholder: "NAME",
    default: ALL,
  }),
  faults: parsed(
    "These faults instead of drawn ones, as in lossProbability=0.1,partition=halves, or none; " +
      "their names are below.",
    "LIST",
    parseFaults,
  ),
  crashes: parsed(
    "Of each of these roles (dispatcher, worker, client) a node crashes, instead of drawn " +
      "ones; or none.",
    "LIST",
    parseCrashes,
  ),
  crash: parsed(
    "No faults, but the dispatcher, a worker or a client (ROLE) crashes at each of its messages " +
      "in turn, or at one (ROLE@7), in the run of the first seed.",
    "ROLE",
    parseCrash,
  ),
  mutant: choice([NO_MUTANT, ...MUTANTS.keys()], {
    help: "A deliberately wrong part, in all runs.",
    placeholder: "NAME",
    default: NO_MUTANT,
  }),
  mutants: flag(
    "Runs each mutant, or those of a workload that is named, until it is noticed, and fails if one " +
      "is not.",
  ),
  timeline: flag("Runs the first seed alone and prints what happened between the nodes."),
  hashes: flag("Prints the hash of each run's trace."),
  seedTimeoutS: number({
    help: `A seed that takes longer has failed; ${SEED_TIMEOUT_S} by default.`,
    placeholder: "S",
    min: 1,
    max: 1_000_000,
  }),
};

/** What was said of them. */
export type Settings = Values<typeof OPTIONS>;

/** What was given of that which may be ignored, or would have another ignored. */
export function given(settings: Settings): ReadonlySet<string> {
  const { seeds, minutes, jobs, faults, crashes, crash, mutant, seedTimeoutS } = settings;
  const all: readonly [name: string, isGiven: boolean][] = [
    ["--seeds", seeds !== undefined],
    ["--minutes", minutes !== undefined],
    ["--jobs", jobs !== undefined && jobs > 0],
    ["--jobs 0", jobs === 0],
    ["--faults", faults !== undefined],
    ["--crashes", crashes !== undefined],
    ["--crash", crash !== undefined],
    ["--crash ROLE", crash !== undefined && crash.message === undefined],
    ["--mutant", mutant !== NO_MUTANT],
    ["--mutants", settings.mutants],
    ["--timeline", settings.timeline],
    ["--hashes", settings.hashes],
    ["--seed-timeout-s", seedTimeoutS !== undefined],
  ];
  return new Set(all.filter(([, isGiven]) => isGiven).map(([name]) => name));
}
