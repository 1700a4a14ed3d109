/** Images: decoding alone, and the two usual chains of a classifier. */
import { Dataset } from "../../../mod.ts";
import type { PeerFiles } from "../files.ts";
import { type Pipelines, taking } from "./step.ts";

const BATCH = 32;
const SIDE = 224;
const RESIZED = 256;
const MEAN = [0.485, 0.456, 0.406];
const STD = [0.229, 0.224, 0.225];

function jpegs({ images }: PeerFiles): Dataset<Uint8Array> {
  return Dataset.tfRecords([...images], { numParallelReads: 4 }).repeat();
}

export const images: Pipelines = {
  decode: (files) =>
    taking(
      jpegs(files).map((jpeg, { image }) => image.decode(jpeg), { numParallelCalls: -1 })
        .prefetch(-1),
      () => 1,
    ),
  "resize-crop": (files) =>
    taking(
      jpegs(files).map(async (jpeg, { image, random, tensor, side, resized, mean, std }) => {
        const { width, height } = image.size(jpeg);
        const short = Math.min(width, height) * side / resized;
        const crop = {
          x: Math.floor((width - short) / 2),
          y: Math.floor((height - short) / 2),
          width: Math.floor(short),
          height: Math.floor(short),
        };
        const pixels = await image.decode(jpeg, {
          crop,
          resize: { width: side, height: side },
          flip: random.next() < 0.5,
        });
        const { data } = pixels;
        const floats = new Float32Array(data.length);
        for (let at = 0; at < floats.length; at += 3) {
          for (let c = 0; c < 3; c++) {
            floats[at + c] = (Number(data[at + c]) / 255 - mean[c]!) / std[c]!;
          }
        }
        return tensor(floats, { shape: pixels.shape });
      }, {
        numParallelCalls: -1,
        captures: { side: SIDE, resized: RESIZED, mean: MEAN, std: STD },
      }).batch(BATCH).prefetch(-1),
      ({ shape }) => shape[0]!,
    ),
  "random-resized-crop": (files) =>
    taking(
      jpegs(files).map(async (jpeg, { image, random, tensor, side, mean, std }) => {
        const { width, height } = image.size(jpeg);
        const area = width * height * (0.08 + 0.92 * random.next());
        const ratio = Math.exp(Math.log(3 / 4) + random.next() * Math.log(16 / 9));
        const cropWidth = Math.min(width, Math.max(1, Math.round(Math.sqrt(area * ratio))));
        const cropHeight = Math.min(height, Math.max(1, Math.round(Math.sqrt(area / ratio))));
        const crop = {
          x: random.int(width - cropWidth + 1),
          y: random.int(height - cropHeight + 1),
          width: cropWidth,
          height: cropHeight,
        };
        const pixels = await image.decode(jpeg, {
          crop,
          resize: { width: side, height: side },
          flip: random.next() < 0.5,
        });
        const { data } = pixels;
        const floats = new Float32Array(data.length);
        for (let at = 0; at < floats.length; at += 3) {
          for (let c = 0; c < 3; c++) {
            floats[at + c] = (Number(data[at + c]) / 255 - mean[c]!) / std[c]!;
          }
        }
        return tensor(floats, { shape: pixels.shape });
      }, { numParallelCalls: -1, captures: { side: SIDE, mean: MEAN, std: STD } })
        .batch(BATCH).prefetch(-1),
      ({ shape }) => shape[0]!,
    ),
};
