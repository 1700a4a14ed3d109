/** `extra.image` of user functions: the codec of the host, and the operations on images. */

import {
  adjustBrightness,
  adjustContrast,
  adjustHue,
  adjustSaturation,
  colorJitter,
  grayscale,
} from "./colour.ts";
import { type BatchRows, RowPlace } from "../elements/batch_rows.ts";
import type { ImageCodec } from "../host.ts";
import { convertImage } from "./convert.ts";
import { centerCrop, cropImage, cutout, flipImage, padImage } from "./geometry.ts";
import { cutmix, mixup } from "./mixing.ts";
import { randAugment } from "./rand_augment.ts";
import { randomResizedCrop, randomResizedCropRegion } from "./random_crop.ts";
import { resizeImage } from "./resize.ts";

/**
 * Operations on image tensors of shape [height, width, channels], with the names and defaults of
 * `tf.image` and torchvision v2. Random ones take a stream of random numbers, and give the same result
 * on every host.
 */
export interface ImageOperations {
  /** See {@linkcode cropImage}. */
  readonly crop: typeof cropImage;
  /** See {@linkcode centerCrop}. */
  readonly centerCrop: typeof centerCrop;
  /** See {@linkcode padImage}. */
  readonly pad: typeof padImage;
  /** See {@linkcode flipImage}. */
  readonly flip: typeof flipImage;
  /** See {@linkcode cutout}. */
  readonly cutout: typeof cutout;
  /** See {@linkcode resizeImage}. */
  readonly resize: typeof resizeImage;
  /** See {@linkcode randomResizedCrop}. */
  readonly randomResizedCrop: typeof randomResizedCrop;
  /** See {@linkcode randomResizedCropRegion}. */
  readonly randomResizedCropRegion: typeof randomResizedCropRegion;
  /** See {@linkcode grayscale}. */
  readonly grayscale: typeof grayscale;
  /** See {@linkcode adjustBrightness}. */
  readonly adjustBrightness: typeof adjustBrightness;
  /** See {@linkcode adjustContrast}. */
  readonly adjustContrast: typeof adjustContrast;
  /** See {@linkcode adjustSaturation}. */
  readonly adjustSaturation: typeof adjustSaturation;
  /** See {@linkcode adjustHue}. */
  readonly adjustHue: typeof adjustHue;
  /** See {@linkcode colorJitter}. */
  readonly colorJitter: typeof colorJitter;
  /** See {@linkcode randAugment}. */
  readonly randAugment: typeof randAugment;
  /** See {@linkcode convertImage}. */
  readonly convert: typeof convertImage;
  /** See {@linkcode mixup}. */
  readonly mixup: typeof mixup;
  /** See {@linkcode cutmix}. */
  readonly cutmix: typeof cutmix;
}

const OPERATIONS: ImageOperations = {
  ...{ crop: cropImage, centerCrop, pad: padImage, flip: flipImage, cutout, resize: resizeImage },
  ...{ randomResizedCrop, randomResizedCropRegion, convert: convertImage, mixup, cutmix },
  ...{ grayscale, adjustBrightness, adjustContrast, adjustSaturation, adjustHue, colorJitter },
  randAugment,
};

/** What user functions get as `extra.image`: the codec of the host, and the operations. */
export interface ImageTools extends ImageCodec, ImageOperations {}

const toolsOf = new WeakMap<ImageCodec | BatchRows, ImageTools>();

/** The tools with a host's codec. If `rows` are given, it may decode images directly into a batch. */
export function imageTools(codec: ImageCodec, rows?: BatchRows): ImageTools {
  let tools = toolsOf.get(rows ?? codec);
  if (tools === undefined) {
    const { decode, size } = codec;
    tools = {
      ...OPERATIONS,
      decode: rows === undefined ? decode.bind(codec) : decodeTo(rows, codec),
      size: size.bind(codec),
    };
    toolsOf.set(rows ?? codec, tools);
  }
  return tools;
}

function decodeTo(rows: BatchRows, codec: ImageCodec): ImageCodec["decode"] {
  return (bytes, options) => {
    const place = new RowPlace();
    const image = codec.decode(bytes, options, (dtype, length) => place.memory(dtype, length));
    if (image instanceof Promise) rows.offer(place);
    return image;
  };
}
