/**
 * Loaded before a program (`deno run --preload`): has it print once a second what memory it uses. What
 * of that is V8's heap cannot be seen from outside of a process.
 *
 * @module
 */

const PERIOD_MS = 1_000;

Deno.unrefTimer(setInterval(
  () => console.log(`memory ${JSON.stringify(Deno.memoryUsage())}`),
  PERIOD_MS,
));
