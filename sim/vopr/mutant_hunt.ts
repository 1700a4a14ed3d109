/** Measures whether the checkers notice each mutant, and after how many seeds. */
import { renderTable } from "../../cli/lib/table.ts";
import { type Mutant, mutantOptions } from "../mutants/mutant.ts";
import type { SeedPool } from "./pool.ts";
import type { SeedOutcome, SeedRun } from "./seed_run.ts";

/** The result for a mutant. */
export interface Hunted {
  readonly mutant: Mutant;
  /** The checkers that noticed it; empty if it was not noticed. */
  readonly checkers: readonly string[];
  /** Number of seeds, in order, until it was noticed; all seeds if it was not. */
  readonly seeds: number;
  /** The lowest seed that noticed it, and the violation. */
  readonly caughtAt?: bigint;
  readonly violation?: string;
}

/**
 * Runs seeds with the mutant until one breaks a promise. Returns the lowest such seed, even if many run
 * in parallel, because all lower seeds were started before it.
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

export function* mutantRuns(mutant: Mutant, first: bigint, count: number): Iterable<SeedRun> {
  const { workload, name } = mutant;
  for (let index = 0; index < count; index++) {
    const options = mutantOptions(mutant, first + BigInt(index));
    yield { index, workload, mutant: name, endsEarly: true, options };
  }
}

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
      checkers.join(", ") || "none",
      seeds,
      caughtAt === undefined ? undefined : `seed ${caughtAt}`,
    ]),
  });
}
