/** From decoded pixels to the image that the options ask for. */

import type { TypedArray } from "../../core/dtype.ts";
import type { DecodePlan } from "./decode_plan.ts";
import type { Region } from "./image_format.ts";
import type { Resampler } from "./resampling/resampler.ts";

/**
 * Writes the image of a plan.
 *
 * @param resampler holds the decoded pixels.
 * @param region the part of the image that they are.
 * @param into an array of the plan's dtype.
 */
export function transform(
  resampler: Resampler,
  { channels, crop, size, flip, layout, conversion }: DecodePlan,
  region: Region,
  into: TypedArray,
): void {
  const inside = { ...crop, x: crop.x - region.x, y: crop.y - region.y };
  const request = { channels, width: region.width, crop: inside, size, flip, layout };
  if (into instanceof Uint8Array) resampler.bytes(into, request);
  else resampler.floats(into as Float32Array | Float16Array, request, conversion);
}
