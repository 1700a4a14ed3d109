/**
 * Whether the checkers see each mutant, and after how many seeds.
 *
 * @module
 */
import { renderTable } from "../../examples/lib/table.ts";
import { type Mutant, mutantOptions } from "../mutants/mutant.ts";
import type { SeedPool } from "./pool.ts";
import type { SeedRun } from "./seed_run.ts";

/** What came of a mutant. */
export interface Hunted {
  readonly mutant: Mutant;
  /** Those that have seen it; none: it was not noticed. */
  readonly checkers: readonly string[];
  /** How many seeds it took. */
  readonly seeds: number;
  /** One of those at which it was noticed, with what was seen. */
  readonly caughtAt?: bigint;
  readonly violation?: string;
}

/** Runs seeds with the mutant in them until one of them breaks a promise. */
export async function huntMutant(
  pool: SeedPool,
  mutant: Mutant,
  { first, seedsMax }: { readonly first: bigint; readonly seedsMax: number },
): Promise<Hunted> {
  let hunted: Hunted = { mutant, checkers: [], seeds: 0 };
  await pool.runAll(mutantRuns(mutant, first, seedsMax), ({ run, violations, checkers }) => {
    if (hunted.caughtAt !== undefined) return true;
    hunted = { ...hunted, seeds: hunted.seeds + 1 };
    const [violation] = violations;
    if (violation === undefined) return false;
    hunted = { ...hunted, checkers, caughtAt: run.options.seed, violation };
    return true;
  });
  return hunted;
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
      { heading: "for example" },
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
