/** Runs jobs of every mode in concurrent lanes, one after the other within a lane. */
import type { Mode } from "../chaos/modes/drill.ts";
import type { Nemesis } from "../chaos/nemesis.ts";
import type { Play } from "../chaos/play.ts";

/** The amount of work. */
interface LoadOptions {
  readonly modes: readonly Mode[];
  readonly lanes: number;
  /** How many faults there are in each round of jobs; 0: none. */
  readonly faultsPerRound: number;
  /** Whether a further round begins. */
  readonly goesOn: () => boolean;
  readonly onRun: (mode: Mode, runs: number) => void;
}

/** Returns the number of jobs, by mode. */
export async function runLoad(
  play: Play,
  nemesis: Nemesis | undefined,
  { modes, lanes, faultsPerRound, goesOn, onRun }: LoadOptions,
): Promise<Map<Mode, number>> {
  const runs = new Map<Mode, number>();
  for (let next = 0; goesOn(); next += lanes) {
    nemesis?.start(faultsPerRound, false);
    // Lanes take the next modes round-robin.
    await Promise.all(Array.from({ length: lanes }, async (_, lane) => {
      const mode = modes[(next + lane) % modes.length]!;
      await play.run(mode);
      const count = (runs.get(mode) ?? 0) + 1;
      runs.set(mode, count);
      onRun(mode, count);
    }));
    await nemesis?.stop();
  }
  return runs;
}
