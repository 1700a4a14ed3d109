/**
 * Whether the checkers see each mutant, and after how many seeds.
 *
 * @module
 */
import { renderTable } from "../../examples/lib/table.ts";
import { type Mutant, mutantOptions } from "../mutants/mutant.ts";
import type { SeedPool } from "./pool.ts";
import type { SeedOutcome, SeedRun } from "./seed_run.ts";

/** What came of a mutant. */
export interface Hunted {
  readonly mutant: Mutant;
  /** Those that have seen it; none: it was not noticed. */
  readonly checkers: readonly string[];
  /** How many seeds it takes, one after the other, until it is noticed; all where it is not. */
  readonly seeds: number;
  /** The lowest at which it was noticed, with what was seen. */
  readonly caughtAt?: bigint;
  readonly violation?: string;
}

/**
 * Runs seeds with the mutant in them until one of them breaks a promise. It answers the lowest that
 * does, however many run at once: those below it were begun before it.
 */
export async function huntMutant(
  pool: Pick<SeedPool, "runAll">,
  mutant: Mutant,
  { first, seedsMax }: { readonly first: bigint; readonly seedsMax: number },
): Promise<Hunted> {
  let caught: SeedOutcome | undefined;
  await pool.runAll(mutantRuns(mutant, first, seedsMax), (outcome) => {
    const isLowest = caught === undefined || outcome.run.index < caught.run.index;
    if (outcome.violations.length > 0 && isLowest) caught = outcome;
    return caught !== undefined;
  });
  if (caught === undefined) return { mutant, checkers: [], seeds: seedsMax };
  const { run, checkers, violations: [violation] } = caught;
  const caughtAt = run.options.seed;
  return { mutant, checkers, seeds: run.index + 1, caughtAt, violation: violation! };
}

/** The seeds of a mutant. */
export function* mutantRuns(mutant: Mutant, first: bigint, count: number): Iterable<SeedRun> {
  const { workload, name } = mutant;
  for (let index = 0; index < count; index++) {
    const options = mutantOptions(mutant, first + BigInt(index));
    yield { index, workload, mutant: name, endsEarly: true, options };
  }
}

/** A table for people. */
export function mutantTable(hunted: readonly Hunted[]): string {
  return renderTable({
    title: "Mutants",
    columns: [
      { heading: "mutant" },
      { heading: "workload" },
      { heading: "seen by" },
      { heading: "seeds it took" },
      { heading: "first at" },
    ],
    rows: hunted.map(({ mutant, checkers, seeds, caughtAt }) => [
      mutant.name,
      mutant.workload,
      checkers.join(", ") || "nobody",
      seeds,
      caughtAt === undefined ? undefined : `seed ${caughtAt}`,
    ]),
  });
}
