/**
 * Names in the last argument of every user function. See `FunctionExtra`.
 *
 * @module
 */

/** Names given to every function. Captures cannot use them. */
export const GIVEN_NAMES: readonly string[] = [
  ...["Dataset", "tensor", "random", "index", "image", "audio", "example"],
];
