/** Refuses combinations in which one option would ignore another. */
import { UsageError } from "../../cli/lib/args.ts";

/** The remedy for each conflicting option. */
type Remedies = Readonly<Record<string, string>>;

const OWN_TROUBLE = "each mutant has faults and crashes of its own; --mutant NAME runs one of them";
const ONE_RUN = "it is the run of one seed";

/** For each option, the options that it would ignore, with the remedy. */
const IGNORED: Readonly<Record<string, Remedies>> = {
  "--mutants": {
    "--mutant": "leave out --mutants to run that one, or --mutant to run all",
    "--minutes": "leave out --minutes; --seeds says how many seeds each mutant has at most",
    "--faults": `leave out --faults, because ${OWN_TROUBLE} with other faults`,
    "--crashes": `leave out --crashes, because ${OWN_TROUBLE} with other crashes`,
    "--crash": "leave out --crash; --mutant NAME --crash ROLE runs it with one mutant",
    "--timeline": "leave out --timeline; --mutant NAME --timeline shows a run of one mutant",
    "--hashes": "leave out --hashes; --mutant NAME --hashes prints those of one mutant",
  },
  "--crash": {
    "--faults":
      "leave out --faults, because these runs have no other faults, or use --crashes ROLE instead of --crash",
    "--crashes": "leave out --crashes, because no other node crashes in these runs",
    "--seeds": "leave out --seeds, because all these runs have the first seed (--seed)",
  },
  "--timeline": {
    "--seeds": `leave out --seeds, because ${ONE_RUN} (--seed)`,
    "--minutes": `leave out --minutes, because ${ONE_RUN}`,
    "--jobs": `leave out --jobs, because ${ONE_RUN}, in the main thread`,
    "--seed-timeout-s":
      `leave out --seed-timeout-s, because ${ONE_RUN}, in the main thread: Ctrl-C ends it`,
    "--crash ROLE": "name the message at which it crashes, such as --crash worker@7",
  },
  "--jobs 0": {
    "--seed-timeout-s": "leave it out, or use --jobs 1: a seed in the main thread cannot be ended",
  },
};

/**
 * Refuses two options if one would ignore the other.
 * @param given Options as on the command line. An option that conflicts by its value includes the value.
 * @throws {UsageError} naming both, and the remedy.
 */
export function refuseIgnored(given: ReadonlySet<string>): void {
  for (const [winner, ignored] of Object.entries(IGNORED)) {
    if (!given.has(winner)) continue;
    for (const [loser, remedy] of Object.entries(ignored)) {
      if (!given.has(loser)) continue;
      throw new UsageError(`${loser} cannot be combined with ${winner}: ${remedy}`);
    }
  }
}
