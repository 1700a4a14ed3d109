/** The pipelines of the trainers of `workload_offload.ts`, and how their cuts change. */
import { Dataset } from "../../../data/dataset.ts";
import { CandidateControl } from "../../../offload/candidate_control.ts";
import { decide } from "../../../offload/decide.ts";
import { OffloadPlan } from "../../../offload/plan.ts";
import type { SimRandom } from "../../engine/random.ts";

/** Number of splits. */
const SPLITS = 40;

/** A batch of numbers. */
export type Rows = { readonly data: Iterable<number> };

/** A pipeline whose splits have one to three elements, so that batches join rows of several splits. */
function rowsOf(): Dataset<Rows> {
  return Dataset.from(Array.from({ length: SPLITS }, (_, i) => i))
    .flatMap((x, { Dataset }) => Dataset.range(3 * x, 3 * x + 3))
    .filter((x) => x % 7 !== 0)
    .batch(2) as Dataset<Rows>;
}

/**
 * A pipeline whose elements depend on random numbers. Wrong numbers would repeat or lose elements. It
 * is not deterministic, so elements may overtake others.
 */
function randomRowsOf(): Dataset<Rows> {
  return Dataset.from(Array.from({ length: SPLITS }, (_, i) => i))
    .flatMap((x, { Dataset }) => Dataset.range(4 * x, 4 * x + 4))
    .map(async (x, { random }) => {
      for (let turns = 5 * x % 7; turns > 0; turns--) await Promise.resolve();
      return 100 * x + random.int(100);
    }, { numParallelCalls: 4, deterministic: false })
    .filter((x) => x % 7 > 1)
    .shuffle(3)
    .batch(2)
    .withOptions({ seed: 0 }) as Dataset<Rows>; // the seed of the reference
}

/** A trainer's pipeline. */
export interface Variant {
  readonly rowsOf: () => Dataset<Rows>;
  /** How the part that workers run changes: never, at random, or by measurements. */
  readonly changes: "never" | "random" | "measured";
}

export const OFFLOADED: Variant = { rowsOf, changes: "never" };
export const EXCHANGED: Variant = { rowsOf: randomRowsOf, changes: "random" };
export const DECIDED: Variant = { rowsOf: randomRowsOf, changes: "measured" };

/** The profile of the variant with measurements: the step with each candidate, in ms. It is wrong. */
const PROFILE = { "p'3": 700, "p'2": 1_400 };
export const LOCAL_STEP_MS = 15_000;
const BATCH_BYTES = 16;

/** Returns the plan that this profile decides. */
export function profiledPlan(): OffloadPlan {
  const rate = (ms: number) => 1_000 * BATCH_BYTES / ms;
  const Lthp = rate(LOCAL_STEP_MS);
  const metrics = {
    ...{ Gthp: rate(1), Lthp, Pcycle: 1 },
    candidates: Object.entries(PROFILE).map(([name, ms]) => ({
      ...{ name, Rthp: rate(ms) - Lthp, Ocycle: 0 },
    })),
  };
  return new OffloadPlan({
    ...{ decision: decide(metrics), metrics, refused: [], source: "stored", planningMs: 0 },
  });
}

/** Batches between two changes. */
export const PERIOD = { batches: 3, ms: 0 };

/** A control that chooses any candidate next, or none. */
export class RandomCuts extends CandidateControl {
  readonly #rng: SimRandom;
  #candidate: string | null;

  constructor(rng: SimRandom, first: string) {
    super(new Map(), first);
    this.#rng = rng;
    this.#candidate = first;
  }

  override get candidate(): string | null {
    return this.#candidate;
  }

  override resume(candidate: string | null): void {
    this.#candidate = candidate;
  }

  override observe(): boolean {
    this.#candidate = this.#rng.pick([null, "p'1", "p'2", "p'3"]);
    return true;
  }
}
