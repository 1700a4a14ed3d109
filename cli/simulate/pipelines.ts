/**
 * Builds the input pipelines of the main job from plain data, so that a trainer's thread can build
 * them itself.
 */

import { Dataset } from "../../mod.ts";

/** Width and height of an augmented image, in pixels. */
export const IMAGE_SIDE_PX = 224;

/** The kind of a pipeline, its files and its parameters. */
export type PipelineConfig = ImagePipeline | TextPipeline;

/** Images, cropped at random, resized and mirrored. */
export interface ImagePipeline {
  readonly kind: "images";
  /** TFRecord files of JPEGs. */
  readonly files: readonly string[];
  readonly batchSize: number;
  /** How many times to read all files. Default: endlessly. */
  readonly epochs?: number;
}

/** Texts in padded batches, endlessly. */
export interface TextPipeline {
  readonly kind: "text";
  /** JSON lines files of `{ "tokens": [17, 4, …] }`. */
  readonly files: readonly string[];
  readonly batchSize: number;
  /**
   * Upper ends of length buckets, in tokens: a batch holds texts of one bucket. Without them a
   * batch holds texts of any length.
   */
  readonly boundaries?: readonly number[];
  /** How many consecutive batches are of one bucket: one for each consumer of a round. */
  readonly batchesPerRound?: number;
}

/**
 * Builds the pipeline that `config` describes. A batch of images is `{ id, pixels }`: the names of the
 * records, and uint8 of shape [batch, 224, 224, 3]. A batch of text is `{ tokens, length }`: int32
 * of shape [batch, longest], and the lengths before padding.
 */
export function pipelineOf(config: PipelineConfig): Dataset<unknown> {
  return config.kind === "images" ? imagePipeline(config) : textPipeline(config);
}

function imagePipeline({ files, batchSize, epochs }: ImagePipeline): Dataset<unknown> {
  return Dataset.from([...files])
    .flatMap((file, { Dataset }) =>
      Dataset.tfRecords(file).enumerate().map(([index, jpeg], { file }) => ({
        id: `${file}#${index}`,
        jpeg,
      }), { captures: { file } })
    )
    .repeat(epochs)
    .map(async ({ id, jpeg }, { image, random, sidePx }) => {
      // Inception's augmentation: a crop of 8 % to 100 % of the area, resized, mirrored half the
      // time.
      const { width, height } = image.size(jpeg);
      const share = Math.sqrt(0.08 + 0.92 * random.next());
      const crop = {
        width: Math.max(1, Math.floor(width * share)),
        height: Math.max(1, Math.floor(height * share)),
      };
      const x = random.int(width - crop.width + 1);
      const y = random.int(height - crop.height + 1);
      const pixels = await image.decode(jpeg, {
        crop: { x, y, ...crop },
        resize: { width: sidePx, height: sidePx },
        flip: random.next() < 0.5,
      });
      return { id, pixels };
    }, { captures: { sidePx: IMAGE_SIDE_PX } })
    .batch(batchSize);
}

function textPipeline(config: TextPipeline): Dataset<unknown> {
  const { files, batchSize, boundaries, batchesPerRound } = config;
  const texts = Dataset.jsonLines<{ tokens: number[] }>([...files]).repeat().map(({ tokens }) => ({
    tokens: new Int32Array(tokens),
    length: tokens.length,
  }));
  if (boundaries === undefined) return texts.paddedBatch(batchSize);
  const buckets = texts.bucketBySequenceLength({
    length: ({ length }) => length,
    // In tf.data a boundary is the least length of the bucket above it.
    boundaries: boundaries.map((length) => length + 1),
    batchSizes: Array.from({ length: boundaries.length + 1 }, () => batchSize),
  });
  if (batchesPerRound === undefined) return buckets;
  return buckets.groupByWindow({
    key: ({ tokens }, { boundaries }) => {
      const longest = (tokens as { shape: readonly number[] }).shape[1]!;
      const bucket = boundaries.findIndex((length) => longest <= length);
      return bucket < 0 ? boundaries.length : bucket;
    },
    reduce: (_bucket, window) => window,
    windowSize: batchesPerRound,
    captures: { boundaries: [...boundaries] },
  });
}
