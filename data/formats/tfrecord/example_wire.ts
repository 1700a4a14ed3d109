/** Field numbers of `tf.train.Example` and its messages. */

export const BYTES_LIST = 1;
export const FLOAT_LIST = 2;
export const INT64_LIST = 3;

/** The kinds of lists, by their field numbers in `Feature`. */
export type Kind = typeof BYTES_LIST | typeof FLOAT_LIST | typeof INT64_LIST;

/** The features of an `Example`. */
export const FEATURES = 1;
/** An entry of the map in `Features`, and its fields. */
export const FEATURE = 1;
export const KEY = 1;
export const MAPPED = 2;
/** The values of a list. */
export const VALUE = 1;
