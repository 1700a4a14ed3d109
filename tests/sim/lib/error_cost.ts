/**
 * A program that says how many times as long errors took to make before they were made quickly.
 *
 * @module
 */
import { makeErrorsQuick } from "../../../sim/vopr/quick_errors.ts";

const ROUNDS = 50;
const ERRORS = 200;
/** Calls below the place where an error is made: a run has more. */
const DEPTH = 12;

function make(depth: number): number {
  if (depth > 0) return make(depth - 1);
  const startMs = performance.now();
  for (let i = 0; i < ERRORS; i++) new Error("nobody looks");
  return performance.now() - startMs;
}

/** In the quickest of the rounds nothing else came between. */
function errorsMs(): number {
  return Math.min(...Array.from({ length: ROUNDS }, () => make(DEPTH)));
}

const errors: { stackTraceLimit: number | undefined } = Error;
errors.stackTraceLimit = undefined;
const beforeMs = errorsMs();
makeErrorsQuick();
console.log(beforeMs / errorsMs());
