/** Operators that need not keep the order: a split that runs again gives the same elements in it. */
import type { OffloadNode } from "../../data/operators/offload.ts";
import { Dataset, offloadProgress } from "../../mod.ts";
import { Adaptation, setAdaptation } from "../../offload/adaptation.ts";
import { CandidateControl } from "../../offload/candidate_control.ts";
import { assert, assertEquals } from "../assert.ts";
import { outcomesOf, readOutcomes } from "../data/lib/outcomes.ts";
import { sorted, testInline, upTo } from "../service/lib/carriers.ts";

const COUNT = 200;
const SLOPPY = { numParallelCalls: 8, deterministic: false } as const;

/** Splits of 20 elements. */
function elements(): Dataset<number> {
  return Dataset.range(COUNT / 20)
    .flatMap((x, { Dataset }) => Dataset.range(20 * x, 20 * x + 20)) as Dataset<number>;
}

/**
 * Operators in which elements overtake each other, otherwise each time an element is prepared. An
 * element waits for some turns of the event loop, and for no time.
 */
const PIPELINES: Readonly<Record<string, (runs: Float64Array) => Dataset<number>>> = {
  map: (runs) => slow(elements(), runs, SLOPPY),
  withOptions: (runs) =>
    slow(elements(), runs, { numParallelCalls: 8 }).withOptions({ deterministic: false }),
  filter: (runs) =>
    elements().filter(async (x, { runs }) => {
      const turns = runs[x]!++ % 2 === 0 ? x % 8 : 7 - x % 8;
      for (let i = 0; i < turns; i++) await Promise.resolve();
      return true;
    }, { captures: { runs }, ...SLOPPY }),
  interleave: (runs) =>
    Dataset.range(COUNT / 20).flatMap((x, { Dataset }) => Dataset.range(5 * x, 5 * x + 5))
      .interleave(
        (x, { Dataset, runs }) =>
          Dataset.range(4 * x, 4 * x + 4).map(async (x, { runs }) => {
            const turns = runs[x]!++ % 2 === 0 ? x % 8 : 7 - x % 8;
            for (let i = 0; i < turns; i++) await Promise.resolve();
            return x;
          }, { captures: { runs } }),
        { captures: { runs }, ...SLOPPY },
      ) as Dataset<number>,
};

function slow(
  dataset: Dataset<number>,
  runs: Float64Array,
  options: { readonly numParallelCalls: number; readonly deterministic?: boolean },
): Dataset<number> {
  return dataset.map(async (x, { runs }) => {
    const turns = runs[x]!++ % 2 === 0 ? x % 8 : 7 - x % 8;
    for (let i = 0; i < turns; i++) await Promise.resolve();
    return x;
  }, { captures: { runs }, ...options });
}

function rowsIn(outcomes: readonly unknown[]): number[] {
  return outcomes.flatMap((
    at,
  ) => [...(at as { element: { data: Iterable<number> } }).element.data]);
}

for (const [name, pipelineOf] of Object.entries(PIPELINES)) {
  testInline(
    `offload gives each element once when a split without order runs again: ${name}`,
    async (start) => {
      await using service = await start({ workers: 1 });
      const dataset = pipelineOf(new Float64Array(COUNT)).batch(4)
        .offload({ service, plan: { candidate: "p'3", ratio: 0.4 } });
      for (let at = 1; at < 40; at += 6) {
        await using first = dataset.iterator();
        const before = await readOutcomes(first, at);
        const state = await first.save();
        await first.return();
        await using second = dataset.iterator();
        await second.restore(state);
        const given = rowsIn([...before, ...await outcomesOf(second)]);
        assertEquals(sorted(given), upTo(COUNT), `${at}`);
      }
      assertEquals(offloadProgress(dataset).fallbacks, 0);
    },
  );
}

testInline("offload changes the candidate of a pipeline without order", async (start) => {
  await using service = await start({ workers: 1 });
  const plan = { candidate: "p'3", ratio: 0.4 };
  const dataset = PIPELINES["map"]!(new Float64Array(COUNT)).batch(4)
    .offload({ service, plan, adapt: true });
  const adaptation = new Adaptation(plan, new Swap(), { batches: 3, ms: 0 });
  setAdaptation(dataset.node as OffloadNode, adaptation);
  await using iterator = dataset.iterator();
  const outcomes: unknown[] = [];
  const seen = new Set<string | null | undefined>();
  for (;;) {
    const some = await readOutcomes(iterator, 1);
    if (some.length === 0) break;
    outcomes.push(...some);
    seen.add(offloadProgress(dataset).candidate);
  }
  assertEquals(sorted(rowsIn(outcomes)), upTo(COUNT));
  assert(seen.size === 2, `${[...seen]}`);
});

/** Takes the two candidates in turn. */
class Swap extends CandidateControl {
  #candidate = "p'3";

  constructor() {
    super(new Map(), "p'3");
  }

  override get candidate(): string {
    return this.#candidate;
  }

  override observe(): boolean {
    this.#candidate = this.#candidate === "p'3" ? "p'2" : "p'3";
    return true;
  }
}
