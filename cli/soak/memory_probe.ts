/**
 * A module to load before a program (`deno run --preload`). It prints the program's memory usage
 * periodically, because V8's heap cannot be measured from outside a process.
 */
import { memoryNow } from "./memory_now.ts";

const PERIOD_MS = 5_000;

const print = () => console.log(`memory ${JSON.stringify(memoryNow())}`);
Deno.unrefTimer(setTimeout(print, 0));
Deno.unrefTimer(setInterval(print, PERIOD_MS));
