/** Shrinks a failing run. Removes faults and crashes as long as the run breaks the same promise. */
import { type FaultOptions, NO_FAULTS } from "../faults/options.ts";
import type { RunOptions } from "../workloads/workload.ts";
import type { SeedOutcome, SeedRun } from "./seed_run.ts";

/** Earlier ends of all faults to try, in ms. */
const HEAL_AFTER_MS = [250, 1_000, 4_000];

interface ShrinkOptions {
  /** Executes a run. Several calls may be in progress. */
  readonly run: (run: SeedRun) => Promise<SeedOutcome>;
  /** Maximum number of parallel runs. */
  readonly width: number;
  readonly runsMax: number;
  /** Called before runs are started. If true, the search ends with the current result. */
  readonly isEnough?: () => boolean;
  /** Called after each run. */
  readonly onRun?: (runs: number) => void;
}

/** The smallest failing run that was found. */
export interface Shrunk {
  readonly run: SeedRun;
  readonly violations: readonly string[];
  readonly runs: number;
}

/** Returns a smaller run, or `undefined` if there is nothing to remove. */
type Step = (options: RunOptions) => RunOptions | undefined;

/** Tries to remove one part after the other, until nothing more can be removed. */
export async function shrink(failed: SeedOutcome, options: ShrinkOptions): Promise<Shrunk> {
  const { run: tryRun, width, runsMax, isEnough = () => false, onRun = () => {} } = options;
  const [checker] = failed.checkers;
  let best: SeedRun = { ...failed.run, endsEarly: true };
  let { violations } = failed;
  let runs = 0;
  let waiting = stepsOf(best.options);
  let isSmaller = false;
  while (runs < runsMax && !isEnough()) {
    if (waiting.length === 0) {
      // A part that was necessary before may now be removable.
      if (!isSmaller) break;
      isSmaller = false;
      waiting = stepsOf(best.options);
    }
    const steps = waiting.splice(0, Math.min(width, runsMax - runs));
    const tried = await Promise.all(steps.map(async (step) => {
      const smaller = step(best.options);
      if (smaller === undefined) return undefined;
      const outcome = await tryRun({ ...best, options: smaller });
      onRun(++runs);
      return outcome.checkers.includes(checker!) ? { step, outcome } : undefined;
    }));
    const [first, ...others] = tried.filter((each) => each !== undefined);
    if (first === undefined) continue;
    isSmaller = true;
    best = first.outcome.run;
    ({ violations } = first.outcome);
    waiting.unshift(...others.map(({ step }) => step));
  }
  return { run: best, violations, runs };
}

/** Returns everything that can be removed, the largest parts first. */
function stepsOf({ faults, crashes = [] }: RunOptions): Step[] {
  const calm: Partial<FaultOptions> = NO_FAULTS;
  const names = (Object.keys(faults) as (keyof FaultOptions)[])
    .filter((name) => faults[name] !== calm[name] && name !== "healAfterMaxMs");
  const half = names.slice(0, names.length >> 1);
  return [
    withFaults(() => NO_FAULTS),
    (options) => options.crashes?.length ? { ...options, crashes: [] } : undefined,
    withFaults((faults) => calmed(faults, half)),
    withFaults((faults) => calmed(faults, names.filter((name) => !half.includes(name)))),
    ...crashes.map((role): Step => (options) => {
      const others = options.crashes?.filter((each) => each !== role) ?? [];
      return others.length < (options.crashes?.length ?? 0)
        ? { ...options, crashes: others }
        : undefined;
    }),
    ...names.map((name) => withFaults((faults) => calmed(faults, [name]))),
    ...HEAL_AFTER_MS.map((ms) =>
      withFaults((faults) =>
        ms < (faults.healAfterMaxMs ?? Infinity) ? { ...faults, healAfterMaxMs: ms } : faults
      )
    ),
    ...names.map((name) => withFaults((faults) => halved(faults, name))),
  ];
}

function withFaults(change: (faults: FaultOptions) => FaultOptions): Step {
  return (options) => {
    const faults = change(options.faults);
    const isSame = JSON.stringify(faults) === JSON.stringify(options.faults);
    return isSame ? undefined : { ...options, faults };
  };
}

/** Sets these faults to the values of `NO_FAULTS`. */
function calmed(faults: FaultOptions, names: readonly (keyof FaultOptions)[]): FaultOptions {
  const calm: Partial<FaultOptions> = NO_FAULTS;
  const others = Object.entries(faults).filter(([name]) =>
    !names.includes(name as keyof FaultOptions)
  );
  const changes = names.filter((name) => name in calm).map((name) => [name, calm[name]]);
  // Faults are in the order of `NO_FAULTS`, so that equal faults are equal texts.
  const all = Object.fromEntries([...others, ...changes]);
  return { ...NO_FAULTS, ...all };
}

/** Halves a probability. */
function halved(faults: FaultOptions, name: keyof FaultOptions): FaultOptions {
  const value = faults[name];
  if (typeof value !== "number" || !name.endsWith("Probability") || value === 0) return faults;
  return { ...faults, [name]: value / 2 };
}
