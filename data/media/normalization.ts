/** The mean and standard deviation that are taken from an image's channels. */
import { optionsOf } from "../check.ts";
import type { Normalization } from "../host.ts";
import { invalidImage, shown } from "./image_tensor.ts";

/** A number of each channel. */
interface ChannelNormalization {
  readonly means: readonly number[];
  /** None is 0. */
  readonly stds: readonly number[];
}

/**
 * Returns the check of the option `normalize` of an operation, by default a mean of 0 and a standard
 * deviation of 1.
 */
export function normalizationOf(
  operation: string,
): (normalize: Normalization | undefined, channels: number) => ChannelNormalization {
  const fieldsOf = optionsOf<Normalization>(`${operation}: normalize`, { mean: true, std: true });
  return (normalize, channels) => {
    const { mean = 0, std = 1 } = fieldsOf<Partial<Normalization>>(normalize);
    const means = perChannel(operation, "mean", mean, channels);
    const stds = perChannel(operation, "std", std, channels);
    if (stds.includes(0)) throw invalidImage(operation, `normalize.std is not 0, but ${stds}`);
    return { means, stds };
  };
}

function perChannel(
  operation: string,
  name: string,
  value: number | readonly number[],
  channels: number,
): number[] {
  // A value that is not iterable has no numbers.
  const values = typeof value === "number"
    ? Array<number>(channels).fill(value)
    : Array.from<number>(Object(value));
  if (values.length === channels && values.every(Number.isFinite)) return values;
  throw invalidImage(
    operation,
    `normalize.${name} is a number, or one for each of the ${channels} channels, not ${
      shown(value)
    }`,
  );
}
