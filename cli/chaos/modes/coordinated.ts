/**
 * Checks a coordinated read: in every step, each consumer must get its own part of the same round of
 * one task, and all consumers must continue together after the faults.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Dataset, LeatError } from "../../../mod.ts";
import { RoundsChecker } from "../../../sim/checkers/rounds.ts";
import { counted } from "../../lib/counted.ts";
import type { DrillContext, DrillFigures } from "./drill.ts";

const CONSUMERS = 3;
/** Longest training step, in ms. */
const STEP_MAX_MS = 6;
/** How many steps each consumer makes after the faults. */
const STEPS_AFTER = 25;
/** How long a refused consumer waits before it tries again, in ms. */
const REFUSED_PAUSE_MS = 300;

/** Reads until all consumers are in the same rounds again, and have made progress. */
export async function drillCoordinated(context: DrillContext): Promise<DrillFigures> {
  const checker = new RoundsChecker(CONSUMERS, context.findings("rounds"));
  const done = Promise.withResolvers<void>();
  /** The newest client of each consumer, and its number of steps since the faults ended. */
  const newest = new Map<number, { readonly client: string; stepsAfter: number }>();
  let clients = 0;
  const isDone = () => {
    const current = [...newest.values()];
    return current.length === CONSUMERS &&
      current.every(({ stepsAfter }) => stepsAfter >= STEPS_AFTER) &&
      checker.haveMet(current.map(({ client }) => client));
  };
  const readRounds = async (address: string, index: number) => {
    const client = `consumer-${index} (client ${++clients})`;
    await using iterator = jobOf(context, address, index).iterator();
    for (;;) {
      const next = await Promise.race([iterator.next(), done.promise]);
      if (next === undefined) return;
      if (next.done === true) throw new LeatError("data_loss", "A job without end has ended");
      const [number, task] = next.value;
      checker.took(client, index, { index: number, task });
      await context.step(0);
      const before = newest.get(index);
      const stepsBefore = before?.client === client ? before.stepsAfter : 0;
      const stepsAfter = stepsBefore + (context.areFaultsOver ? 1 : 0);
      newest.set(index, { client, stepsAfter });
      if (isDone()) done.resolve();
      await sleep(context.rng.next() * STEP_MAX_MS);
    }
  };
  let refused = 0;
  await Promise.all(Array.from({ length: CONSUMERS }, async (_, index) => {
    using reader = context.openReader(`consumer-${index}`);
    for (;;) {
      try {
        return await readRounds(reader.address, index);
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
      (refused === 0 ? "" : `; consumers joined again ${counted(refused, "time")}`),
  };
}

/** An endless job. An element is its index in its task's stream, and the task's random id. */
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
