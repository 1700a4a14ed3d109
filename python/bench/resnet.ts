/** Random crops of a folder's images, one folder for each class: what `resnet.py` trains on. */
import { AUTOTUNE, Dataset } from "@leat/leat";

interface Training {
  readonly folder: string;
  readonly side: number;
  readonly batch: number;
  /** A dispatcher whose workers may prepare a share of the batches. */
  readonly service?: string;
  /** How long a training step takes, for the decision how large that share is. */
  readonly stepMs?: number;
  /** How many steps each measurement for that decision takes. */
  readonly profileSteps?: number;
}

export default ({ folder, side, batch, service, ...measured }: Training) => {
  const batches = Dataset.imageFolder(folder, { decode: false })
    .map(async ({ image: jpeg, label }, { image, random, side }) => ({
      image: await image.decode(jpeg, {
        crop: image.randomResizedCropRegion(image.size(jpeg), random),
        resize: { width: side, height: side },
        flip: random.next() < 0.5,
        normalize: { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
      }),
      label,
    }), { numParallelCalls: AUTOTUNE, captures: { side } })
    .batch(batch, { dropRemainder: true })
    .prefetch(AUTOTUNE);
  return service === undefined ? batches : batches.offload({ service, ...measured });
};
