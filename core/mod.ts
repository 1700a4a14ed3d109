/**
 * Errors, dtypes, tensors, trees, digests and counter-based random numbers. Every layer may import
 * this one; it imports none.
 */

export * from "./dtype.ts";
export * from "./abort_race.ts";
export * from "./error.ts";
export * from "./hash.ts";
export * from "./philox.ts";
export * from "./tensor.ts";
export * from "./tree.ts";
