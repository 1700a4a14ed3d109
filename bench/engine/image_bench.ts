/**
 * Compares pipelines that decode JPEGs of 500 × 375 pixels on one core and on all cores with the addon
 * of libjpeg-turbo, which decodes whole images one after another.
 */

import { Dataset, type ImageDecodeOptions } from "../../mod.ts";
import { COUNT, open, photographs } from "../bare/jpeg_addon.ts";
import { pipelinedLoad } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

/** The middle of the image, as large as a random crop is on average. */
const CROP: ImageDecodeOptions = { crop: { x: 100, y: 70, width: 300, height: 240 } };

function decoding(what: string, numParallelCalls: number, options: ImageDecodeOptions): Bench {
  return {
    name: `images: ${what}, ${numParallelCalls} in flight`,
    unit: "images/s",
    floor: 0.8,
    bare: open,
    leat: () => {
      const dataset = Dataset.from(photographs()).map(
        (jpeg, { image, options }) => image.decode(jpeg, options as ImageDecodeOptions),
        { numParallelCalls, captures: { options } },
      );
      return pipelinedLoad(1, async () => {
        for await (const _image of dataset);
        return COUNT;
      });
    },
  };
}

export const benches: Bench[] = [
  decoding("decode", 1, {}),
  decoding("decode a crop", 1, CROP),
  decoding("decode", navigator.hardwareConcurrency + 1, {}),
  decoding("decode a crop", navigator.hardwareConcurrency + 1, CROP),
];
