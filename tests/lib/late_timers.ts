/**
 * Makes timers fire late, and some of their calls take long, at random, as on a busy machine. It is
 * loaded before the tests (`deno task test:late`). Within a few runs, a test that waits a fixed time
 * or leaves a timer behind fails.
 */
const { setTimeout: setTimer } = globalThis;

/** Probabilities that a timer is a little late, and very late, and the greatest lateness, in ms. */
const LATE = { probability: 0.4, maxMs: 40 };
const VERY_LATE = { probability: 0.1, maxMs: 1_000 };
/** Probability that the thread stalls before the timer's function is called, and the longest time. */
const STALLED = { probability: 0.03, maxMs: 150 };

function latenessMs(): number {
  const drawn = Math.random();
  if (drawn < VERY_LATE.probability) return Math.random() * VERY_LATE.maxMs;
  return drawn < VERY_LATE.probability + LATE.probability ? Math.random() * LATE.maxMs : 0;
}

function stall(): void {
  if (Math.random() >= STALLED.probability) return;
  const endMs = performance.now() + Math.random() * STALLED.maxMs;
  while (performance.now() < endMs);
}

globalThis.setTimeout = Object.assign(
  (call: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) =>
    setTimer(() => {
      stall();
      call(...args);
    }, delayMs + latenessMs()),
  setTimer,
);
