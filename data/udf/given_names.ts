/**
 * Names in the last argument of every user function. See `FunctionExtra`.
 *
 * @module
 */

/** What each is given without captures, which cannot have these names. */
export const GIVEN_NAMES: readonly string[] = [
  ...["Dataset", "tensor", "random", "index", "image", "audio", "example"],
];
