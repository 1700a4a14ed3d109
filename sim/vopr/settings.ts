/** The options of `deno task vopr`. */
import {
  choice,
  flag,
  integer,
  number,
  type Option,
  text,
  type Values,
} from "../../cli/lib/options.ts";
import { MUTANTS } from "../mutants/mutants.ts";
import { WORKLOADS } from "../workloads/workloads.ts";
import { parseCrash, parseCrashes, parseFaults } from "./flags.ts";

/** The value that stands for all workloads. */
export const ALL = "all";
/** The value that stands for unchanged production code. */
export const NO_MUTANT = "none";
/** Default number of seeds. */
export const SEEDS = 1_000;
/** Default time limit of a seed, in seconds. */
export const SEED_TIMEOUT_S = 300;

/** A text option with its own parse function. */
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

export const OPTIONS = {
  seeds: integer({
    help: `How many seeds to run; ${SEEDS} unless the time is given.`,
    min: 1,
  }),
  seed: integer({ help: "The first seed.", default: 1, min: 0, max: Number.MAX_SAFE_INTEGER }),
  minutes: number({ help: "Ends after that time, whatever the number of runs.", min: 0.001 }),
  jobs: integer({
    help: "Threads, by default one for each core; 0 runs the seeds in the main thread.",
    min: 0,
    max: 1_024,
  }),
  workload: choice([ALL, ...Object.keys(WORKLOADS)], {
    help: "What the clusters do; a named workload gets all seeds.",
    placeholder: "NAME",
    default: ALL,
  }),
  faults: parsed(
    "These faults instead of drawn ones, such as lossProbability=0.1,partition=halves, or none; " +
      "their names are below.",
    "LIST",
    parseFaults,
  ),
  crashes: parsed(
    "A node of each of these roles (dispatcher, worker, client) crashes, instead of drawn " +
      "ones; or none.",
    "LIST",
    parseCrashes,
  ),
  crash: parsed(
    "No faults except that the dispatcher, a worker or a client (ROLE) crashes at each of its messages " +
      "in turn, or at one of them (ROLE@7), in the run of the first seed.",
    "ROLE",
    parseCrash,
  ),
  mutant: choice([NO_MUTANT, ...MUTANTS.keys()], {
    help: "Installs a deliberately wrong part in all runs.",
    placeholder: "NAME",
    default: NO_MUTANT,
  }),
  mutants: flag(
    "Runs each mutant, or those of the named workload, until it is noticed, and fails if one " +
      "is not.",
  ),
  timeline: flag("Runs only the first seed and prints what happened between the nodes."),
  hashes: flag("Prints the hash of each run's trace."),
  seedTimeoutS: number({
    help: `Time limit of a seed, which fails beyond it; default ${SEED_TIMEOUT_S}.`,
    placeholder: "S",
    min: 1,
    max: 1_000_000,
  }),
};

export type Settings = Values<typeof OPTIONS>;

/** Returns the given options that others may ignore, or that may ignore others. */
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
