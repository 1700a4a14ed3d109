/**
 * Checks a job that trainers share (ephemeral data sharing). One trainer is fast, one slow, and one
 * leaves and joins again under its id. Each must get every worker's elements in order and at most
 * once, and make progress after the faults.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Dataset } from "../../../mod.ts";
import { type SharedElement, SharedOrderChecker } from "../../../sim/checkers/shared_order.ts";
import type { DrillContext, DrillFigures } from "./drill.ts";

/** The trainers: the longest step of each, in ms, and the probability that it leaves after a step. */
const TRAINERS = [
  { id: "fast", stepMaxMs: 2, leaveProbability: 0 },
  { id: "slow", stepMaxMs: 40, leaveProbability: 0 },
  { id: "fickle", stepMaxMs: 5, leaveProbability: 0.01 },
] as const;
type Trainer = (typeof TRAINERS)[number];

/** How many elements each trainer reads after the faults. */
const ELEMENTS_AFTER = 25;
const BALLAST_BYTES_MAX = 4_096;

/** Reads the job until each trainer has made progress after the faults. */
export async function drillSharing(context: DrillContext): Promise<DrillFigures> {
  const order = new SharedOrderChecker(context.findings("sharing"));
  let delivered = 0;
  const train = async ({ id, stepMaxMs, leaveProbability }: Trainer) => {
    using reader = context.openReader(id);
    for (let after = 0; after < ELEMENTS_AFTER;) {
      await using iterator = jobOf(context, reader.address, id).iterator();
      for await (const element of iterator) {
        order.took(id, element);
        delivered++;
        await context.step(0);
        if (context.areFaultsOver && ++after >= ELEMENTS_AFTER) break;
        await sleep(context.rng.next() * stepMaxMs);
        if (context.rng.next() < leaveProbability) break;
      }
    }
  };
  await Promise.all(TRAINERS.map(train));
  return { delivered, remark: `${delivered} elements, in order and none twice to one trainer` };
}

function jobOf({ name }: DrillContext, service: string, trainerId: string): Dataset<SharedElement> {
  return Dataset.range(1)
    .map((_, { random }) => random.int(2 ** 31))
    .flatMap(
      (stream, { Dataset, bytesMax }) =>
        Dataset.range(100_000_000).map((place, { stream, bytesMax }) => ({
          stream,
          place,
          ballast: new Uint8Array(bytesMax * (place * 7 % 11) / 11),
        }), { captures: { stream, bytesMax } }),
      { captures: { bytesMax: BALLAST_BYTES_MAX } },
    )
    .repeat()
    .distribute({ service, jobName: name, sharing: { trainerId } }) as unknown as Dataset<
      SharedElement
    >;
}
