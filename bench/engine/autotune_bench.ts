/**
 * Compares `AUTOTUNE` with settings that an expert has chosen for six pipelines. Functions wait, as if
 * for storage, so that the ratio does not depend on the number of cores.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AUTOTUNE, Dataset } from "../../mod.ts";
import { type Load, sequentialLoad } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

/** The values that both sides set, in the order of the operators. */
type Settings = readonly number[];

interface Compared {
  readonly name: string;
  readonly expert: Settings;
  readonly pipeline: (settings: Settings) => Dataset<unknown>;
  /** How long the consumer works on an element, in ms. Default 0. */
  readonly stepMs?: number;
}

const ENDLESS = 1_000_000_000;

function waiting(input: Dataset<number>, ms: number, numParallelCalls: number): Dataset<number> {
  return input.map(async (x) => {
    await sleep(ms);
    return x;
  }, { numParallelCalls });
}

const numbers = () => Dataset.range(ENDLESS);

const PIPELINES: readonly Compared[] = [
  {
    name: "one function",
    expert: [16],
    pipeline: ([calls]) => waiting(numbers(), 8, calls!),
  },
  {
    name: "two functions",
    expert: [4, 12],
    pipeline: ([first, second]) => waiting(waiting(numbers(), 4, first!), 12, second!),
  },
  {
    name: "function, batch",
    expert: [16],
    pipeline: ([calls]) => waiting(numbers(), 8, calls!).batch(8),
  },
  {
    name: "function, batch, prefetch, and a training step",
    expert: [16, 4],
    pipeline: ([calls, size]) => waiting(numbers(), 8, calls!).batch(8).prefetch(size!),
    stepMs: 6,
  },
  {
    name: "filter, function",
    expert: [8, 8],
    pipeline: ([calls, more]) =>
      waiting(
        numbers().filter(async (x) => {
          await sleep(4);
          return x % 2 === 0;
        }, { numParallelCalls: calls! }),
        8,
        more!,
      ),
  },
  {
    name: "interleave",
    expert: [16],
    pipeline: ([calls]) =>
      numbers().interleave(
        (x, { Dataset }) =>
          Dataset.range(20).map(async (y) => {
            await sleep(8);
            return x + y;
          }),
        { cycleLength: 16, numParallelCalls: calls! },
      ),
  },
];

function open({ pipeline, stepMs = 0 }: Compared, settings: Settings): Load {
  const iterator = pipeline(settings).iterator();
  const step = async () => {
    const startedAtMs = performance.now();
    await iterator.next();
    if (stepMs > 0) await sleep(stepMs);
    return performance.now() - startedAtMs;
  };
  return sequentialLoad(step, async () => void await iterator.return());
}

export const benches: Bench[] = PIPELINES.map((compared) => ({
  name: `AUTOTUNE against an expert: ${compared.name}`,
  unit: "elements/s",
  floor: 0.8,
  bare: () => open(compared, compared.expert),
  leat: () => open(compared, compared.expert.map(() => AUTOTUNE)),
}));
