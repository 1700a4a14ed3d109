/** Simulates the batch rate of a cluster, and explains why no batch arrives. */
import { LeatError } from "../../mod.ts";
import { simulateCluster } from "../../sim/model/modelled.ts";
import type { modelOptions } from "./clusters.ts";
import { formatNumber } from "../lib/table.ts";

const BYTES_PER_MB = 1e6;
const BYTES_PER_MEGABIT = 1e6 / 8;
const MS_PER_SECOND = 1_000;
/** Rounding to this many digits restores a user's number after unit conversions. */
const GIVEN_DIGITS = 9;
/**
 * A simulated step takes at most `STEP_RATIO` times as long as all else together, or `STEP_LONG_MS`
 * if that is more. For a longer step the rate is computed from the simulated one: trainers wait for
 * no batch in either case.
 */
const STEP_RATIO = 100;
const STEP_LONG_MS = 60_000;

type Model = ReturnType<typeof modelOptions>;

/**
 * Returns the batches per second of all trainers together.
 * @throws LeatError `failed_precondition` if no batch arrives, or actors time each other out. Only a
 * slow network causes this, so the message names the options of the network.
 */
export async function modelledRate(model: Model): Promise<number> {
  const stepMs = Math.min(model.stepMs, longStepMs(model));
  let batchesPerSecond: number;
  try {
    ({ batchesPerSecond } = await simulateCluster({ ...model, stepMs }));
  } catch (error) {
    throw LeatError.from(error).code === "invalid_argument" ? error : tooSlow(model, error);
  }
  if (batchesPerSecond === 0) throw tooSlow(model);
  return model.stepMs === stepMs ? batchesPerSecond : batchesPerSecond * stepMs / model.stepMs;
}

/** The step time to simulate; see {@linkcode STEP_RATIO}. */
function longStepMs({ trainers, batchMs, delayMinMs, delayMaxMs, ...model }: Model): number {
  const otherMs = trainers * (batchMs + sendingMs(model)) + delayMinMs + delayMaxMs;
  return Math.max(STEP_LONG_MS, STEP_RATIO * otherMs);
}

function sendingMs(
  { batchBytes, networkBytesPerSecond }: Pick<Model, "batchBytes" | "networkBytesPerSecond">,
): number {
  return MS_PER_SECOND * batchBytes / networkBytesPerSecond;
}

function tooSlow(model: Model, cause?: unknown): LeatError {
  const { workers, batchBytes, networkBytesPerSecond, delayMinMs, delayMaxMs, stepMs } = model;
  const given = (value: number) => Number(value.toPrecision(GIVEN_DIGITS));
  const megabits = (bytes: number) => bytes / BYTES_PER_MEGABIT;
  const enough = formatNumber(megabits(MS_PER_SECOND * batchBytes / stepMs));
  return new LeatError(
    "failed_precondition",
    `No batch arrived at a trainer in a simulated cluster (workers: ${workers}): over this network ` +
      "requests time out before they are answered. With --network-mbps " +
      `${given(megabits(networkBytesPerSecond))} a batch of ${
        formatNumber(batchBytes / BYTES_PER_MB)
      } MB takes ${
        formatNumber(sendingMs(model) / MS_PER_SECOND)
      } s to be sent, and a short message ` +
      `takes --round-trip-ms ${
        given(delayMinMs + delayMaxMs)
      } there and back. An accelerator with a ` +
      `step of ${
        formatNumber(stepMs)
      } ms needs ${enough} Mbit/s: give a faster card or a shorter ` +
      "round trip, or make batches smaller",
    { cause },
  );
}
