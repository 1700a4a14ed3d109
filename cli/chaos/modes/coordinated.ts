/**
 * A coordinated read: in every step, each consumer gets its own part of one round of one task, and
 * all continue together after the faults.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Dataset, LeatError } from "../../../mod.ts";
import { RoundsChecker } from "../../../sim/checkers/rounds.ts";
import type { DrillContext, DrillFigures } from "./drill.ts";

const CONSUMERS = 3;
/** Longest training step, in ms. */
const STEP_MAX_MS = 6;
/** How many steps each consumer makes after the faults. */
const STEPS_AFTER = 25;
/** How long a refused consumer waits before it tries again, in ms. */
const REFUSED_PAUSE_MS = 300;

/** Reads until all consumers are in the same rounds again, and have made progress. */
export async function drillCoordinated(around: DrillContext): Promise<DrillFigures> {
  const checker = new RoundsChecker(CONSUMERS, around.findings("rounds"));
  const over = Promise.withResolvers<void>();
  /** The newest client of each consumer, and its steps since the faults ended. */
  const lives = new Map<number, { readonly life: string; after: number }>();
  let clients = 0;
  const isDone = () => {
    const now = [...lives.values()];
    return now.length === CONSUMERS && now.every(({ after }) => after >= STEPS_AFTER) &&
      checker.haveMet(now.map(({ life }) => life));
  };
  const readOn = async (address: string, index: number) => {
    const life = `consumer-${index} (client ${++clients})`;
    await using iterator = jobOf(around, address, index).iterator();
    for (;;) {
      const next = await Promise.race([iterator.next(), over.promise]);
      if (next === undefined) return;
      if (next.done === true) throw new LeatError("data_loss", "A job without end has ended");
      const [number, task] = next.value;
      checker.took(life, index, { index: number, task });
      await around.step(0);
      const before = lives.get(index);
      const after = before?.life === life ? before.after : 0;
      lives.set(index, { life, after: after + (around.areFaultsOver ? 1 : 0) });
      if (isDone()) over.resolve();
      await sleep(around.rng.next() * STEP_MAX_MS);
    }
  };
  let refused = 0;
  await Promise.all(Array.from({ length: CONSUMERS }, async (_, index) => {
    using reader = around.openReader(`consumer-${index}`);
    for (;;) {
      try {
        return await readOn(reader.address, index);
      } catch (error) {
        const { code } = LeatError.from(error);
        // A consumer that was refused or timed out joins again.
        if (code !== "not_found" && code !== "failed_precondition") throw error;
        refused++;
        await sleep(REFUSED_PAUSE_MS);
      }
    }
  }));
  const { delivered } = checker;
  return {
    delivered,
    remark: `${delivered} elements, one round for all in each step` +
      (refused === 0 ? "" : `; consumers came ${refused} times again`),
  };
}

/** An endless job. Each element is its number in its task's stream, and a random id of the task. */
function jobOf(
  { name }: DrillContext,
  service: string,
  consumerIndex: number,
): Dataset<[number, number]> {
  return Dataset.zip([
    Dataset.range(100_000_000).repeat(),
    Dataset.random().take(1).cache().repeat(),
  ]).distribute({
    ...{ service, jobName: name, numConsumers: CONSUMERS, consumerIndex },
  }) as unknown as Dataset<[number, number]>;
}
