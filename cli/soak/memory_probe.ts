/**
 * Loaded before a program (`deno run --preload`): prints its memory usage now and then. The size of
 * V8's heap cannot be seen from outside a process.
 */
import { memoryNow } from "./memory_now.ts";

const PERIOD_MS = 5_000;

const print = () => console.log(`memory ${JSON.stringify(memoryNow())}`);
Deno.unrefTimer(setTimeout(print, 0));
Deno.unrefTimer(setInterval(print, PERIOD_MS));
