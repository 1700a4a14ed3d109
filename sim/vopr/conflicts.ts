/**
 * Options of which one would be ignored beside the other: they are refused instead.
 *
 * @module
 */
import { UsageError } from "../../examples/lib/args.ts";

/** What is said for two options: what to do instead. */
type Remedies = Readonly<Record<string, string>>;

const OWN_TROUBLE = "each mutant has faults and crashes of its own; --mutant NAME runs one of them";
const ONE_RUN = "it is the run of one seed";

/** By the option that wins: those that it would ignore, with the remedy. */
const IGNORED: Readonly<Record<string, Remedies>> = {
  "--mutants": {
    "--mutant": "leave out --mutants to run that one, or --mutant to look for each",
    "--minutes": "leave out --minutes; --seeds says how many seeds each mutant has at most",
    "--faults": `leave out --faults, as ${OWN_TROUBLE} with others`,
    "--crashes": `leave out --crashes, as ${OWN_TROUBLE} with others`,
    "--crash": "leave out --crash; --mutant NAME --crash ROLE does it with one of them",
    "--timeline": "leave out --timeline; --mutant NAME --timeline shows a run of one of them",
    "--hashes": "leave out --hashes; --mutant NAME --hashes prints those of one of them",
  },
  "--crash": {
    "--faults":
      "leave out --faults, as nothing else goes wrong in these runs, or crash with --crashes ROLE instead",
    "--crashes": "leave out --crashes, as nobody else crashes in these runs",
    "--seeds": "leave out --seeds, as all these runs are of the first seed (--seed)",
  },
  "--timeline": {
    "--seeds": `leave out --seeds, as ${ONE_RUN} (--seed)`,
    "--minutes": `leave out --minutes, as ${ONE_RUN}`,
    "--jobs": `leave out --jobs, as ${ONE_RUN}, in the main thread`,
    "--seed-timeout-s":
      `leave out --seed-timeout-s, as ${ONE_RUN}, in the main thread: Ctrl-C ends it`,
    "--hashes":
      "leave out --timeline, whose messages travel in another form than those of other runs, with " +
      "another hash; --seeds 1 --hashes prints it",
    "--crash ROLE": "name the message at which it crashes, as in --crash worker@7",
  },
  "--jobs 0": {
    "--seed-timeout-s":
      "leave it out, or give --jobs 1: nothing ends a seed that runs in the main thread",
  },
};

/**
 * Refuses two options of which one would be ignored.
 *
 * @param given As on a command line; an option that ignores others by its value is named with that.
 * @throws {UsageError} naming both, and the remedy.
 */
export function refuseIgnored(given: ReadonlySet<string>): void {
  for (const [winner, ignored] of Object.entries(IGNORED)) {
    if (!given.has(winner)) continue;
    for (const [loser, remedy] of Object.entries(ignored)) {
      if (!given.has(loser)) continue;
      throw new UsageError(`${loser} cannot stand beside ${winner}: ${remedy}`);
    }
  }
}
