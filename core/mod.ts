/**
 * What every room may import and which imports nothing: errors, dtypes, tensors, trees, digests and
 * counter-based luck.
 *
 * @module
 */

export * from "./dtype.ts";
export * from "./ending.ts";
export * from "./error.ts";
export * from "./hash.ts";
export * from "./philox.ts";
export * from "./tensor.ts";
export * from "./tree.ts";
