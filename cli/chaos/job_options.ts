/** The job options of `deno task chaos` and `deno task soak`. */
import { integer, type Options } from "../lib/options.ts";

/** The size of a job, and how long it may stall, with these defaults. */
export function jobOptions(defaults: { readonly elements: number; readonly work: number }) {
  return {
    elements: integer({
      help: "How many elements a job has.",
      default: defaults.elements,
      min: 32,
      max: 100_000_000,
    }),
    work: integer({
      help: "Steps of computation per element, about a nanosecond each.",
      default: defaults.work,
      min: 0,
      max: 10_000_000_000,
    }),
    patienceS: integer({
      help: "A job fails if it receives nothing for this many seconds while there is no fault.",
      default: 180,
      min: 1,
      max: 1_000_000,
    }),
  } satisfies Options;
}
