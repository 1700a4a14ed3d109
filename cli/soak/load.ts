/** Runs jobs of every mode in rounds, with several jobs at the same time in each round. */
import type { Mode } from "../chaos/modes/drill.ts";
import type { Nemesis } from "../chaos/nemesis.ts";
import type { DrillRunner } from "../chaos/drill_runner.ts";

/** The amount of work. */
interface LoadOptions {
  readonly modes: readonly Mode[];
  /** How many jobs of a round run at the same time. */
  readonly lanes: number;
  /** How many faults each round has; 0: none. */
  readonly faultsPerRound: number;
  /** Returns whether another round begins. */
  readonly goesOn: () => boolean;
  readonly onRun: (mode: Mode, runs: number) => void;
}

/** Runs the jobs. Returns their number by mode. */
export async function runLoad(
  runner: DrillRunner,
  nemesis: Nemesis | undefined,
  { modes, lanes, faultsPerRound, goesOn, onRun }: LoadOptions,
): Promise<Map<Mode, number>> {
  const runs = new Map<Mode, number>();
  for (let next = 0; goesOn(); next += lanes) {
    nemesis?.start(faultsPerRound, false);
    // Rounds go through the modes in order.
    await Promise.all(Array.from({ length: lanes }, async (_, lane) => {
      const mode = modes[(next + lane) % modes.length]!;
      await runner.run(mode);
      const count = (runs.get(mode) ?? 0) + 1;
      runs.set(mode, count);
      onRun(mode, count);
    }));
    await nemesis?.stop();
  }
  return runs;
}
