/** Pipelines of images: decoding alone, and two usual preprocessings of a classifier. */
import { AUTOTUNE, Dataset, releaseElement, type Tensor } from "../../../mod.ts";
import type { PeerFiles } from "../files.ts";
import { type Pipelines, taking } from "./step.ts";

const BATCH = 32;
const SIDE = 224;
const RESIZED = 256;
const NORMALIZE = { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };

function jpegs({ images }: PeerFiles): Dataset<Uint8Array> {
  return Dataset.tfRecords([...images], { numParallelReads: 4 }).repeat();
}

/** Batches of normalised float32 crops from the middle, half of them mirrored. */
export function resizeCrop(files: PeerFiles) {
  return jpegs(files).map((jpeg, { image, random, side, resized, normalize }) => {
    // Crops before resizing, to the part that a centre crop of the resized image would show.
    const { width, height } = image.size(jpeg);
    const length = Math.round(Math.min(width, height) * side / resized);
    return image.decode(jpeg, {
      crop: {
        x: (width - length) >> 1,
        y: (height - length) >> 1,
        width: length,
        height: length,
      },
      resize: { width: side, height: side },
      flip: random.next() < 0.5,
      normalize,
    });
  }, {
    numParallelCalls: AUTOTUNE,
    captures: { side: SIDE, resized: RESIZED, normalize: NORMALIZE },
  }).batch(BATCH).prefetch(AUTOTUNE);
}

export const images: Pipelines = {
  "decode": (files) =>
    taking(
      jpegs(files).map((jpeg, { image }) => image.decode(jpeg), { numParallelCalls: AUTOTUNE })
        .prefetch(AUTOTUNE),
      () => 1,
    ),
  "resize-crop": (files) => taking(resizeCrop(files), trained),
  "random-resized-crop": (files) =>
    taking(
      jpegs(files).map((jpeg, { image, random, side, normalize }) =>
        image.decode(jpeg, {
          crop: image.randomResizedCropRegion(image.size(jpeg), random),
          resize: { width: side, height: side },
          flip: random.next() < 0.5,
          normalize,
        }), { numParallelCalls: AUTOTUNE, captures: { side: SIDE, normalize: NORMALIZE } })
        .batch(BATCH).prefetch(AUTOTUNE),
      trained,
    ),
};

/** Ends a step: frees the batch, as Python's reference counting does, and returns its size. */
function trained(batch: Tensor): number {
  releaseElement(batch);
  return batch.shape[0]!;
}
