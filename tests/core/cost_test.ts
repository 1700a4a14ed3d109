/** Equation 1 and the sharing formula against values worked out by hand and against the paper's own. */

import { costOf, type JobResources, PAPER_PRICES, sharedCost } from "../../core/cost.ts";
import { LeatError } from "../../core/error.ts";
import { assertAlmostEquals, assertEquals, assertThrows } from "../assert.ts";

const PAPER_TRAINER = {
  trainers: 1,
  trainerCores: 96,
  trainerMemoryGB: 335,
  acceleratorsPerTrainer: 1,
};
const NO_WORKERS = { workers: 0, workerCores: 0, workerMemoryGB: 0 };

Deno.test("costOf is equation 1, by hand", () => {
  const job: JobResources = {
    jobSeconds: 1800,
    workers: 3,
    workerCores: 2,
    workerMemoryGB: 4,
    trainers: 2,
    trainerCores: 16,
    trainerMemoryGB: 64,
    acceleratorsPerTrainer: 4,
  };
  const prices = { cpuPerCoreHour: 0.5, memoryPerGBHour: 0.25, acceleratorPerHour: 3 };
  // workers: 0.5 h * 3 * (2 * 0.5 + 4 * 0.25) = 3
  // trainers: 0.5 h * 2 * (16 * 0.5 + 64 * 0.25 + 4 * 3) = 36
  assertEquals(costOf(job, prices), { workers: 3, trainers: 36, total: 39 });
});

Deno.test("costOf gives the paper's 80.2 dollars for colocated ResNet-50", () => {
  const cost = costOf({ jobSeconds: 112_320 / 1.75, ...NO_WORKERS, ...PAPER_TRAINER });
  assertAlmostEquals(cost.total, 80.2, 0.05);
  assertEquals(cost.workers, 0);
});

Deno.test("costOf gives the paper's 9.4 + 31.2 dollars for ResNet-50 with 16 workers and a dispatcher", () => {
  const machines = { workers: 17, workerCores: 8, workerMemoryGB: 32 };
  const cost = costOf({ jobSeconds: 112_320 / 4.5, ...machines, ...PAPER_TRAINER });
  assertAlmostEquals(cost.workers, 9.4, 0.05);
  assertAlmostEquals(cost.trainers, 31.2, 0.05);
  assertAlmostEquals(cost.total, 40.6, 0.05);
});

Deno.test("costOf charges workers for what they use", () => {
  const half = costOf({
    jobSeconds: 3600,
    workers: 1,
    workerCores: 4,
    workerMemoryGB: 16,
    ...PAPER_TRAINER,
  });
  assertAlmostEquals(half.workers, 0.04, 1e-12);
});

Deno.test("costOf names an argument that is no finite number from 0 up", () => {
  assertThrows(
    () => costOf({ jobSeconds: -1, ...NO_WORKERS, ...PAPER_TRAINER }, PAPER_PRICES),
    LeatError,
    "jobSeconds is -1",
  );
});

Deno.test("costOf names a price that is no finite number from 0 up", () => {
  const prices = { ...PAPER_PRICES, acceleratorPerHour: NaN };
  assertThrows(
    () => costOf({ jobSeconds: 1, ...NO_WORKERS, ...PAPER_TRAINER }, prices),
    LeatError,
    "acceleratorPerHour is NaN",
  );
});

Deno.test("sharedCost is the formulas of section 3.5, by hand", () => {
  // 16 * 2 - 15 * 0.1 * 2 = 29
  assertEquals(sharedCost({ trainers: 16, cost: 2, windowShare: 0.1 }), {
    unshared: 32,
    concurrent: 2,
    sequential: 29,
  });
});

Deno.test("sharedCost of one trainer is the cost without sharing, whatever the window", () => {
  const one = { trainers: 1, cost: 5, windowShare: 0.5 };
  assertEquals(sharedCost(one), { unshared: 5, concurrent: 5, sequential: 5 });
});

Deno.test("sharedCost of a window as large as the dataset is that of one trainer", () => {
  assertEquals(sharedCost({ trainers: 8, cost: 5, windowShare: 1 }).sequential, 5);
});
