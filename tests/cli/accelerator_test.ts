/** The simulated accelerator under a test clock: its time is the sum of its steps. */

import { LeatError } from "../../core/error.ts";
import {
  Accelerator,
  batchTokens,
  stepTimeMs,
  synchronousStep,
  SynchronousTraining,
  type Timer,
} from "../../cli/simulate/accelerator.ts";
import { assertAlmostEquals, assertEquals, assertRejects, assertThrows } from "../assert.ts";

/** A timer that fires late by a fixed time, on a clock of its own. */
class LateTimer implements Timer {
  nowMs = 0;
  readonly #lateMs: number;

  constructor(lateMs: number) {
    this.#lateMs = lateMs;
  }

  now(): number {
    return this.nowMs;
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.nowMs += delayMs + this.#lateMs;
    return Promise.resolve();
  }
}

Deno.test("batchTokens pads every row to the longest, or to the given length", () => {
  assertEquals(batchTokens([3, 5, 1]), { real: 9, padded: 15 });
  assertEquals(batchTokens([3, 5, 1], 8), { real: 9, padded: 24 });
  assertEquals(batchTokens([]), { real: 0, padded: 0 });
});

Deno.test("stepTimeMs grows with the padded tokens from a constant", () => {
  assertEquals(stepTimeMs({ constantMs: 4, perTokenMs: 0.5 }, 10), 9);
});

Deno.test("synchronousStep lasts as long as its slowest trainer and the others idle", () => {
  assertEquals(synchronousStep([10, 40, 30]), { stepMs: 40, slowest: 1, idleShare: 1 - 80 / 120 });
  assertEquals(synchronousStep([7, 7]).idleShare, 0);
  assertThrows(() => synchronousStep([]), LeatError, "no trainer");
});

Deno.test("Accelerator compensates for late timers", async () => {
  const timer = new LateTimer(1.5);
  const accelerator = new Accelerator(timer);
  for (let step = 0; step < 100; step++) await accelerator.step(5);
  assertEquals(accelerator.busyMs, 500);
  assertAlmostEquals(timer.nowMs, 501.5, 1e-9);
});

Deno.test("Accelerator compensates for a timer later than a whole step", async () => {
  const timer = new LateTimer(7);
  const accelerator = new Accelerator(timer);
  for (let step = 0; step < 10; step++) await accelerator.step(5);
  assertEquals(accelerator.busyMs, 50);
  // Never early, and at most as late as the last timer.
  assertEquals(timer.nowMs >= 50 && timer.nowMs <= 57, true);
});

Deno.test("Accelerator does not compensate for waiting for data", async () => {
  const timer = new LateTimer(0);
  const accelerator = new Accelerator(timer);
  await accelerator.step(5);
  timer.nowMs += 100;
  await accelerator.step(5);
  assertEquals(timer.nowMs, 110);
  assertEquals(accelerator.busyMs, 10);
});

Deno.test("Accelerator ends a step when its signal aborts, and does not count it", async () => {
  const accelerator = new Accelerator();
  const controller = new AbortController();
  const step = accelerator.step(3_600_000, controller.signal);
  controller.abort(new Error("enough"));
  await assertRejects(() => step, Error, "enough");
  assertEquals(accelerator.busyMs, 0);
});

Deno.test("Accelerator refuses an invalid duration", async () => {
  await assertRejects(() => new Accelerator().step(Number.NaN), LeatError, "durationMs is NaN");
});

Deno.test("SynchronousTraining holds every trainer until the slowest arrives", async () => {
  const training = new SynchronousTraining(3, new LateTimer(0));
  const done: number[] = [];
  const first = training.step(10).then(() => done.push(0));
  const second = training.step(30).then(() => done.push(1));
  await Promise.resolve();
  assertEquals(done, []);
  const step = await training.step(20);
  await Promise.all([first, second]);
  assertEquals(step, { stepMs: 30, slowest: 1, idleShare: 1 - 60 / 90 });
  assertEquals(training.busyMs, 30);
  assertEquals(done.length, 3 - 1);
});
